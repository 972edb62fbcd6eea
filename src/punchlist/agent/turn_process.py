"""Turns in processes of their own, for surfaces that may be closed or killed at any moment.

`start_turn` starts a detached `punchlist run`. Nothing connects it to the process that started it: approvals, messages,
interruption, streamed text and the result all go through the database. All functions block for a short time; call them
in a thread from asynchronous code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent import turn_start
from punchlist.config import current_user
from punchlist.conversations import repository
from punchlist.conversations.interrupts import request_interrupt
from punchlist.conversations.model import LastMessage, Scope, StoredTurn
from punchlist.conversations.service import check_unowned
from punchlist.errors import ConfigError, Conflict, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel import orphans
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.ids import short_id
from punchlist.kernel.processes import process_identity
from punchlist.kernel.text import visible_block
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RunStatus

if TYPE_CHECKING:
    from punchlist.app import Services

START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.03
KEPT_LOGS: Final = 50
MAX_ERROR_LENGTH: Final = 4_000
INTERRUPTED: Final = "a person interrupted it"
_LOG_NAME: Final = "turn-{}.log"
_ERRORS: Final = {error.code: error for error in (ConfigError, Conflict, InvalidInput, NotAllowed, NotFound)}


_Progress = tuple[StoredTurn | None, LastMessage | None]


class TurnNotStarted(PunchlistError):
    """The process of a turn ended, or began no turn in time; the message has its error."""

    code = "turn_not_started"


@dataclass(frozen=True, slots=True)
class StartedTurn:
    turn: StoredTurn
    """As it was first seen; it may have ended meanwhile."""
    pid: int
    log: Path
    """What the process prints: errors, and its result as JSON."""


def start_turn(
    services: Services,
    session: str | None,
    goal: str | None = None,
    *,
    model: str | None = None,
    mode: str | None = None,
    agent: str | None = None,
    until: str | None = None,
    resume: bool = False,
    queued: bool = False,
    continues: bool | None = None,
    continuations: int | None = None,
    folder: Path | None = None,
    wait_seconds: float = START_SECONDS,
) -> StartedTurn:
    """Start a turn in a detached process, and return when it is in the database.

    - with `goal`: a new turn in `session`; `None` as session begins a new one
    - `resume`: continue the interrupted or waiting turn; after one that has ended, a new turn with its open items
    - `queued`: deliver the next queued message
    - none of them: finish what is open in the session, else deliver a queued message

    After the turn, the process delivers queued messages. `folder` is the workspace; default: the current folder.
    Raises `Conflict` if a process works in the session already, `TurnNotStarted` or the error of the process (no model,
    nothing to resume) if it begins no turn.
    """
    if goal is not None and not goal.strip():
        raise InvalidInput("goal: must not be empty")
    if sum((goal is not None, resume, queued)) > 1:
        raise InvalidInput("goal, resume, queued: only one of them can be given")
    session = session or services.new_session()
    before = services.conversations.current_turn(session)
    if before is not None:
        check_unowned(before)
    options: dict[str, Any] = {
        "session": session,
        "model": model,
        "mode": mode,
        "agent": agent,
        "until": until,
        "resume": resume,
        "queued": queued,
        "auto-complete-todos": continues,
        "max-todo-continuations": continuations,
    }
    arguments = ["run", "--json", "--wait", *_flags(options), *([] if goal is None else ["-"])]
    log = _new_log(services.settings.outputs(os.environ))
    last = _progress(services, session)
    process = _spawn(services, arguments, goal or "", folder or Path.cwd(), log)
    turn = _await_turn(services, session, process, last, log, wait_seconds)
    return StartedTurn(turn, process.pid, log)


def interrupt_turn(
    services: Services, session: str, *, actor: Actor | None = None, reason: str = INTERRUPTED
) -> StoredTurn | None:
    """Cancel the open turn of a session, from any process; None if no turn is open.

    The process that works on it cancels the model's stream and running tools, and ends the turn as `cancelled`, within
    a second; the end is an event of the conversation. A turn that waits is ended at once, with its approvals.
    A run of a mission is stopped (M11). `actor` is the person who asks; default: the user of this process.
    """
    scope = Scope(session, actor or Actor(Role.PERSON, current_user()))
    with services.store.read() as tx:
        runs = [run for run in run_repository.open_in_chat(tx, scope.conversation_id) if run.turn_id is not None]
    if runs:
        # The one that works; if none does, the one that came last.
        run = next((run for run in runs if run.status is RunStatus.RUNNING), runs[-1])
        services.runs.stop(scope, run.id, reason)
        return services.conversations.turn(str(run.turn_id))
    return request_interrupt(services.store, scope, reason)


# --- the process --------------------------------------------------------------------------------------------


def _flags(options: dict[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        match value:
            case None:
                pass
            case True:
                yield f"--{name}"
            case False if name == "auto-complete-todos":
                yield f"--no-{name}"
            case False:
                pass
            case _:
                # One word, so that a value cannot be read as an option.
                yield f"--{name}={value}"


def _spawn(services: Services, arguments: list[str], goal: str, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    settings = services.settings
    environment = {
        **os.environ,
        # The services were given their settings; the current folder may say something else.
        "PUNCHLIST_DATABASE_URL": settings.database,
        "PUNCHLIST_SYNCHRONOUS": settings.synchronous,
        "PUNCHLIST_POOL_SIZE": str(settings.pool_size),
        turn_start.VARIABLE: turn_start.sign_start(services.trust, arguments),
    }
    # A file without a name: a goal can be longer than a command line, and a pipe would need a writer that stays.
    with tempfile.TemporaryFile() as stdin, log.open("ab") as output, orphans.starting() as add:
        stdin.write(goal.encode("utf-8", errors="surrogatepass"))
        stdin.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "punchlist", *arguments],
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,
            close_fds=True,
        )
        add(process.pid)
    # Reaps the process: a zombie would still look alive.
    threading.Thread(target=_reap, args=(process,), name=f"turn process {process.pid}", daemon=True).start()
    return process


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    orphans.forget(process.pid)


def _progress(services: Services, session: str) -> _Progress:
    with services.store.read() as tx:
        return repository.last_top_turn(tx, session), repository.last_message(tx, session)


def _await_turn(
    services: Services,
    session: str,
    process: subprocess.Popen[bytes],
    before: _Progress,
    log: Path,
    wait_seconds: float,
) -> StoredTurn:
    """The turn that the process works on, or has worked on if it has ended already."""
    owner, until = process_identity(process.pid), time.monotonic() + wait_seconds
    while True:
        # Read before the turn: what the process wrote before it ended is seen.
        ended = process.poll() is not None
        now = _progress(services, session)
        turn = now[0]
        # A turn without an owner has ended, or it waits already.
        if turn is not None and (turn.owner == owner or (turn.owner is None and now != before)):
            return turn
        if ended:
            raise _error(log, process.returncode)
        if time.monotonic() >= until:
            raise TurnNotStarted(
                f"Process {process.pid} has begun no turn in session {session!r} within {wait_seconds:g} s. It goes "
                f"on; its output is in {log}."
            )
        time.sleep(POLL_SECONDS)


def _error(log: Path, code: int) -> PunchlistError:
    """The error that the process printed."""
    printed = log.read_text(encoding="utf-8", errors="replace")
    with suppress(ValueError, KeyError, TypeError):
        told = json.JSONDecoder().raw_decode(printed[printed.index('{\n  "error"') :])[0]["error"]
        return _ERRORS.get(told["code"], TurnNotStarted)(told["message"])
    for start in ("punchlist: ", "Error: "):
        _, found, message = printed.rpartition(start)
        if found:
            return TurnNotStarted(visible_block(message.strip()[:MAX_ERROR_LENGTH]))
    return TurnNotStarted(f"The process of the turn ended with exit code {code}. Its output is in {log}.")


def _new_log(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Names begin with the time of their creation.
    for old in sorted(folder.glob(_LOG_NAME.format("*")))[: -KEPT_LOGS + 1]:
        with suppress(OSError):
            old.unlink()
    log = folder / _LOG_NAME.format(f"{time.time_ns() // 1_000_000}-{short_id()}")
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return log
