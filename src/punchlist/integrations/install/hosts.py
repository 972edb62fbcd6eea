"""The supported hosts: which entries belong in which of their files, and what the person has to do afterwards."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from punchlist.errors import ConfigError
from punchlist.integrations.install.entries import HookEntry, ManagedContent, OwnFile, ServerEntry, UneditableFile
from punchlist.integrations.install.entry_command import EntryCommand
from punchlist.integrations.install.host_names import HostName, InstallScope
from punchlist.integrations.install.settings_json import SettingsJson
from punchlist.integrations.install.settings_toml import SettingsToml

_HOOK_TIMEOUT: Final = 20
"""Seconds. A hook takes a fraction of one; the rest is for a busy machine."""
_PASSED_VARIABLES: Final = [
    "PUNCHLIST_DATABASE_URL",
    "PUNCHLIST_SESSION",
    "PUNCHLIST_SYNCHRONOUS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
]
"""The variables that select the lists. Codex passes them all to hooks, but to a server only those that are named."""
_OPENCODE_SCHEMA: Final = {"$schema": "https://opencode.ai/config.json"}
_PLUGIN_COMMAND: Final = 'const COMMAND = ["punchlist"]'


@dataclass(frozen=True, slots=True)
class InstallLocation:
    """A project's folder, or the user's home."""

    scope: InstallScope
    root: Path
    home: Path
    environment: Mapping[str, str]

    def folder(self, name: str, variable: str | None = None) -> Path:
        """A host's folder; for the user, a variable can name another one."""
        named = self.environment.get(variable) if variable and self.scope is InstallScope.USER else None
        return Path(named).absolute() if named else self.root / name


@dataclass(frozen=True, slots=True)
class HostFile:
    """A settings file. Of several possible names, the first that exists is used."""

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
    project_steps: tuple[str, ...]
    """What the person has to do after an installation in a project."""
    user_steps: tuple[str, ...]
    trust_problems: Callable[[InstallLocation, EntryCommand], Iterator[str]] = lambda _location, _command: iter(())
    finds_root: Callable[[Path], bool] = lambda _root: False
    """Whether it reads the settings in a project's root when started in a subfolder."""

    def next_steps(self, scope: InstallScope) -> tuple[str, ...]:
        return self.user_steps if scope is InstallScope.USER else self.project_steps


def _hooks(
    stop: str, prompt: str, start: str, tool: str, timeout: int, *, named: bool = False
) -> tuple[HookEntry, ...]:
    events = ((stop, "stop"), (prompt, "prompt"), (start, "session-start"), (tool, "tool"))
    return tuple(HookEntry(host_event, event, timeout, named) for host_event, event in events)


def _stdio(command: EntryCommand, **more: Any) -> dict[str, Any]:
    return {"command": command.server[0], "args": command.server[1:], **more}


