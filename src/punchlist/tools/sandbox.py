"""What the commands of an agent can reach: variables of the environment, files and the network.

[sandbox]
commands = "workspace"                # or "off", the default
network = false
writable = ["~/.cache/uv"]            # besides the workspace
env_pass = ["NPM_TOKEN", "AWS_*"]     # variables with secrets, which commands do not get otherwise

`env_pass` counts with and without a sandbox. A project file that is not trusted can only restrict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from punchlist.config import Settings, SettingsTables
from punchlist.kernel.settings_table import SettingsTable
from punchlist.kernel.text import excerpt
from punchlist.trust import Trust

_VARIABLES: Final = re.compile(r"[A-Za-z0-9_*]+")


class SandboxMode(StrEnum):
    OFF = "off"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """None: not set in this file."""

    commands: SandboxMode | None = None
    network: bool | None = None
    writable: tuple[Path, ...] = ()
    env_pass: tuple[str, ...] = ()

    @property
    def is_on(self) -> bool:
        return self.commands is SandboxMode.WORKSPACE

    @property
    def permissions(self) -> list[str]:
        """The settings that allow more than an untrusted file may."""
        return [
            *(["run commands without a sandbox"] if self.commands is SandboxMode.OFF else []),
            *(["commands in the sandbox may use the network"] if self.network else []),
            *(f"commands in the sandbox may write to {folder}" for folder in self.writable),
            *(f"commands get the variables {pattern}" for pattern in self.env_pass),
        ]

    def without_permissions(self) -> SandboxSettings:
        return SandboxSettings(SandboxMode.WORKSPACE if self.is_on else None, None if self.network else self.network)


DEFAULT: Final = SandboxSettings()


def load_sandbox(settings: Settings, trust: Trust) -> SandboxSettings:
    layers: list[SandboxSettings] = []
    if settings.project is not None:
        project = read_sandbox(settings.project)
        trusted = not project.permissions or trust.trusts(settings.project.path, settings.project.source)
        layers.append(project if trusted else project.without_permissions())
    if settings.user is not None:
        layers.append(read_sandbox(settings.user))
    return merge_sandbox(layers)


def read_sandbox(tables: SettingsTables) -> SandboxSettings:
    table = SettingsTable.top_level(tables.path, "sandbox", tables.content.get("sandbox", {}))
    table.check_keys("commands", "network", "writable", "env_pass")
    for pattern in table.text_list("env_pass"):
        if not _VARIABLES.fullmatch(pattern):
            raise table.error("env_pass", f'must be names such as "NPM_TOKEN" or "AWS_*", got {excerpt(pattern)!r}')
    return SandboxSettings(
        SandboxMode(table.text("commands", one_of=list(SandboxMode))) if "commands" in table.content else None,
        table.flag("network") if "network" in table.content else None,
        tuple(tables.path.parent / Path(folder).expanduser() for folder in table.text_list("writable")),
        tuple(table.text_list("env_pass")),
    )


def merge_sandbox(layers: Sequence[SandboxSettings]) -> SandboxSettings:
    """The first mode and network setting that are set, and the lists of all layers."""
    merged = SandboxSettings(
        next((layer.commands for layer in layers if layer.commands is not None), None),
        next((layer.network for layer in layers if layer.network is not None), None),
    )
    return replace(
        merged,
        writable=tuple(folder for layer in layers for folder in layer.writable),
        env_pass=tuple(pattern for layer in layers for pattern in layer.env_pass),
    )


def describe(settings: SandboxSettings, workspace: Path) -> str:
    """One sentence on what commands can reach, for `policy explain`."""
    if not settings.is_on:
        return "Commands run without a sandbox, with your access to files and network."
    folders = ", ".join(map(str, (workspace, *settings.writable)))
    network = "with" if settings.network else "without"
    return f"Commands run in a sandbox: they can write to {folders} and to a private /tmp, {network} network."
