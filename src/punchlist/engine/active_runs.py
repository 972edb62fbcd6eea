"""The runs that this worker is working on, and how control requests reach them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from punchlist.kernel.cancellation import CancelSignal
from punchlist.runs.lifecycle import ControlRequest
from punchlist.runs.model import Run

PAUSED: Final = "the run was paused"
MESSAGE_RECEIVED: Final = "a person sent a message"
CLOSING: Final = "this worker is shutting down; another worker continues the run"


class RunStopped(Exception):
    """A person or the Lead stopped the run."""


@dataclass(slots=True)
class ActiveRun:
    run_id: str
    signal: CancelSignal = field(default_factory=CancelSignal)
    """Interrupts the current step."""
    delivering: str | None = None
    """The message that the agent is receiving now."""
    working: bool = False
    needs_slot: bool = False
    """Working, or waiting for a free slot."""
    superseded: bool = False
    """The engine dispatched the run to this worker again, because another worker declared this one dead."""

    def apply_request(self, run: Run) -> None:
        match run.wish:
            case ControlRequest.STOP:
                self.signal.set(run.why or "the run was stopped")
            case ControlRequest.PAUSE:
                self.signal.set(PAUSED, suspends=True)
            case None if run.message not in (None, self.delivering):
                self.signal.set(MESSAGE_RECEIVED, suspends=True)

    def new_signal(self, run: Run) -> CancelSignal:
        """A signal for the next step, in which the agent receives the pending message."""
        suspend = self.superseded or self.signal.reason == CLOSING
        self.signal, self.delivering = CancelSignal(), run.message
        if suspend:
            self.signal.set(CLOSING, suspends=True)
        self.apply_request(run)
        return self.signal


class ActiveRuns:
    def __init__(self) -> None:
        self._runs: dict[str, ActiveRun] = {}
        self.closing = False

    def track(self, run_id: str) -> ActiveRun:
        return self._runs.setdefault(run_id, ActiveRun(run_id))

    def supersede(self, run_id: str) -> bool:
        """Suspend an earlier execution of the run in this process; whether there still is one."""
        if active := self._runs.get(run_id):
            active.superseded = True
            active.signal.set(CLOSING, suspends=True)
        return active is not None

    def discard(self, run_id: str) -> None:
        self._runs.pop(run_id, None)

    @property
    def busy(self) -> bool:
        """Whether an agent is working."""
        return any(active.working for active in self._runs.values())

    @property
    def slots_needed(self) -> int:
        return sum(active.needs_slot for active in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def apply_request(self, run: Run) -> None:
        if active := self._runs.get(run.id):
            active.apply_request(run)

    def close(self) -> None:
        """Suspend all runs, so that another worker can continue them."""
        self.closing = True
        for active in self._runs.values():
            active.signal.set(CLOSING, suspends=True)
