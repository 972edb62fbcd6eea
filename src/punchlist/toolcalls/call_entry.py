"""What the scheduler keeps of a call besides its state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from punchlist.toolcalls.admission import Admitted
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.states import CallError, ToolCall

if TYPE_CHECKING:
    from punchlist.toolcalls.batch import CallBatch


class CallEntry:
    """One call. Changed by the scheduler alone, and only from the event loop."""

    __slots__ = (
        "admitted",
        "batch",
        "begun",
        "call",
        "cause",
        "deadline",
        "followers",
        "leader",
        "request",
        "task",
        "waits_for",
    )

    def __init__(self, call: ToolCall, batch: CallBatch) -> None:
        self.call = call
        self.request = call.request
        self.batch = batch
        self.admitted: Admitted | None = None
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        """Its task has had its first step: from then on it ends itself."""
        self.deadline = 0.0
        """When it is stopped, and once it was told to stop, when it is given up; in the event loop's time."""
        self.cause: str | CallError | None = None
        """Why it is being ended from outside: a cancellation's reason, or the error of a time limit."""
        self.waits_for: Sequence[CallEntry] = ()
        """What must end first: the calls it depends on, or the identical one that runs for it."""
        self.followers: list[CallEntry] | None = None
        """Those that wait for this one, if there are any."""
        self.leader: CallEntry | None = None
        """The identical call of the same batch that runs for both."""

    def follow(self, other: CallEntry) -> None:
        self.waits_for = [*self.waits_for, other]
        if other.followers is None:
            other.followers = []
        other.followers.append(self)

    def no_longer_wait_for(self, other: CallEntry) -> None:
        self.waits_for = [one for one in self.waits_for if one is not other]


def held_up(entry: CallEntry) -> bool:
    """Whether a person must answer before it can go on. Chains may be long: no recursion."""
    waiting, seen = [entry], {entry}
    while waiting:
        one = waiting.pop()
        if one.call.status is CallStatus.AWAITING_APPROVAL:
            return True
        for other in one.waits_for:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False
