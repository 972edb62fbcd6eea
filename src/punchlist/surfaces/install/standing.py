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
from punchlist.surfaces.install.command import starts
from punchlist.surfaces.install.hosts import HOSTS, Host, Scope
from punchlist.surfaces.install.installing import Installation, data_folder, place
from punchlist.surfaces.install.names import HostName

LAST_LINES: Final = 3
_LARGEST_LOG: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One of our entries, and how it is: there, old, missing, of somebody else, unreadable."""

    path: Path
    what: str
    how: str
    words: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "what": self.what, "state": self.how}


@dataclass(frozen=True, slots=True)
class ScopeStanding:
    scope: Scope
    pieces: tuple[Piece, ...]
    problem: str = ""
    lost: tuple[str, ...] = ()
    """Programs that are written there and are not to be found."""
    distrust: tuple[str, ...] = ()

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

    def as_json(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "state": self.state,
            "pieces": [piece.as_json() for piece in self.pieces],
            "commandMissing": list(self.lost),
            "distrust": list(self.distrust),
            "problem": self.problem or None,
        }

    def lines(self) -> Iterator[str]:
        yield f"  {'this project' if self.scope is Scope.PROJECT else 'you':<13} {self.state}"
        if self.problem:
            yield f"      {self.problem}"
        told = _HOW if self.state == "partly" else _HOW.keys() - {"missing"}
        for piece in self.pieces:
            if piece.how == "unreadable":
                yield f"      {piece.what}"
            elif piece.how in told:
                yield f"      {_HOW[piece.how]}: {piece.what} in {piece.path}"
        yield from (f"      {reason}" for reason in self.distrust)
        for program in self.lost:
            yield f"      {program} is not there any more: install again to bring it up to date."


_HOW: Final = {
    "old": "out of date",
    "missing": "missing",
    "switched off": "hooks are switched off",
    "of somebody else": "not made by `punchlist install`",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One host, in both scopes."""

    host: Host
    program: str | None
    scopes: tuple[ScopeStanding, ...]

    def as_json(self) -> dict[str, Any]:
        scopes = [one.as_json() for one in self.scopes]
        return {"agent": self.host.name, "program": self.program, "scopes": scopes}

    def lines(self) -> Iterator[str]:
        there = self.program or f"`{self.host.program}` is not on the PATH"
        yield f"{self.host.name} ({there})"
        for scope in self.scopes:
            yield from scope.lines()


def standing(name: HostName, root: Path | None, environment: Mapping[str, str]) -> Standing:
    host = HOSTS[name]
    program = shutil.which(host.program, path=environment.get("PATH", os.defpath))
    return Standing(host, program, tuple(_in_scope(host, scope, root, environment) for scope in Scope))


def _in_scope(host: Host, scope: Scope, root: Path | None, environment: Mapping[str, str]) -> ScopeStanding:
    try:
        there = Installation(host, place(scope, root, environment))
        pieces = tuple(Piece(*one) for one in there.state())
    except PunchlistError as error:
        return ScopeStanding(scope, (), str(error))
    distrust = there.distrust() if any(piece.how in ("there", "old") for piece in pieces) else ()
    programs = {piece.words[0] for piece in pieces if piece.words and not starts(piece.words, environment)}
    return ScopeStanding(scope, pieces, lost=tuple(sorted(programs)), distrust=tuple(distrust))


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
