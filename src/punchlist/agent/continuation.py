"""The governor decides what happens after a model's reply. Pure function from situation to decision.

Its questions, in this order; the first that applies decides:

    cancelled? · suspended? · timed out? · error or cut off? · limit reached? · calls to answer? ·
    message pending? · nothing open? (then: no answer, or only an announcement? a goal is judged) · continuation off? ·
    everything waiting? · stalled? (first: one attempt at the next item in a fresh context) · continuation limit? ·
    else: continue

The loop of our own agents and the hooks of third-party agents use the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from punchlist.kernel.text import quoted, visible, without_tags


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


WINDOW_SHARE: Final = 0.9
MAX_CONTINUATIONS: Final = 50
"""Of one turn, whatever they brought."""
MAX_EMPTY_REPLIES: Final = 2
"""How often the model is asked for an answer that it left empty."""
ANNOUNCED_ONLY: Final = (
    "You said what you will do next, but called no tool. Do it now; if nothing is left to do, answer the user."
)
ANSWER_MISSING: Final = (
    "Your last reply was empty, or a tool call written as text, which is not run. Continue with the request; if it is "
    "done, answer the user."
)
WARNING_CALLS: Final = 2
"""The model is told this many calls before a limit."""


@dataclass(frozen=True, slots=True)
class OpenItem:
    id: str
    title: str
    in_progress: bool = False
    waits_for: str | None = None
    """A description of what it waits for; None if it can be worked on."""
    list: str = "plan"
    """The list that it belongs to: `plan` or `checklist`; `item` or `verdict` in a turn that has to bring only that."""
    number: int | None = None
    """Its position in the plan, by which a model can name it."""
    dropped: bool = False
    """It was left out of the checklist without being finished."""

    @property
    def reference(self) -> str:
        """How a model names the item in a tool call."""
        return f"id {self.number if self.number is not None else self.id}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a turn. None means no limit."""

    base_iterations: int = 10
    more_iterations: int = 10
    max_iterations: int = 50
    continuations: int = 10
    """Continuations that brought nothing: a completed item gives one back (C4)."""
    stall_after: int = 3
    """Consecutive continuations without progress after which the turn has stalled (C5)."""
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    calls_per_reply: int = 100
    """The calls of a reply that run; the model is told about the others."""

    @property
    def is_fixed(self) -> bool:
        """The iterations are not extended while items are open, as with --max-iterations."""
        return self.base_iterations >= self.max_iterations

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
    """Continuations, less one for each item completed since (C4)."""
    all_continuations: int = 0
    unchanged: int = 0
    """Consecutive continuations without progress."""
    tokens: int = 0
    context: int = 0
    """An estimate of the tokens of the next request."""
    seconds: float = 0.0
    cost: float = 0.0
    next_cost: float = 0.0
    """An estimate of the cost of the next request."""
    growth: int = 0
    """By how many tokens the next request is longer than the last one."""
    reply: int = 0
    """Tokens of the last reply."""
    reply_cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Exits:
    """How a model can end its items: prompts name only what it is offered."""

    can_wait: bool = True
    """It has `wait_todo`, or `ask_person` for its only item."""
    list_tool: str = "TodoWrite"
    """The tool that completes items of the checklist. A third-party agent may keep the list with its own."""


EXITS: Final = Exits()


@dataclass(frozen=True, slots=True)
class Situation:
    open: Sequence[OpenItem]
    counters: TurnCounters
    limits: Limits = Limits()
    enabled: bool = True
    has_calls: bool = False
    """The reply has tool calls, and each has its result."""
    finished: bool = False
    """The only item of the turn has been left by one of its exits."""
    empty_replies: int = 0
    """Replies in a row without a call and without an answer, where no text before them answers the request."""
    has_text: bool = True
    """The model has written any text in this turn."""
    context_window: int | None = None
    window_assumed: bool = False
    """The context window is a cautious guess."""
    cancelled: str | None = None
    suspended: str | None = None
    """Why the turn should stop for now and be resumed later."""
    message_pending: bool = False
    """A person sent a message that the model has not seen yet."""
    announced: bool = False
    """The reply only says what the model will do next, for the first time in this turn."""
    timed_out: bool = False
    """The time limit interrupted the turn."""
    failure: str | None = None
    """A description of the error, or of why the reply was cut off."""
    pending_approvals: Sequence[str] = ()
    """Descriptions of calls that wait for a person."""
    has_goal: bool = False
    """Acceptance criteria decide whether the turn is completed."""
    exits: Exits = EXITS
    """How the model can end items."""
    tried_fresh: frozenset[str] | None = None
    """Ids of items that had an attempt in a fresh context; None if there is no such attempt."""


