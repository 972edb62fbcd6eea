"""An MCP server as the user names it, and what is secret about it."""

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

# No double underscore and none at an end: the first `__` of a tool's name then always ends the server's.
_NAME: Final = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_LONGEST_NAME: Final = 32

_WHOLE_REFERENCE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACED_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# Shorter values (`1`, `true`, `8080`) are no secrets, and hiding them would make messages unreadable.
_SHORTEST_SECRET: Final = 6
_HIDDEN: Final = "[hidden]"


SEPARATOR: Final = "__"
"""Between a server's name and that of its tool."""


@dataclass(frozen=True)
class McpServer:
    """On standard input and output when `command` is given, over streamable HTTP when `url` is.

    In `env` and `headers`, `${NAME}` anywhere in a value and `$NAME` as the whole of it stand for a
    variable of our own environment. What may hold a secret is left out of `repr`.
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
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise ConfigError(
                f"MCP server name '{shown}' cannot be part of a tool's name. Use 1 to {_LONGEST_NAME} letters, "
                "digits, '-' and single '_' between them."
            )
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"MCP server '{shown}' needs either a command or a url, and not both.")
        if self.start_timeout <= 0 or self.call_timeout <= 0:
            raise ConfigError(f"MCP server '{shown}': its time limits must be more than 0 seconds.")


@dataclass(frozen=True)
class ReconnectPolicy:
    """When a broken connection is opened again."""

    first: float = 0.5
    most: float = 30
    healthy_after: float = 60
    patience: float = 2
    """A call waits this long for its turn; where it would be longer, it fails and says how long."""
    answer_within: float = 5
    """After a call ran out of time: how long the server may take to show that it still answers."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, failures: int) -> float:
        return min(self.first * 2.0 ** min(failures - 1, 30), self.most)


def expand_variables(server: McpServer) -> McpServer:
    """With every reference to our environment replaced by its value."""
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
    """What must not be read in a message, even when the server itself says it."""

    def __init__(self, server: McpServer) -> None:
        values = (*server.env.values(), *server.headers.values(), server.url or "")
        # A server may repeat only the token of `Bearer token`.
        parts = {part for value in values for part in (value, *value.split())}
        self._values = sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)

    def hide(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, _HIDDEN)
        return text
