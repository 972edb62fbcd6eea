"""How an installation stands: which of its pieces are there, and whether anybody could run them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.config import HOOK_LOG, PROJECT_FOLDER
from punchlist.errors import PunchlistError
from punchlist.integrations.install.entry_command import NAME, starts
from punchlist.integrations.install.host_names import HostName
from punchlist.integrations.install.hosts import HOSTS, Host, InstallScope
from punchlist.integrations.install.installer import TWICE, Installer, data_folder, place

LAST_LINES: Final = 3
_LARGEST_LOG: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class EntryStatus:
    """One of our entries, and how it is: there, old, missing, of somebody else, unreadable."""

    path: Path
    what: str
    how: str
    words: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        return self.how in ("there", "old")

    @property
    def is_server(self) -> bool:
        """Of servers, a host starts one by each name, wherever that is written; hooks it collects."""
        return self.what.endswith(f".{NAME}")

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "what": self.what, "state": self.how}


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    scope: InstallScope
    pieces: tuple[EntryStatus, ...]
    problem: str = ""
    lost: tuple[str, ...] = ()
    """Programs that are written there and are not to be found."""
    distrust: tuple[str, ...] = ()
    start_in: Path | None = None
    """The folder that the host has to be started in; None if any will do."""
    elsewhere: tuple[str, ...] = ()
    """What somebody should know who is not there."""

    @property
    def state(self) -> str:
        if self.problem:
            return "unknown"
        states = {piece.how for piece in self.pieces}
        if states <= {"there", "switched off"} and "there" in states:
            return "installed"
        if states & {"there", "old"}:
            return "partly"
        return "unknown" if "unreadable" in states else "not installed"

    def hooks(self) -> dict[str, Path]:
        """Those that are there, and where."""
        return {one.what: one.path.resolve() for one in self.pieces if one.is_live and not one.is_server}

    def as_json(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "state": self.state,
            "pieces": [piece.as_json() for piece in self.pieces],
            "commandMissing": list(self.lost),
            "distrust": list(self.distrust),
            "startIn": str(self.start_in) if self.start_in else None,
            "problem": self.problem or None,
        }

    def lines(self) -> Iterator[str]:
        yield f"  {'this project' if self.scope is InstallScope.PROJECT else 'you':<13} {self.state}"
        if self.problem:
            yield f"      {self.problem}"
        told = _HOW if self.state == "partly" else _HOW.keys() - {"missing"}
        for piece in self.pieces:
            if piece.how == "unreadable":
                yield f"      {piece.what}"
            elif piece.how in told:
                yield f"      {_HOW[piece.how]}: {piece.what} in {piece.path}"
        yield from (f"      {line}" for line in (*self.elsewhere, *self.distrust))
        for program in self.lost:
            yield f"      {program} is not there any more: install again to bring it up to date."


_HOW: Final = {
    "old": "out of date",
    "missing": "missing",
    "switched off": "hooks are switched off",
    "of somebody else": "not made by `punchlist install`",
}


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One host, in both scopes."""

    host: Host
    program: str | None
    scopes: tuple[ScopeStatus, ...]

    def as_json(self) -> dict[str, Any]:
        scopes = [one.as_json() for one in self.scopes]
        return {"agent": self.host.name, "program": self.program, "scopes": scopes, "hooksTwice": self.twice}

    @property
    def twice(self) -> list[str]:
        """The hooks that are there for the project and for the user, in files of their own."""
        project, user = (scope.hooks() for scope in self.scopes)
        return [what for what, path in project.items() if user.get(what, path) != path]

    def lines(self) -> Iterator[str]:
        there = self.program or f"`{self.host.program}` is not on the PATH"
        yield f"{self.host.name} ({there})"
        for scope in self.scopes:
            yield from scope.lines()
        if self.twice:
            yield f"      It is installed for you and for this project. {TWICE}"


def standing(name: HostName, root: Path | None, folder: Path, environment: Mapping[str, str]) -> HostStatus:
    """How a host stands, for somebody who is in a folder of a project."""
    host = HOSTS[name]
    program = shutil.which(host.program, path=environment.get("PATH", os.defpath))
    return HostStatus(host, program, tuple(_in_scope(host, scope, root, folder, environment) for scope in InstallScope))


def _in_scope(
    host: Host, scope: InstallScope, root: Path | None, folder: Path, environment: Mapping[str, str]
) -> ScopeStatus:
    try:
        there = Installer(host, place(scope, root, environment))
        pieces = tuple(EntryStatus(*one) for one in there.state())
    except PunchlistError as error:
        return ScopeStatus(scope, (), str(error))
    if not any(piece.is_live for piece in pieces):
        return ScopeStatus(scope, pieces)
    programs = {piece.words[0] for piece in pieces if piece.words and not starts(piece.words, environment)}
    return ScopeStatus(
        scope,
        pieces,
        lost=tuple(sorted(programs)),
        distrust=tuple(there.distrust()),
        start_in=there.start_in(),
        elsewhere=tuple(there.seen_from(folder)),
    )


@dataclass(frozen=True, slots=True)
class HookLog:
    path: Path
    count: int
    last: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "lines": self.count, "last": list(self.last)}


def hook_logs(root: Path | None, environment: Mapping[str, str]) -> list[HookLog]:
    """What hooks had to complain of, in this project and wherever there was none."""
    places = [root / PROJECT_FOLDER] if root else []
    logs = list[HookLog]()
    for path in (folder / HOOK_LOG for folder in (*places, data_folder(environment))):
        try:
            with path.open("rb") as file:
                lines = file.read(_LARGEST_LOG).decode(errors="replace").splitlines()
        except OSError:
            continue
        if lines:
            logs.append(HookLog(path, len(lines), tuple(lines[-LAST_LINES:])))
    return logs