@dataclass(frozen=True, slots=True)
class Proceed:
    """Tool results go back to the model."""


@dataclass(frozen=True, slots=True)
class Continue:
    prompt: str


@dataclass(frozen=True, slots=True)
class TryFresh:
    """The turn would stall: one attempt at the item in a fresh context (C5)."""

    item: OpenItem


@dataclass(frozen=True, slots=True)
class Judge:
    """Nothing is open: the goal of the turn is judged (V3)."""


@dataclass(frozen=True, slots=True)
class Wait:
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    reason: Reason
    why: str


Decision = Proceed | Continue | TryFresh | Judge | Wait | Stop


def decide(now: Situation) -> Decision:
    if now.cancelled is None and now.suspended is not None:
        return Wait((now.suspended,))
    return must_stop(now) or _unfinished_calls(now) or (Proceed() if now.message_pending else _decide_by_list(now))


def must_stop(now: Situation) -> Stop | None:
    """What ends a turn whatever is open: a person, an error or a limit."""
    if now.cancelled is not None:
        return Stop(Reason.CANCELLED, now.cancelled)
    if now.timed_out:
        return Stop(Reason.BUDGET, f"the time limit of {now.limits.seconds:g} seconds is reached")
    if now.failure is not None:
        return Stop(Reason.ERROR, now.failure)
    if now.finished or not _asks_again(now):
        # The turn is about to complete, so a limit reached now stops nothing.
        return None
    return _window_full(now) or limit_reached(now)


def _asks_again(now: Situation) -> bool:
    """Whether the model is asked again unless something stops the turn. What a judge finds missing comes later."""
    return bool(now.has_calls or now.open or now.empty_replies or now.message_pending or now.announced)


def _window_full(now: Situation) -> Stop | None:
    if now.context_window is None or now.counters.context <= WINDOW_SHARE * now.context_window:
        return None
    return Stop(
        Reason.BUDGET,
        f"the next request needs about {now.counters.context:,} of {now.context_window:,} tokens of the context window"
        + (" (assumed: set context_window to that of the model)" if now.window_assumed else ""),
    )


def limit_reached(now: Situation) -> Stop | None:
    """Budgets are checked before the request that would exceed them (C6), and leave room for a last report (T9)."""
    spent, limits = now.counters, now.limits
    if spent.iterations >= limits.iterations(spent.allowed, spent.iterations, bool(now.open)):
        return Stop(
            Reason.CAPPED, f"limit of {spent.iterations} iteration{'' if spent.iterations == 1 else 's'} reached"
        )
    if limits.tokens is not None and not _calls_within_tokens(spent, limits.tokens):
        return Stop(
            Reason.BUDGET,
            f"{spent.tokens:,} of {limits.tokens:,} tokens are used; the next request needs about {spent.context:,}",
        )
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return Stop(Reason.BUDGET, f"{spent.seconds:.0f} of {limits.seconds:g} seconds are used")
    if limits.cost is not None and (spent.cost >= limits.cost or not _calls_within_cost(spent, limits.cost)):
        return Stop(
            Reason.BUDGET,
            f"${spent.cost:.4f} of ${limits.cost:g} are used; the next request costs about ${spent.next_cost:.4f}",
        )
    return None


def _calls_within_tokens(spent: TurnCounters, limit: int) -> int:
    kept = (1 - WINDOW_SHARE) * limit
    return _calls_within(limit - spent.tokens, kept, spent, spent.context, spent.growth, spent.reply)


def _calls_within_cost(spent: TurnCounters, limit: float) -> int:
    growth = spent.next_cost * spent.growth / max(spent.context, 1)
    return _calls_within(limit - spent.cost, 0.0, spent, spent.next_cost, growth, spent.reply_cost)


def _calls_within(room: float, kept: float, spent: TurnCounters, request: float, growth: float, reply: float) -> int:
    """How many calls fit into a budget if each request is longer than the one before, and a report is to follow them.

    Counts at most one more than are warned about. `kept` of the budget is left over.
    """
    count = 0
    while count <= WARNING_CALLS:
        report = request + growth + 2 * reply if spent.iterations or count else 0.0
        if request > room - max(kept, report):
            break
        room -= request + reply
        request += growth
        count += 1
    return count


