"""The lifecycle of a run in the background."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import ANYBODY, NEW, Lifecycle


class RunStatus(StrEnum):
    QUEUED = "queued"
    # Given to the engine; a worker begins with it as soon as one is free.
    DISPATCHED = "dispatched"
    RUNNING = "running"
    # For a person, a time or an event; nobody has it in hand.
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class RunAction(StrEnum):
    QUEUE = "queue"
    DISPATCH = "dispatch"
    BEGIN = "begin"
    WAIT = "wait"
    WAKE = "wake"
    PAUSE = "pause"
    RESUME = "resume"
    REDIRECT = "redirect"
    FINISH = "finish"
    FAIL = "fail"
    STOP = "stop"


OPEN: Final = tuple(
    status for status in RunStatus if status not in (RunStatus.DONE, RunStatus.FAILED, RunStatus.STOPPED)
)
_LEADS: Final = frozenset({Role.PERSON, Role.LEAD, Role.SYSTEM})
_ENGINE: Final = frozenset({Role.SYSTEM})

RUN: Final = Lifecycle(
    "run",
    {
        (NEW, RunAction.QUEUE): RunStatus.QUEUED,
        (RunStatus.QUEUED, RunAction.DISPATCH): RunStatus.DISPATCHED,
        (RunStatus.DISPATCHED, RunAction.BEGIN): RunStatus.RUNNING,
        # By another worker, when the first has died.
        (RunStatus.RUNNING, RunAction.BEGIN): RunStatus.RUNNING,
        (RunStatus.RUNNING, RunAction.WAIT): RunStatus.WAITING,
        (RunStatus.WAITING, RunAction.WAKE): RunStatus.QUEUED,
        **{(status, RunAction.PAUSE): RunStatus.PAUSED for status in OPEN if status is not RunStatus.PAUSED},
        (RunStatus.PAUSED, RunAction.RESUME): RunStatus.QUEUED,
        (RunStatus.WAITING, RunAction.RESUME): RunStatus.QUEUED,
        (RunStatus.FAILED, RunAction.RESUME): RunStatus.QUEUED,
        **{(status, RunAction.REDIRECT): status for status in OPEN},
        (RunStatus.RUNNING, RunAction.FINISH): RunStatus.DONE,
        (RunStatus.RUNNING, RunAction.FAIL): RunStatus.FAILED,
        (RunStatus.DISPATCHED, RunAction.FAIL): RunStatus.FAILED,
        **{(status, RunAction.STOP): RunStatus.STOPPED for status in OPEN},
    },
    allowed={
        RunAction.QUEUE: ANYBODY,
        **dict.fromkeys((RunAction.PAUSE, RunAction.RESUME, RunAction.REDIRECT, RunAction.STOP), _LEADS),
        **dict.fromkeys(
            (RunAction.DISPATCH, RunAction.BEGIN, RunAction.WAIT, RunAction.WAKE, RunAction.FINISH, RunAction.FAIL),
            _ENGINE,
        ),
    },
)
