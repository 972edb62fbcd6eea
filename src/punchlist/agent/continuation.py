"""The governor decides what happens after a model's reply. Pure function from situation to decision.

Its questions, in this order; the first that applies decides:

    cancelled? · suspended? · timed out? · error or cut off? · limit reached? · calls to answer? ·
    message pending? · nothing open? · continuation off? · everything waiting? · stalled? ·
    continuation limit? · else: continue

The loop of our own agents and the hooks of third-party agents use the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from punchlist.kernel.text import quoted, visible


class Reason(StrEnum):
    """Why a turn ended. Every turn ends with one of these."""

    COMPLETED = "completed"
    OPEN = "open"
    CAPPED = "capped"
    BUDGET = "budget"
    STALLED = "stalled"
    WAITING = "waiting"
    CANCELLED = "cancelled"
    ERROR = "error"


STALLED_AFTER: Final = 3
"""Consecutive continuations without a change of the list."""
WINDOW_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class OpenItem:
    id: str
    title: str
    in_progress: bool = False
    waits_for: str | None = None
    """A description of what it waits for; None if it can be worked on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a turn. None means no limit."""

    base_iterations: int = 10
    more_iterations: int = 10
    max_iterations: int = 50
    continuations: int = 10
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    calls_per_reply: int = 100
    """The calls of a reply that run; the model is told about the others."""

    def iterations(self, allowed: int, used: int, anything_open: bool) -> int:
        """The number of model requests allowed: extended while items are open, up to `max_iterations`.

        It never shrinks: a turn whose list has just become clear must still be able to report.
        """
        allowed = max(allowed, self.base_iterations)
        if anything_open:
            allowed = max(allowed, used + self.more_iterations)
        return min(allowed, max(self.max_iterations, self.base_iterations))


class TurnCounters(NamedTuple):
    """What a turn has used so far. A named tuple, since every iteration makes a new one."""

    iterations: int = 0
    allowed: int = 0
    """Iterations granted so far."""
    continuations: int = 0
    unchanged: int = 0
    """Consecutive continuations that did not change the list."""
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
    """The reply has tool calls, and each has its result."""
    context_window: int | None = None
    cancelled: str | None = None
    suspended: str | None = None
    """Why the turn should stop for now and be resumed later."""
    message_pending: bool = False
    """A person sent a message that the model has not seen yet."""
    timed_out: bool = False
    """The time limit interrupted the turn."""
    failure: str | None = None
    """A description of the error, or of why the reply was cut off."""
    pending_approvals: Sequence[str] = ()
    """Descriptions of calls that wait for a person."""


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
    return _must_stop(now) or _unfinished_calls(now) or (Proceed() if now.message_pending else _decide_by_list(now))


def _must_stop(now: Situation) -> Stop | None:
    if now.cancelled is not None:
        return Stop(Reason.CANCELLED, now.cancelled)
    if now.timed_out:
        return Stop(Reason.BUDGET, f"the time limit of {now.limits.seconds:g} seconds is reached")
    if now.failure is not None:
        return Stop(Reason.ERROR, now.failure)
    if not now.has_calls and not now.open:
        # The turn is about to complete, so a limit reached now stops nothing.
        return None
    return _limit(now)


def _limit(now: Situation) -> Stop | None:
    spent, limits = now.counters, now.limits
    if spent.iterations >= limits.iterations(spent.allowed, spent.iterations, bool(now.open)):
        return Stop(Reason.CAPPED, f"limit of {spent.iterations} iterations reached")
    if now.context_window is not None and spent.context >= WINDOW_SHARE * now.context_window:
        return Stop(
            Reason.BUDGET, f"{spent.context:,} of the {now.context_window:,} tokens of the context window are used"
        )
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


def _decide_by_list(now: Situation) -> Decision:
    if not now.open:
        return Stop(Reason.COMPLETED, "nothing is open")
    if not now.enabled:
        return Stop(Reason.OPEN, f"{_count(now.open)} open, and continuation is off")
    if all(item.waits_for is not None for item in now.open):
        return Wait(tuple(f"{visible(item.title)}: {item.waits_for}" for item in now.open))
    if now.counters.unchanged >= STALLED_AFTER:
        return Stop(Reason.STALLED, f"the list did not change in {now.counters.unchanged} continuations")
    if now.counters.continuations >= now.limits.continuations:
        return Stop(Reason.CAPPED, f"limit of {now.counters.continuations} continuations reached")
    return Continue(continuation_prompt(now.open))


def next_item(open: Sequence[OpenItem]) -> OpenItem | None:
    """The item to work on: the one in progress, else the first that does not wait."""
    able = [item for item in open if item.waits_for is None]
    return next((item for item in able if item.in_progress), able[0] if able else None)


def continuation_prompt(open: Sequence[OpenItem]) -> str:
    """The prompt for a model that stops while items are open (C3)."""
    following = next_item(open)
    assert following is not None
    which = "current" if following.in_progress else "next"
    return (
        f"{_count(open)} still open. The {which} item is: {quoted(following.title)} (id {following.id}). "
        "Work on it now and mark it completed when it is done. If it cannot be done, cancel it with the reason. "
        "Do not answer the user before the list is clear."
    )


def ending_text(reason: Reason, why: str, left: Sequence[OpenItem]) -> str:
    """The message to a person about why a turn ended or waits, with its open items (C13)."""
    end = "" if why.endswith((".", "?", "!")) else "."
    message = f"Waiting for {why}{end}" if reason is Reason.WAITING else f"Ended as {reason}: {why}{end}"
    if not left:
        return message
    items = [f"- {visible(item.title)}{f' (waiting for {item.waits_for})' if item.waits_for else ''}" for item in left]
    return "\n".join([f"{message} Not finished:", *items])


def _count(open: Sequence[OpenItem]) -> str:
    return f"{len(open)} item{' is' if len(open) == 1 else 's are'}"
