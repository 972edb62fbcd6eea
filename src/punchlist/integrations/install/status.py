"""The state of an installation: which entries exist, and whether the host can run them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.config import HOOK_LOG, PROJECT_FOLDER
from punchlist.errors import PunchlistError
from punchlist.integrations.install.entries import Entry, EntryState
from punchlist.integrations.install.entry_command import NAME, is_executable
from punchlist.integrations.install.host_names import HostName, InstallScope
from punchlist.integrations.install.hosts import HOSTS, Host
from punchlist.integrations.install.installer import (
    DOUBLE_INSTALL,
    Installer,
    data_folder,
    install_location,
)

_SHOWN_LOG_LINES: Final = 3
_MAX_LOG_SIZE: Final = 1_000_000
_STATE_TEXTS: Final = {
    EntryState.OUTDATED: "outdated",
    EntryState.MISSING: "missing",
    EntryState.DISABLED: "hooks are disabled",
    EntryState.FOREIGN: "not made by `punchlist install`",
}
_LISTS_TEXTS: Final = {"plan": "the plan", "checklist": "the checklist", "both": "plan and checklist"}


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    scope: InstallScope
    entries: tuple[tuple[Path, Entry], ...]
    problem: str = ""
    missing_programs: tuple[str, ...] = ()
    trust_problems: tuple[str, ...] = ()
    start_folder: Path | None = None
    """The folder in which the host must be started; None if any will do."""
    folder_notes: tuple[str, ...] = ()
    lists: str | None = None
    """The lists that the installed server offers."""

    @property
    def state(self) -> str:
        if self.problem:
            return "unknown"
        states = {entry.state for _, entry in self.entries}
        if states <= {EntryState.INSTALLED, EntryState.DISABLED} and EntryState.INSTALLED in states:
            return "installed"
        if any(entry.is_active for _, entry in self.entries):
            return "partly"
        return "unknown" if EntryState.UNREADABLE in states else "not installed"

    def active_hooks(self) -> dict[str, Path]:
        """Hooks by name. Servers do not count: a host starts one server per name, but collects hooks."""
        active = (found for found in self.entries if found[1].is_active)
        return {entry.name: path.resolve() for path, entry in active if not entry.name.endswith(f".{NAME}")}

    def as_json(self) -> dict[str, Any]:
        entries = [{"path": str(path), "what": entry.name, "state": entry.state} for path, entry in self.entries]
        return {
            "scope": self.scope,
            "state": self.state,
            "pieces": entries,
            "lists": self.lists,
            "commandMissing": list(self.missing_programs),
            "distrust": list(self.trust_problems),
            "startIn": str(self.start_folder) if self.start_folder else None,
            "problem": self.problem or None,
        }

    def lines(self) -> Iterator[str]:
        offered = f", offers {_LISTS_TEXTS.get(self.lists, self.lists)}" if self.lists else ""
        yield f"  {'this project' if self.scope is InstallScope.PROJECT else 'you':<13} {self.state}{offered}"
        if self.problem:
            yield f"      {self.problem}"
        for path, entry in self.entries:
            if entry.state is EntryState.UNREADABLE:
                yield f"      {entry.name}"
            elif entry.state in _STATE_TEXTS and (entry.state is not EntryState.MISSING or self.state == "partly"):
                yield f"      {_STATE_TEXTS[entry.state]}: {entry.name} in {path}"
        yield from (f"      {line}" for line in (*self.folder_notes, *self.trust_problems))
        for program in self.missing_programs:
            yield f"      {program} does not exist: run `punchlist install` again to update the command."


@dataclass(frozen=True, slots=True)
class HostStatus:
    host: Host
    program: str | None
    scopes: tuple[ScopeStatus, ...]

    @property
    def double_hooks(self) -> list[str]:
        """Hooks that are installed for the project and for the user in different files."""
        project, user = (scope.active_hooks() for scope in self.scopes)
        return [name for name, path in project.items() if user.get(name, path) != path]

    def as_json(self) -> dict[str, Any]:
        return {
            "agent": self.host.name,
            "program": self.program,
            "scopes": [scope.as_json() for scope in self.scopes],
            "hooksTwice": self.double_hooks,
        }

    def lines(self) -> Iterator[str]:
        yield f"{self.host.name} ({self.program or f'`{self.host.program}` is not on the PATH'})"
        for scope in self.scopes:
            yield from scope.lines()
        if self.double_hooks:
            yield f"      Punchlist is installed for you and for this project. {DOUBLE_INSTALL}"


def host_status(name: HostName, root: Path | None, folder: Path, environment: Mapping[str, str]) -> HostStatus:
    """The state of a host for a person in `folder` of the project at `root`."""
    host = HOSTS[name]
    program = shutil.which(host.program, path=environment.get("PATH", os.defpath))
    scopes = tuple(_scope_status(host, scope, root, folder, environment) for scope in InstallScope)
    return HostStatus(host, program, scopes)


def _scope_status(
    host: Host, scope: InstallScope, root: Path | None, folder: Path, environment: Mapping[str, str]
) -> ScopeStatus:
    try:
        installer = Installer(host, install_location(scope, root, environment))
        entries = tuple(installer.entries())
    except PunchlistError as error:
        return ScopeStatus(scope, (), str(error))
    if not any(entry.is_active for _, entry in entries):
        return ScopeStatus(scope, entries)
    commands = (entry.command for _, entry in entries if entry.command)
    return ScopeStatus(
        scope,
        entries,
        missing_programs=tuple(sorted({words[0] for words in commands if not is_executable(words, environment)})),
        trust_problems=tuple(installer.trust_problems()),
        start_folder=installer.start_folder(),
        folder_notes=tuple(installer.folder_notes(folder)),
        lists=installer.offered_lists(),
    )


@dataclass(frozen=True, slots=True)
class HookLog:
    path: Path
    count: int
    last: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "lines": self.count, "last": list(self.last)}


def hook_logs(root: Path | None, environment: Mapping[str, str]) -> list[HookLog]:
    """The hook logs of this project and of the user."""
    folders = [*([root / PROJECT_FOLDER] if root else []), data_folder(environment)]
    logs = list[HookLog]()
    for path in (folder / HOOK_LOG for folder in folders):
        try:
            with path.open("rb") as file:
                lines = file.read(_MAX_LOG_SIZE).decode(errors="replace").splitlines()
        except OSError:
            continue
        if lines:
            logs.append(HookLog(path, len(lines), tuple(lines[-_SHOWN_LOG_LINES:])))
    return logs