def _claude_code(location: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("Stop", "UserPromptSubmit", "SessionStart", "PostToolUse", _HOOK_TIMEOUT)
    # Claude Code can defer the tools of servers until a model searches for them; a list must be in view.
    server = ServerEntry("mcpServers", {"type": "stdio", **_stdio(command), "alwaysLoad": True})
    folder = location.folder(".claude", "CLAUDE_CONFIG_DIR")
    if location.scope is InstallScope.PROJECT:
        servers = location.root / ".mcp.json"
    elif location.environment.get("CLAUDE_CONFIG_DIR"):
        servers = folder / ".claude.json"
    else:
        servers = location.root / ".claude.json"
    return [
        HostFile((folder / "settings.json",), SettingsJson(command, hooks, off_switch=(("disableAllHooks",), True))),
        HostFile((servers,), SettingsJson(command, server=server)),
    ]


def _codex(location: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("Stop", "UserPromptSubmit", "SessionStart", "PostToolUse", _HOOK_TIMEOUT)
    # If the server is not required, a turn can begin before its tools are available.
    server = ServerEntry("mcp_servers", _stdio(command, required=True, env_vars=_PASSED_VARIABLES))
    folder = location.folder(".codex", "CODEX_HOME")
    return [
        HostFile((folder / "hooks.json",), SettingsJson(command, hooks)),
        HostFile((folder / "config.toml",), SettingsToml(command, server)),
    ]


def _codex_trust_problems(location: InstallLocation, command: EntryCommand) -> Iterator[str]:
    """Codex silently skips what the person has not trusted.

    The user's own settings have `[projects."/path"] trust_level = "trusted"`, and for each hook
    `[hooks.state."/path/hooks.json:stop:0:0"] trusted_hash = "…"`. Only Codex can check the hash.
    """
    home = location.environment.get("CODEX_HOME")
    config_file = (Path(home).absolute() if home else location.home / ".codex") / "config.toml"
    try:
        config = tomllib.loads(config_file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        config = {}
    roots = (location.root, location.root.resolve())
    trusted = any(_table(config, "projects", str(root)).get("trust_level") == "trusted" for root in roots)
    if location.scope is InstallScope.PROJECT and not trusted:
        yield "Codex does not trust this project yet: start `codex` here and trust it."
    for file in _codex(location, command):
        if isinstance(file.content, SettingsJson):
            yield from _hook_problems(file.path, file.content, config)


def _hook_problems(file: Path, content: SettingsJson, config: Mapping[str, Any]) -> Iterator[str]:
    try:
        positions = content.hook_positions(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, UneditableFile):
        return
    trusted = [
        any(
            "trusted_hash" in _table(config, "hooks", "state", f"{path}:{_snake_case(event)}:{group}:{index}")
            for path in (file, file.resolve())
        )
        for event, group, index in positions
    ]
    if not all(trusted):
        yield (
            f"{trusted.count(False)} of {len(trusted)} hooks are not accepted in Codex yet, which skips them: "
            "start `codex` and accept them (/hooks)."
        )


def _table(tables: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for key in path:
        found = tables.get(key)
        tables = found if isinstance(found, Mapping) else {}
    return tables


def _snake_case(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _in_repository(root: Path) -> bool:
    """Codex searches upwards within a repository only."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _gemini(location: InstallLocation, command: EntryCommand) -> list[HostFile]:
    hooks = _hooks("AfterAgent", "BeforeAgent", "SessionStart", "AfterTool", _HOOK_TIMEOUT * 1000, named=True)
    server = ServerEntry("mcpServers", _stdio(command))
    folder = location.folder(".gemini")
    if location.scope is InstallScope.USER and (home := location.environment.get("GEMINI_CLI_HOME")):
        folder = Path(home).absolute() / ".gemini"
    content = SettingsJson(command, hooks, server, off_switch=(("hooksConfig", "enabled"), False))
    return [HostFile((folder / "settings.json",), content)]


def _opencode(location: InstallLocation, command: EntryCommand) -> list[HostFile]:
    server = ServerEntry("mcp", {"type": "local", "command": command.server, "enabled": True})
    if location.scope is InstallScope.PROJECT:
        folder, plugins = location.root, location.root / ".opencode"
    else:
        base = location.environment.get("XDG_CONFIG_HOME")
        folder = plugins = (Path(base) if base else location.root / ".config") / "opencode"
    names = (folder / "opencode.json", folder / "opencode.jsonc")
    plugin = OwnFile("plugin", opencode_plugin(command), command.program)
    return [
        HostFile(names, SettingsJson(command, server=server, initial=_OPENCODE_SCHEMA)),
        HostFile((plugins / "plugins" / "punchlist.js",), plugin),
    ]


def opencode_plugin(command: EntryCommand) -> str:
    """The plugin's source with our command in it."""
    plugin = resources.files("punchlist.integrations.install").joinpath("opencode_plugin.js")
    try:
        source = plugin.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"opencode_plugin.js: is missing from this installation ({error.strerror}). Install Punchlist again."
        ) from error
    return source.replace(_PLUGIN_COMMAND, f"const COMMAND = {json.dumps(list(command.program))}", 1)


_CODEX_HOOKS: Final = (
    "Codex silently skips hooks that you have not accepted: start `codex` once and accept them (/hooks)."
)
_OPENCODE_STEPS: Final = (
    "Restart open sessions to use it.",
    "A bare `opencode run` ends at the first stop; continuing until the list is clear works in `opencode`, `serve` "
    "and `web`.",
)

HOSTS: Final = {
    host.name: host
    for host in (
        Host(
            HostName.CLAUDE_CODE,
            "Claude Code",
            "claude",
            _claude_code,
            ("Claude Code asks once whether to use this project's MCP server: answer yes.",),
            (
                "Claude Code writes ~/.claude.json while it runs: if `punchlist status` misses the server there, close "
                "Claude Code and install again.",
            ),
        ),
        Host(
            HostName.CODEX,
            "Codex",
            "codex",
            _codex,
            ("Codex reads a project's settings only if you trust the project: it asks when it starts.", _CODEX_HOOKS),
            (_CODEX_HOOKS,),
            _codex_trust_problems,
            _in_repository,
        ),
        Host(
            HostName.GEMINI,
            "Gemini CLI",
            "gemini",
            _gemini,
            ("Gemini CLI reads a project's settings only if you trust the folder: it asks when it starts.",),
            ("Gemini CLI uses it in folders that you trust. Restart open sessions to use it.",),
        ),
        Host(
            HostName.OPENCODE,
            "opencode",
            "opencode",
            _opencode,
            _OPENCODE_STEPS,
            _OPENCODE_STEPS,
            finds_root=lambda _root: True,
        ),
    )
}
