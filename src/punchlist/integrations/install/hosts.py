"""The hosts: which of our entries belong into which of their files, and what a person has to do then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from punchlist.errors import ConfigError
from punchlist.integrations.install.codex_trust import config_of, distrusted_hooks, distrusted_project
from punchlist.integrations.install.entry_command import EntryCommand
from punchlist.integrations.install.host_names import HostName
from punchlist.integrations.install.settings_json import HookEntry, ServerEntry, SettingsJson, Way
from punchlist.integrations.install.settings_toml import SettingsToml
from punchlist.integrations.install.text_edits import EditedText, InsertedText
from punchlist.integrations.install.whole_file import WholeFile

SECONDS: Final = 20
"""How long a host waits for a hook. One takes a fraction of a second; the rest is for a machine that is busy."""
PASSED_ON: Final = [
    "PUNCHLIST_DATABASE_URL",
    "PUNCHLIST_SESSION",
    "PUNCHLIST_SYNCHRONOUS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
]
"""What decides which list is meant. Codex gives all of it to hooks, but to a server only what is named."""


class InstallScope(StrEnum):
    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class InstallLocation:
    """Where to install: a project's folder, or the user's own configuration."""

    scope: InstallScope
    root: Path
    home: Path
    environment: Mapping[str, str]

    def folder(self, name: str, variable: str | None = None) -> Path:
        """A host's folder: in the project, or in the home, unless a variable says where."""
        named = self.environment.get(variable) if variable and self.scope is InstallScope.USER else None
        return Path(named).absolute() if named else self.root / name


class ManagedContent(Protocol):
    """What of ours is in one file. Texts in, texts out."""

    def merged(self, text: str | None) -> EditedText: ...
    def stripped(
        self, text: str, inserted: tuple[InsertedText, ...] = (), made: tuple[Way, ...] | None = None
    ) -> str | None:
        """None if nothing is left of the file."""

    def set_back(self, text: str) -> str:
        """The text with the values that a person chose in our entries as we write them."""

    def is_empty(self, text: str) -> bool: ...
    def pieces(self, text: str) -> Iterator[tuple[str, str, list[str]]]: ...


@dataclass(frozen=True, slots=True)
class HostFile:
    """One file of a host. It may have several names; the first that is there counts."""

    names: tuple[Path, ...]
    content: ManagedContent

    @property
    def path(self) -> Path:
        return next((name for name in self.names if name.exists() or name.is_symlink()), self.names[0])


@dataclass(frozen=True, slots=True)
class Host:
    name: HostName
    title: str
    program: str
    files: Callable[[InstallLocation, EntryCommand], list[HostFile]]
    then_in_project: tuple[str, ...]
    then_for_user: tuple[str, ...]
    distrust: Callable[[InstallLocation, EntryCommand], Iterator[str]] = lambda _place, _command: iter(())
    """What keeps the host from using what is installed, as far as it can be seen."""
    finds_root: Callable[[Path], bool] = lambda _root: False
    """Whether it reads what is in a project's root when it is started in a folder of the project."""

    def then(self, scope: InstallScope) -> tuple[str, ...]:
        """What the person still has to do."""
        return self.then_for_user if scope is InstallScope.USER else self.then_in_project


def _hooks(stop: str, prompt: str, start: str, tool: str, timeout: int, **more: Any) -> tuple[HookEntry, ...]:
    return (
        HookEntry(stop, "stop", timeout, **more),
        HookEntry(prompt, "prompt", timeout, **more),
        HookEntry(start, "session-start", timeout, **more),
        HookEntry(tool, "tool", timeout, **more),
    )


def _stdio(command: EntryCommand, **more: Any) -> dict[str, Any]:
    return {"command": command.server[0], "args": command.server[1:], **more}


