"""The settings of an MCP server, and the secrets in them."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt

# Without `__` and without `_` at either end, the first `__` of a tool name always ends the server name.
_NAME: Final = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_MAX_NAME_LENGTH: Final = 32

_WHOLE_REFERENCE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACED_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# Shorter values (`1`, `true`, `8080`) are not secrets; redacting them would make messages unreadable.
_MIN_SECRET_LENGTH: Final = 6
_HIDDEN: Final = "[hidden]"


SEPARATOR: Final = "__"
"""Separates the server name from the tool name."""


@dataclass(frozen=True)
class McpServer:
    """A stdio server when `command` is given, a streamable HTTP server when `url` is.

    In `env` and `headers`, `${NAME}` anywhere in a value and `$NAME` as the whole of it is replaced by a
    variable of the environment. Fields that can hold a secret are not in `repr`.
    """

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_timeout: float = 20
    call_timeout: float = 120

    def __post_init__(self) -> None:
        shown = excerpt(self.name)
        if not _NAME.fullmatch(self.name) or len(self.name) > _MAX_NAME_LENGTH:
            raise ConfigError(
                f"MCP server name '{shown}' cannot be part of a tool name. Use 1 to {_MAX_NAME_LENGTH} letters, "
                "digits, '-' and single '_' between them."
            )
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"MCP server '{shown}' needs either a command or a url, and not both.")
        if self.start_timeout <= 0 or self.call_timeout <= 0:
            raise ConfigError(f"MCP server '{shown}': its time limits must be greater than 0 seconds.")


@dataclass(frozen=True)
class ReconnectPolicy:
    """When a broken connection is opened again."""

    first: float = 0.5
    max_pause: float = 30
    healthy_after: float = 60
    patience: float = 2
    """How long a call waits for a reconnection; if it takes longer, the call fails and says so."""
    answer_within: float = 5
    """After a call timed out: how long the server has to prove that it still responds."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, failures: int) -> float:
        return min(self.first * 2.0 ** min(failures - 1, 30), self.max_pause)


def expand_variables(server: McpServer) -> McpServer:
    """Replace every reference to an environment variable by its value."""
    return replace(server, env=_values(server, "env"), headers=_values(server, "headers"))


def _values(server: McpServer, setting: Literal["env", "headers"]) -> dict[str, str]:
    values: Mapping[str, str] = getattr(server, setting)

    def value_of(variable: re.Match[str]) -> str:
        value = os.environ.get(variable[1])
        if value is None:
            raise ConfigError(
                f"MCP server '{server.name}' was not started: {setting}.{excerpt(key)} takes its value from the "
                f"environment variable {variable[1]}, which is not set. Set it, or change the setting."
            )
        return value

    filled = {}
    for key, value in values.items():
        whole = _WHOLE_REFERENCE.fullmatch(value)
        filled[key] = value_of(whole) if whole else _BRACED_REFERENCE.sub(value_of, value)
    return filled


class ServerSecrets:
    """The values to redact in messages, including those of the server itself."""

    def __init__(self, server: McpServer) -> None:
        values = (*server.env.values(), *server.headers.values(), server.url or "")
        # A server can print only the token of `Bearer token`.
        parts = {part for value in values for part in (value, *value.split())}
        self._values = sorted((part for part in parts if len(part) >= _MIN_SECRET_LENGTH), key=len, reverse=True)

    def hide(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, _HIDDEN)
        return text
