"""The governor: what comes after a reply of the model. Pure: what is so goes in, a decision comes out.

Its questions, in this order; the first that is answered decides:

    cancelled? · to rest for now? · out of time? · failed, or cut off? · a limit reached? · calls to answer? ·
    something said? · nothing open? · continuation off? · all of it waiting? · stalled? · continued too often? ·
    else: continue

The same rules serve the loop of our own agents and the hooks of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from punchlist.kernel.text import quoted, visible


class Reason(StrEnum):
    """Why a turn ended. There is no other way to end."""

    COMPLETED = "completed"
    OPEN = "open"
    CAPPED = "capped"
    BUDGET = "budget"
    STALLED = "stalled"
    WAITING = "waiting"
    CANCELLED = "cancelled"
    ERROR = "error"


STALLED_AFTER: Final = 3
"""Continuations in a row without a change of the list."""
WINDOW_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class OpenItem:
    """An item that is not ended yet."""

    id: str
    title: str
    in_progress: bool = False
    waits_for: str | None = None
    """What it waits for, in words; None for one that can be worked on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a turn may go. None where there is no limit."""

    base_iterations: int = 10
    more_iterations: int = 10
    max_iterations: int = 50
    continuations: int = 10
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def iterations(self, allowed: int, used: int, anything_open: bool) -> int:
        """How many model calls the turn may make: more as long as its list is not clear, up to an end.

        What was allowed stays allowed: a turn whose list has just become clear must still be able to say so.
        """
        allowed = max(allowed, self.base_iterations)
        if anything_open:
            allowed = max(allowed, used + self.more_iterations)
        return min(allowed, max(self.max_iterations, self.base_iterations))


class TurnCounters(NamedTuple):
    """What a turn has used so far. A named tuple, since there is a new one in every iteration."""

    iterations: int = 0
    allowed: int = 0
    """Iterations that the list has been given so far."""
    continuations: int = 0
    unchanged: int = 0
    """Continuations in a row after which the list was as before."""
    tokens: int = 0
    context: int = 0
    """Tokens of the last request and its reply."""
    seconds: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Situation:
    open: Sequence[OpenItem]
    counters: TurnCounters
    limits: Limits = Limits()
    enabled: bool = True
    has_calls: bool = False
    """The reply has tool calls, and they have been answered."""
    context_window: int | None = None
    cancelled: str | None = None
    suspended: str | None = None
    """Why it is to come to rest for now, to be gone on with later."""
    message_pending: bool = False
    """Somebody has said something that the model has not heard yet."""
    timed_out: bool = False
    """The time was up, and whatever was going on was ended."""
    failure: str | None = None
    """An error, or the model was cut off: in words."""
    pending_approvals: Sequence[str] = ()
    """Calls that wait for a person, in words."""


@dataclass(frozen=True, slots=True)
class Proceed:
    """Tool results go back to the model."""


@dataclass(frozen=True, slots=True)
class Continue:
    prompt: str


@dataclass(frozen=True, slots=True)
class Wait:
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    reason: Reason
    why: str


Decision = Proceed | Continue | Wait | Stop


def decide(now: Situation) -> Decision:
    if now.cancelled is None and now.suspended is not None:
        return Wait((now.suspended,))
    return _must_stop(now) or _unfinished_calls(now) or (Proceed() if now.message_pending else _about_the_list(now))


def _must_stop(now: Situation) -> Stop | None:
    if now.cancelled is not None:
        return Stop(Reason.CANCELLED, now.cancelled)
    if now.timed_out:
        return Stop(Reason.BUDGET, f"its {now.limits.seconds:g} seconds are used")
    if now.failure is not None:
        return Stop(Reason.ERROR, now.failure)
    if not now.has_calls and not now.open:
        # It is about to end by itself: a limit that is reached now stops nothing.
        return None
    return _limit(now)


def _limit(now: Situation) -> Stop | None:
    spent, limits = now.counters, now.limits
    if spent.iterations >= limits.iterations(spent.allowed, spent.iterations, bool(now.open)):
        return Stop(Reason.CAPPED, f"{spent.iterations} iterations, the limit")
    if now.context_window is not None and spent.context >= WINDOW_SHARE * now.context_window:
        return Stop(Reason.BUDGET, f"{spent.context:,} of the model's {now.context_window:,} tokens are used")
    if limits.tokens is not None and spent.tokens >= WINDOW_SHARE * limits.tokens:
        return Stop(Reason.BUDGET, f"{spent.tokens:,} of {limits.tokens:,} tokens are used")
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return Stop(Reason.BUDGET, f"{spent.seconds:.0f} of {limits.seconds:g} seconds are used")
    if limits.cost is not None and spent.cost >= limits.cost:
        return Stop(Reason.BUDGET, f"${spent.cost:.4f} of ${limits.cost:g} are used")
    return None


def _unfinished_calls(now: Situation) -> Decision | None:
    if now.pending_approvals:
        return Wait(tuple(now.pending_approvals))
    return Proceed() if now.has_calls else None


def _about_the_list(now: Situation) -> Decision:
    if not now.open:
        return Stop(Reason.COMPLETED, "nothing is open")
    if not now.enabled:
        return Stop(Reason.OPEN, f"{_count(now.open)} open, and continuation is off")
    if all(item.waits_for is not None for item in now.open):
        return Wait(tuple(f"{visible(item.title)}: {item.waits_for}" for item in now.open))
    if now.counters.unchanged >= STALLED_AFTER:
        return Stop(Reason.STALLED, f"the list did not change in {now.counters.unchanged} continuations")
    if now.counters.continuations >= now.limits.continuations:
        return Stop(Reason.CAPPED, f"continued {now.counters.continuations} times, the limit")
    return Continue(continuation_prompt(now.open))


def next_item(open: Sequence[OpenItem]) -> OpenItem | None:
    """The one to work on: what is in progress, else the first that waits for nothing."""
    able = [item for item in open if item.waits_for is None]
    return next((item for item in able if item.in_progress), able[0] if able else None)


def continuation_prompt(open: Sequence[OpenItem]) -> str:
    """What the model is told when it stops with items open (C3)."""
    following = next_item(open)
    assert following is not None
    doing = "one in progress" if following.in_progress else "next"
    return (
        f"{_count(open)} not done yet. The {'one' if len(open) == 1 else doing} is: {quoted(following.title)} "
        f"(id {following.id}). Go on with it now, and mark it when it is done; if it cannot be done, cancel it and say "
        "why. Do not answer the user before the list is clear."
    )


def ending_text(reason: Reason, why: str, left: Sequence[OpenItem]) -> str:
    """What a person is told when a turn ends or rests, with what is left (C13)."""
    end = "" if why.endswith((".", "?", "!")) else "."
    told = f"Waits for {why}{end}" if reason is Reason.WAITING else f"Ended as {reason}: {why}{end}"
    if not left:
        return told
    items = [f"- {visible(item.title)}{f' (waits for {item.waits_for})' if item.waits_for else ''}" for item in left]
    return "\n".join([f"{told} Not finished:", *items])


def _count(open: Sequence[OpenItem]) -> str:
    return f"{len(open)} item{' is' if len(open) == 1 else 's are'}"