def limit_warning(spent: TurnCounters, limits: Limits, anything_open: bool) -> str | None:
    """A warning for the model shortly before a limit (T9); None if no limit is near."""
    near = "Finish what you can, keep the list up to date, and report what is left."
    left = limits.iterations(spent.allowed, spent.iterations, anything_open) - spent.iterations
    if 0 < left <= WARNING_CALLS:
        return f"{_calls(left)} left before the limit of model calls. {near}"
    if limits.tokens is not None and spent.context:
        left = _calls_within_tokens(spent, limits.tokens)
        if left <= WARNING_CALLS:
            return f"About {_calls(max(left, 1))} left before the token limit. {near}"
    if limits.cost is not None and spent.next_cost:
        left = _calls_within_cost(spent, limits.cost)
        if left <= WARNING_CALLS:
            return f"About {_calls(max(left, 1))} left before the cost limit. {near}"
    if limits.seconds is not None and spent.iterations:
        left = int((limits.seconds - spent.seconds) * spent.iterations // max(spent.seconds, 0.001))
        if left <= WARNING_CALLS:
            return f"About {_calls(max(left, 1))} left before the time limit. {near}"
    if anything_open and spent.continuations:
        left = limits.continuations - spent.continuations
        if left < WARNING_CALLS:
            stops = "If you stop once more" if left <= 0 else "If you stop twice more"
            return f"{stops} before the list is clear, the turn ends. {near}"
    return None


def _calls(count: int) -> str:
    return f"{count} model call{' is' if count == 1 else 's are'}"


def _unfinished_calls(now: Situation) -> Decision | None:
    if now.pending_approvals:
        return Wait(tuple(now.pending_approvals))
    if now.finished:
        return Stop(Reason.COMPLETED, "the item has ended")
    return Proceed() if now.has_calls else None


def _decide_by_list(now: Situation) -> Decision:
    if not now.open:
        return _decide_by_answer(now)
    if not now.enabled:
        return Stop(Reason.OPEN, f"{_count(now.open)} open, and continuation is off")
    if all(item.waits_for is not None for item in now.open):
        return Wait(tuple(f"{visible(item.title)}: {item.waits_for}" for item in now.open))
    if now.counters.unchanged >= now.limits.stall_after:
        following = next_item(now.open)
        if now.tried_fresh is not None and following is not None and following.id not in now.tried_fresh:
            return TryFresh(following)
        return Stop(Reason.STALLED, f"no progress in {now.counters.unchanged} continuations")
    if now.counters.continuations >= now.limits.continuations:
        return Stop(Reason.CAPPED, f"limit of {now.counters.continuations} continuations reached")
    if now.counters.all_continuations >= MAX_CONTINUATIONS:
        return Stop(Reason.CAPPED, f"limit of {MAX_CONTINUATIONS} continuations in one turn reached")
    return Continue(continuation_prompt(now.open, now.exits))


def _decide_by_answer(now: Situation) -> Decision:
    if now.empty_replies and now.empty_replies <= MAX_EMPTY_REPLIES:
        return Continue(ANSWER_MISSING)
    if not now.has_text:
        return Stop(Reason.ERROR, f"the model gave no answer in {now.empty_replies} replies")
    if now.announced:
        return Continue(ANNOUNCED_ONLY)
    return Judge() if now.has_goal else Stop(Reason.COMPLETED, "nothing is open")


def next_item(open: Sequence[OpenItem]) -> OpenItem | None:
    """The item to work on: the one in progress, else the first that does not wait."""
    able = [item for item in open if item.waits_for is None]
    return next((item for item in able if item.in_progress), able[0] if able else None)


def continuation_prompt(open: Sequence[OpenItem], exits: Exits = EXITS) -> str:
    """The prompt for a model that stops while items are open (C3). It names every option that the model has."""
    following = next_item(open)
    assert following is not None
    which = "current" if following.in_progress else "next"
    title = quoted(without_tags(following.title))
    if following.list == "verdict":
        return "There is no verdict yet. Look at what you need, then call give_verdict."
    if following.list == "item":
        return (
            f"{title} is not finished. Continue with it now. When it is done, call finish_item with the outcome; if it "
            "cannot be done, cannot_do_item with the reason"
            f"{'; if it needs an answer of a person, ask_person' if exits.can_wait else ''}."
        )
    if following.list == "checklist":
        named = f"{title}, which you dropped from the list" if following.dropped else title
        options = (
            f"Do it now and mark it completed with {exits.list_tool}. If it will not be done, send it "
            f"{'' if exits.list_tool == 'TodoWrite' else 'to TodoWrite '}with status cancelled and the reason."
        )
    else:
        named = f"{title} ({following.reference})"
        wait = ", call wait_todo with the question. If it" if exits.can_wait else " or"
        options = (
            f"Do it now and end it with complete_todo. If it needs a person{wait} will not be done, call complete_todo "
            f"with status cancelled and the reason{'.' if exits.can_wait else ', and report that.'}"
        )
    return f"{_count(open)} still open. The {which} item is: {named}. {options} Answer the user when the list is clear."


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