def _claude_code(place: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("Stop", "UserPromptSubmit", "SessionStart", "PostToolUse", SECONDS)
    server = ServerEntry("mcpServers", {"type": "stdio", **_stdio(command)})
    folder = place.folder(".claude", "CLAUDE_CONFIG_DIR")
    if place.scope is InstallScope.PROJECT:
        servers = place.root / ".mcp.json"
    elif place.environment.get("CLAUDE_CONFIG_DIR"):
        servers = folder / ".claude.json"
    else:
        servers = place.root / ".claude.json"
    return [
        HostFile((folder / "settings.json",), SettingsJson(command, hooks, off=(("disableAllHooks",), True))),
        HostFile((servers,), SettingsJson(command, server=server)),
    ]


def _codex(place: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("Stop", "UserPromptSubmit", "SessionStart", "PostToolUse", SECONDS)
    # A turn could begin before the tools are there, were the server not required.
    server = ServerEntry("mcp_servers", _stdio(command, required=True, env_vars=PASSED_ON))
    folder = place.folder(".codex", "CODEX_HOME")
    return [
        HostFile((folder / "hooks.json",), SettingsJson(command, hooks)),
        HostFile((folder / "config.toml",), SettingsToml(command, server)),
    ]


def _codex_distrust(place: InstallLocation, command: EntryCommand) -> Iterator[str]:
    home = place.environment.get("CODEX_HOME")
    config = config_of(Path(home).absolute() if home else place.home / ".codex")
    if place.scope is InstallScope.PROJECT:
        yield from distrusted_project(place.root, config)
    for file in _codex(place, command):
        if isinstance(file.content, SettingsJson):
            yield from distrusted_hooks(file.path, file.content, config)


def _in_repository(root: Path) -> bool:
    """Codex looks upwards as far as the repository goes, and not at all where there is none."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _gemini(place: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("AfterAgent", "BeforeAgent", "SessionStart", "AfterTool", SECONDS * 1000, named=True)
    content = SettingsJson(
        command, hooks, ServerEntry("mcpServers", _stdio(command)), (("hooksConfig", "enabled"), False)
    )
    folder = place.folder(".gemini")
    if place.scope is InstallScope.USER and (home := place.environment.get("GEMINI_CLI_HOME")):
        folder = Path(home).absolute() / ".gemini"
    return [HostFile((folder / "settings.json",), content)]


def _opencode(place: InstallLocation, command: EntryCommand) -> list[HostFile]:
    server = ServerEntry("mcp", {"type": "local", "command": command.server, "enabled": True})
    if place.scope is InstallScope.PROJECT:
        folder, plugins = place.root, place.root / ".opencode"
    else:
        base = place.environment.get("XDG_CONFIG_HOME")
        folder = plugins = (Path(base) if base else place.root / ".config") / "opencode"
    names = (folder / "opencode.json", folder / "opencode.jsonc")
    plugin = WholeFile("plugin", opencode_plugin(command), command.program)
    return [
        HostFile(names, SettingsJson(command, server=server, opening=OPENCODE_SCHEMA)),
        HostFile((plugins / "plugins" / "punchlist.js",), plugin),
    ]


def opencode_plugin(command: EntryCommand) -> str:
    """The plugin's source with the command in it."""
    import json
    from importlib.resources import files

    try:
        source = files("punchlist.integrations.install").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"opencode_plugin.js: is missing from this installation ({error.strerror}).") from error
    return source.replace(PLACEHOLDER, f"const COMMAND = {json.dumps(list(command.program))}", 1)


OPENCODE_SCHEMA: Final = {"$schema": "https://opencode.ai/config.json"}
PLACEHOLDER: Final = 'const COMMAND = ["punchlist"]'

_RESTART: Final = "Sessions that are open already take it up when they are started again."
_CLAUDE_ASKS: Final = "Claude Code asks once whether this project's MCP server may be used: say yes."
_CLAUDE_WRITES: Final = (
    "Claude Code writes ~/.claude.json while it runs: if `punchlist status` misses the server there, close it and "
    "install again."
)
_CODEX_PROJECT: Final = "Codex reads a project's settings only if you trust the project: it asks when it starts."
_CODEX_HOOKS: Final = (
    "Codex skips hooks that you have not accepted, without a word: start `codex` once and accept them (/hooks)."
)
_OPENCODE_RUN: Final = (
    "A bare `opencode run` ends at the first stop; what sends the agent back works in `opencode`, `serve` and `web`."
)
_GEMINI_FOLDER: Final = "Gemini CLI reads a project's settings only if you trust the folder: it asks when it starts."
_GEMINI_USER: Final = (
    "Gemini CLI uses it in folders that you trust; sessions that are open already, when started again."
)

HOSTS: Final = {
    host.name: host
    for host in (
        Host(HostName.CLAUDE_CODE, "Claude Code", "claude", _claude_code, (_CLAUDE_ASKS,), (_CLAUDE_WRITES,)),
        Host(
            HostName.CODEX,
            "Codex",
            "codex",
            _codex,
            (_CODEX_PROJECT, _CODEX_HOOKS),
            (_CODEX_HOOKS,),
            _codex_distrust,
            _in_repository,
        ),
        Host(HostName.GEMINI, "Gemini CLI", "gemini", _gemini, (_GEMINI_FOLDER,), (_GEMINI_USER,)),
        Host(
            HostName.OPENCODE,
            "opencode",
            "opencode",
            _opencode,
            (_RESTART, _OPENCODE_RUN),
            (_RESTART, _OPENCODE_RUN),
            finds_root=lambda _root: True,
        ),
    )
}
