"""Maps each running host agent to a session, so that several agents in one project do not overwrite one list.

The first agent gets the project's default session. An agent that starts while the first one runs gets a session of
its own. An agent is identified by its process, which is an ancestor of both the MCP server and the hooks that it
starts; a host session that is resumed later is identified by the id that its hooks report.

An unknown program may run between the agent and us. It is not an agent of its own if a process above it owns a session
under the same agent name, is a different program, and runs on the same terminal or on none. An agent that another
agent started has another name, or is the same program again: it gets its own session. A terminal multiplexer in which
someone once tried a hook does not become the agent of its other terminals.

The map is a small file beside the database, or in the user's data folder if the database is outside the project. If
it is lost or cannot be written, every agent uses the default session.
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

from punchlist.config import DEFAULT_SESSION, Settings
from punchlist.kernel.ids import short_id
from punchlist.kernel.processes import (
    ParentProcess,
    ancestors,
    current_process,
    host_processes,
    is_running,
    process_identity,
)
from punchlist.trust import user_folder

FILE_NAME: Final = "host_sessions.json"
AGENT_NAME: Final = r"[a-z0-9][a-z0-9-]{0,39}"
_MAX_KNOWN: Final = 200
_MAX_FILE_SIZE: Final = 1_000_000
_LOCK_TIMEOUT: Final = 2.0
_COUNTER_FOLDER: Final = "uses"
_COUNTER_NAME: Final = re.compile("[0-9a-f]{16}")
_MAX_COUNTER_AGE: Final = 7 * 24 * 3600.0
_SESSION: Final = re.compile(r"\S{1,200}")
_OFFER: Final = re.compile(r"(plan|checklist) (\S{1,200})")


@dataclass(slots=True)
class _SessionFile:
    taken: dict[str, str] = field(default_factory=dict)
    """Session to the process that owns it."""
    agents: dict[str, str] = field(default_factory=dict)
    """Session to the name of its agent."""
    known: dict[str, str] = field(default_factory=dict)
    """Host session to our session."""
    offers: dict[str, str] = field(default_factory=dict)
    """MCP server that offers one kind of list only, to that kind and its session."""


class HostSessions:
    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._default = settings.session
        self._file = session_folder(settings, environment) / FILE_NAME

    def find(self, host_session: str | None = None) -> str:
        """The session of the agent that started this process, or the default session."""
        stored = self._read()
        if not stored.taken and not stored.known:
            return self._default
        by_process = {owner: session for session, owner in stored.taken.items()}
        for parent in ancestors():
            if (session := by_process.get(process_identity(parent.pid))) is not None:
                return session
        return stored.known.get(host_session or "", self._default)

    def agent_among(self, processes: Sequence[ParentProcess]) -> int | None:
        """The first of these processes that is an agent with a session here; None if none is."""
        owners = set(self._read().taken.values())
        return next((one.pid for one in processes if owners and process_identity(one.pid) in owners), None)

    def running(self) -> dict[str, str]:
        """The sessions of third-party agents that run now, with the names of the agents."""
        stored = self._read()
        return {session: stored.agents.get(session, "agent") for session, owner in stored.taken.items() if _runs(owner)}

    def acquire(self, agent: str, host_session: str | None = None) -> str:
        """As `find`, but an agent without a session gets one."""
        parents = host_processes()
        if not parents or not self._file.parent.is_dir():
            return self._default
        try:
            with self._locked() as stored:
                owner = _agent_process(stored, parents, agent)
                session = self._choose(stored, owner, agent, host_session)
                if stored.taken.get(session) != owner:
                    stored.agents.pop(session, None)
                stored.taken = {key: other for key, other in stored.taken.items() if other != owner and _runs(other)}
                stored.taken[session] = owner
                stored.agents = {key: name for key, name in stored.agents.items() if key in stored.taken}
                stored.agents.setdefault(session, agent)
                if host_session:
                    stored.known.pop(host_session, None)
                    stored.known[host_session] = session
                return session
        except (OSError, TimeoutError):
            return self.find(host_session)

    def record_offer(self, session: str, lists: str) -> None:
        """This process serves one kind of list, `plan` or `checklist`, to the agent of a session."""
        if not self._file.parent.is_dir():
            return
        with suppress(OSError, TimeoutError), self._locked() as stored:
            stored.offers = {server: offer for server, offer in stored.offers.items() if _runs(server)}
            stored.offers[current_process()] = f"{lists} {session}"

    def offered_lists(self, session: str) -> str | None:
        """The only kind of list that the agents of a session are served; None if that is both, or unknown."""
        offers = {server: _OFFER.fullmatch(offer) for server, offer in self._read().offers.items()}
        kinds = {offer[1] for server, offer in offers.items() if offer and offer[2] == session and _runs(server)}
        return kinds.pop() if len(kinds) == 1 else None

    def version(self) -> int | None:
        """Differs after every change of the file; None if there is no file."""
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return None

    def _choose(self, stored: _SessionFile, owner: str, agent: str, host_session: str | None) -> str:
        def is_free(session: str) -> bool:
            return stored.taken.get(session) in (None, owner) or not _runs(stored.taken[session])

        previous = stored.known.get(host_session or "")
        if previous is not None and is_free(previous):
            return previous
        current = next((session for session, other in stored.taken.items() if other == owner), None)
        if current is not None:
            return current
        if is_free(self._default):
            return self._default
        prefix = "" if self._default == DEFAULT_SESSION else f"{self._default}-"
        return f"{prefix}{agent}-{short_id()}"

    def _read(self) -> _SessionFile:
        """Entries that are not valid are ignored: the project's files may come from another author."""
        try:
            with self._file.open("rb") as file:
                raw = json.loads(file.read(_MAX_FILE_SIZE))
        except (OSError, ValueError, RecursionError):
            return _SessionFile()
        if not isinstance(raw, dict):
            return _SessionFile()
        taken, agents, known, offers = (_strings(raw.get(key)) for key in ("taken", "agents", "known", "offers"))
        return _SessionFile(
            {session: owner for session, owner in taken.items() if _SESSION.fullmatch(session)},
            agents,
            {host_session: session for host_session, session in known.items() if _SESSION.fullmatch(session)},
            offers,
        )

    @contextmanager
    def _locked(self) -> Iterator[_SessionFile]:
        from filelock import FileLock

        with FileLock(self._file.with_suffix(".lock"), timeout=_LOCK_TIMEOUT):
            stored = self._read()
            before = json.dumps(asdict(stored))
            yield stored
            if json.dumps(asdict(stored)) != before:
                self._write(stored)

    def _write(self, stored: _SessionFile) -> None:
        known = dict(list(stored.known.items())[-_MAX_KNOWN:])
        handle, name = tempfile.mkstemp(dir=self._file.parent, prefix=FILE_NAME)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({**asdict(stored), "known": known}, file, indent=2)
            os.replace(name, self._file)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise


