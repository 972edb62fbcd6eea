"""The lifecycle of a background run.

People and Leads request control (pause, stop, a message); the worker that owns the run carries the request out and
then changes the status. A stop of a run without a live owner takes effect at once.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle


class RunStatus(StrEnum):
    QUEUED = "queued"
    # Enqueued in the durable engine; the next free worker starts it.
    DISPATCHED = "dispatched"
    RUNNING = "running"
    # For a person, a time or an event.
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class RunAction(StrEnum):
    QUEUE = "queue"
    DISPATCH = "dispatch"
    # Also by a second worker after the first one died.
    BEGIN = "begin"
    SET_TURN = "at"
    ADD_USAGE = "spend"
    WAIT = "wait"
    WAKE = "wake"
    CONTROL = "ask"
    PAUSE = "pause"
    RESUME = "resume"
    FINISH = "finish"
    FAIL = "fail"
    STOP = "stop"
    RETRY = "retry"
    # The result of a delegation has reached the agent that delegated.
    DELIVER = "deliver"


class ControlRequest(StrEnum):
    PAUSE = "pause"
    STOP = "stop"


OPEN: Final = tuple(
    status for status in RunStatus if status not in (RunStatus.DONE, RunStatus.FAILED, RunStatus.STOPPED)
)
OWNED: Final = (RunStatus.RUNNING, RunStatus.WAITING, RunStatus.PAUSED)
"""States in which a worker owns the run."""
WORKING: Final = (RunStatus.DISPATCHED, RunStatus.RUNNING)
"""States in which a run has its chat to itself."""
RESTING: Final = (RunStatus.WAITING, RunStatus.PAUSED)
"""States in which a run leaves its chat to others."""
_CONTROLLERS: Final = frozenset({Role.PERSON, Role.LEAD, Role.SYSTEM})

RUN: Final = Lifecycle(
    "run",
    {
        (NEW, RunAction.QUEUE): RunStatus.QUEUED,
        (RunStatus.QUEUED, RunAction.DISPATCH): RunStatus.DISPATCHED,
        (RunStatus.DISPATCHED, RunAction.BEGIN): RunStatus.RUNNING,
        **{
            (status, action): status
            for action in (RunAction.BEGIN, RunAction.SET_TURN, RunAction.ADD_USAGE)
            for status in OWNED
        },
        (RunStatus.RUNNING, RunAction.WAIT): RunStatus.WAITING,
        # With another reason.
        (RunStatus.WAITING, RunAction.WAIT): RunStatus.WAITING,
        (RunStatus.WAITING, RunAction.WAKE): RunStatus.RUNNING,
        (RunStatus.RUNNING, RunAction.PAUSE): RunStatus.PAUSED,
        (RunStatus.WAITING, RunAction.PAUSE): RunStatus.PAUSED,
        (RunStatus.PAUSED, RunAction.RESUME): RunStatus.RUNNING,
        (RunStatus.RUNNING, RunAction.FINISH): RunStatus.DONE,
        (RunStatus.DISPATCHED, RunAction.FAIL): RunStatus.FAILED,
        **{(status, RunAction.FAIL): RunStatus.FAILED for status in OWNED},
        **{(status, RunAction.STOP): RunStatus.STOPPED for status in OPEN},
        **{(status, RunAction.CONTROL): status for status in OPEN},
        (RunStatus.FAILED, RunAction.RETRY): RunStatus.QUEUED,
        (RunStatus.STOPPED, RunAction.RETRY): RunStatus.QUEUED,
        **{(status, RunAction.DELIVER): status for status in RunStatus if status not in OPEN},
    },
    allowed={
        **dict.fromkeys(RunAction, frozenset({Role.SYSTEM})),
        RunAction.QUEUE: ALL_ROLES,
        **dict.fromkeys((RunAction.CONTROL, RunAction.STOP, RunAction.RETRY), _CONTROLLERS),
    },
)
