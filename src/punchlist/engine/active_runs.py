"""The runs that this worker has in hand: how they hear what people want of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.runs.lifecycle import ControlRequest
from punchlist.runs.model import Run

PAUSED: Final = "somebody paused the run"
TOLD: Final = "somebody has something to say"
CLOSING: Final = "this worker ends; the run goes on elsewhere"


class RunStopped(Exception):
    """Somebody stopped the run."""


@dataclass(slots=True)
class ActiveRun:
    run_id: str
    signal: CancelSignal = field(default_factory=CancelSignal)
    """Of what is being done right now."""
    telling: str | None = None
    """What its agent is being told."""
    at_work: bool = False
    engaged: bool = False
    """At work, or in line for a place to work at."""
    superseded: bool = False
    """The engine has given the run to us anew, since somebody took us for dead."""

    def heed(self, run: Run) -> None:
        match run.wish:
            case ControlRequest.STOP:
                self.signal.set(run.why or "somebody stopped the run")
            case ControlRequest.PAUSE:
                self.signal.set(PAUSED, suspends=True)
            case None if run.message not in (None, self.telling):
                self.signal.set(TOLD, suspends=True)

    def fresh(self, run: Run) -> CancelSignal:
        """For what comes now: the agent is told what there is to say to it."""
        # One that was told to rest since stays so.
        rests = self.superseded or (self.signal.reason == CLOSING)
        self.signal, self.telling = CancelSignal(), run.message
        if rests:
            self.signal.set(CLOSING, suspends=True)
        self.heed(run)
        return self.signal


class ActiveRuns:
    def __init__(self) -> None:
        self._hands: dict[str, ActiveRun] = {}
        self.closing = False

    def take(self, run_id: str) -> ActiveRun:
        return self._hands.setdefault(run_id, ActiveRun(run_id))

    def supersede(self, run_id: str) -> bool:
        """What we are at with a run comes to rest; whether anything is left of it."""
        if hand := self._hands.get(run_id):
            hand.superseded = True
            hand.signal.set(CLOSING, suspends=True)
        return hand is not None

    def let_go(self, run_id: str) -> None:
        self._hands.pop(run_id, None)

    @property
    def busy(self) -> bool:
        """Whether agents are at work."""
        return any(hand.at_work for hand in self._hands.values())

    @property
    def engaged(self) -> int:
        """How many are at work, or in line for it."""
        return sum(hand.engaged for hand in self._hands.values())

    def __len__(self) -> int:
        return len(self._hands)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._hands

    def heed(self, run: Run) -> None:
        if hand := self._hands.get(run.id):
            hand.heed(run)

    def close(self) -> None:
        """Everything comes to rest where it is, for another worker to go on with."""
        self.closing = True
        for hand in self._hands.values():
            hand.signal.set(CLOSING, suspends=True)
