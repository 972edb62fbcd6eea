"""Which running agent of somebody else has which session, when several work in one project.

The first one has the project's usual session. Another that comes while the first still runs gets a
session of its own, so that neither rewrites the other's list. An agent is known by its process, which
is above both the MCP server and the hooks that it starts; a session of the agent's own that is gone on
with later, by the id that its hooks tell.

Between the agent and us there may be a program that we do not know, which started us. It is no agent of its own if one
above it has a seat, by the same name, and is another program on no other terminal. An agent that was started by another
agent goes by another name, or is the same program once more: it has a seat of its own. And what keeps terminals, from
one of which somebody has tried a hook by hand, is not the agent in another of them.

All this is a small file beside the database, or with the user where the database is not the project's own. If it
is lost, or cannot be written, everybody has the usual session.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from punchlist.config import DEFAULT_SESSION, Settings, user_folder
from punchlist.kernel.ids import short_id
from punchlist.kernel.parent_processes import ParentProcess, ancestors, hosts
from punchlist.kernel.process_id import lives, process

FILE: Final = "seats.json"
AGENT_NAME: Final = r"[a-z0-9][a-z0-9-]{0,39}"
_MOST: Final = 200
_LARGEST: Final = 1_000_000
_PATIENCE: Final = 2.0
_SESSION: Final = re.compile(r"\S{1,200}")


@dataclass(slots=True)
class _SessionFile:
    taken: dict[str, str] = field(default_factory=dict)
    """By session, the process that has it."""
    agents: dict[str, str] = field(default_factory=dict)
    """By session, the name that its agent goes by. Older books have none."""
    known: dict[str, str] = field(default_factory=dict)
    """By an agent's own session, ours."""


class HostSessions:
    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._usual = settings.session
        self._file = notes_folder(settings, environment) / FILE

    def find(self, own_session: str | None = None) -> str:
        """The session of the agent that has started us; the usual one, where none is known."""
        book = self._read()
        if not book.taken and not book.known:
            return self._usual
        by_process = {process: session for session, process in book.taken.items()}
        for above in ancestors():
            if (session := by_process.get(process(above.pid))) is not None:
                return session
        return book.known.get(own_session or "", self._usual)

    def take(self, agent: str, own_session: str | None = None) -> str:
        """As `find`; an agent that has none yet is given one."""
        above = hosts()
        if not above or not self._file.parent.is_dir():
            # Nobody has a list yet.
            return self._usual
        try:
            with self._changing() as book:
                me = _counts_as(book, above, agent)
                session = self._choose(book, me, agent, own_session)
                if book.taken.get(session) != me:
                    book.agents.pop(session, None)
                book.taken = {one: who for one, who in book.taken.items() if who != me and _may_live(who)}
                book.taken[session] = me
                book.agents = {one: name for one, name in book.agents.items() if one in book.taken}
                book.agents.setdefault(session, agent)
                if own_session:
                    book.known.pop(own_session, None)
                    book.known[own_session] = session
                return session
        except (OSError, TimeoutError):
            return self.find(own_session)

    def changed(self) -> int | None:
        """Another number after every change; None where nobody has a seat."""
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return None

    def _choose(self, book: _SessionFile, me: str, agent: str, own_session: str | None) -> str:
        def free(session: str) -> bool:
            return book.taken.get(session) in (None, me) or not _may_live(book.taken[session])

        mine = [session for session, who in book.taken.items() if who == me]
        before = book.known.get(own_session or "")
        if before is not None and free(before):
            return before
        if mine:
            return mine[0]
        if free(self._usual):
            return self._usual
        project = "" if self._usual == DEFAULT_SESSION else f"{self._usual}-"
        return f"{project}{agent}-{short_id()}"

    def _read(self) -> _SessionFile:
        try:
            with self._file.open("rb") as file:
                told = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return _SessionFile()
        if not isinstance(told, dict):
            return _SessionFile()
        taken, agents, known = (_texts(told.get(part)) for part in ("taken", "agents", "known"))
        # Somebody may have written into it: a seat that is no session is nobody's.
        return _SessionFile(
            {session: who for session, who in taken.items() if _SESSION.fullmatch(session)},
            agents,
            {own: session for own, session in known.items() if _SESSION.fullmatch(session)},
        )

    @contextmanager
    def _changing(self) -> Iterator[_SessionFile]:
        from filelock import FileLock

        with FileLock(self._file.with_suffix(".lock"), timeout=_PATIENCE):
            book = self._read()
            before = json.dumps(asdict(book))
            yield book
            if json.dumps(asdict(book)) != before:
                self._write(book)

    def _write(self, book: _SessionFile) -> None:
        known = dict(list(book.known.items())[-_MOST:])
        handle, name = tempfile.mkstemp(dir=self._file.parent, prefix=FILE)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({**asdict(book), "known": known}, file, indent=2)
            os.replace(name, self._file)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise


def notes_folder(settings: Settings, environment: Mapping[str, str]) -> Path:
    """Where it is noted who works on the lists of a session. A database elsewhere makes no folder in the project, and
    nor do we: that has one with the user, made here, since there may be a list."""
    own = settings.folder(environment)
    address = settings.database.removeprefix("sqlite:///")
    if "://" not in address and Path(address).expanduser().parent == own:
        return own
    lists = hashlib.sha256(f"{settings.database}\n{settings.session}".encode(errors="surrogateescape")).hexdigest()
    folder = user_folder(environment, "XDG_DATA_HOME", ".local/share") / "beside" / lists[:16]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _counts_as(book: _SessionFile, above: Sequence[ParentProcess], agent: str) -> str:
    """The process that is the agent, of those above us: the nearest, if not one further up has started it for us."""
    sessions = {who: session for session, who in book.taken.items()}
    nearest = process(above[0].pid)
    for place, one in enumerate(above):
        who = process(one.pid)
        if (session := sessions.get(who)) is None:
            continue
        started_for_us = all(
            not one.names & between.names and between.terminal in ("", one.terminal) for between in above[:place]
        )
        return who if started_for_us and book.agents.get(session) == agent else nearest
    return nearest


def _may_live(who: str) -> bool:
    """One of another machine is not waited for: nobody here could ever say that it has gone."""
    try:
        return lives(who) is True
    except ValueError:
        # It is no process at all: somebody has written into the file.
        return False


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