class ToolCounter:
    """Counts an agent's tool calls since it last touched its list: a file with one byte per call.

    It is called after every tool call, so it does not open the database.
    """

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder / _COUNTER_FOLDER
        self._file = self._folder / hashlib.sha256(session.encode()).hexdigest()[:16]

    def increment(self) -> int:
        """Return the new count; 0 if it cannot be stored."""
        try:
            self._folder.mkdir(exist_ok=True)
            if self._folder.is_symlink():
                return 0
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return 0
        try:
            os.write(handle, b".")
            return os.fstat(handle).st_size
        except OSError:
            return 0
        finally:
            os.close(handle)

    def is_started(self) -> bool:
        return self._file.exists()

    def clear(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def remove_old(self, now: float) -> None:
        """Delete the counters of old sessions.

        The folder belongs to a project that may come from another author: a symbolic link is not followed, and only
        files with a counter's name are deleted.
        """
        with suppress(OSError):
            for file in () if self._folder.is_symlink() else self._folder.iterdir():
                if _COUNTER_NAME.fullmatch(file.name) and now - file.lstat().st_mtime > _MAX_COUNTER_AGE:
                    file.unlink(missing_ok=True)


def session_folder(settings: Settings, environment: Mapping[str, str]) -> Path:
    """The folder for a session's small files: beside the project's database, or else in the user's data folder.

    A database outside the project creates no folder in the project.
    """
    own = settings.folder(environment)
    path = settings.database.removeprefix("sqlite:///")
    if "://" not in path and Path(path).expanduser().parent == own:
        return own
    digest = hashlib.sha256(f"{settings.database}\n{settings.session}".encode(errors="surrogateescape")).hexdigest()
    folder = user_folder(environment, "XDG_DATA_HOME", ".local/share") / "beside" / digest[:16]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _agent_process(stored: _SessionFile, parents: Sequence[ParentProcess], agent: str) -> str:
    """The process that is the agent: the nearest parent, unless a session owner above it started it for us."""
    sessions = {owner: session for session, owner in stored.taken.items()}
    nearest = process_identity(parents[0].pid)
    for index, parent in enumerate(parents):
        owner = process_identity(parent.pid)
        if (session := sessions.get(owner)) is None:
            continue
        only_wrappers_between = all(
            not parent.names & between.names and between.terminal in ("", parent.terminal)
            for between in parents[:index]
        )
        return owner if only_wrappers_between and stored.agents.get(session) == agent else nearest
    return nearest


def _runs(owner: str) -> bool:
    """False also for a process of another machine, whose end could not be noticed here."""
    try:
        return is_running(owner) is True
    except ValueError:
        return False


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
