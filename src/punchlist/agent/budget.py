"""What a turn has used: tokens and cost with those of its workers (budgets cover both), iterations, and continuations;
what its next request will need; and whether it makes progress (C4, C5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from punchlist.agent.context import ModelContext
from punchlist.agent.continuation import Limits, TurnCounters
from punchlist.agent.list_state import ListState
from punchlist.agent.work_log import WorkLog
from punchlist.models.model import Model, Reply, Usage

N = TypeVar("N", int, float)
COMPLETED: Final = "completed"
"""The status of a completed item, in either list."""


class Budget:
    def __init__(self, parent: Budget | None = None) -> None:
        self.usage = Usage()
        self.cost = 0.0
        self.requests = 0
        """Requests to models in this process, with those of workers."""
        self._parent = parent

    def charge(self, usage: Usage, cost: float) -> None:
        self.restore(usage, cost)
        self.requests += 1
        if self._parent is not None:
            self._parent.charge(usage, cost)

    def restore(self, usage: Usage, cost: float) -> None:
        """Add what an earlier process used. The parent restores its workers' usage itself."""
        self.usage += usage
        self.cost += cost

    def limits_for_worker(self, worker: Limits, turn: Limits) -> Limits:
        """The worker's limits, capped by what is left of the turn's limits."""
        tokens = None if turn.tokens is None else max(1, turn.tokens - self.usage.total)
        cost = None if turn.cost is None else max(0.0, turn.cost - self.cost)
        return replace(worker, tokens=_smaller(worker.tokens, tokens), cost=_smaller(worker.cost, cost))


def _smaller(first: N | None, second: N | None) -> N | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)


class RequestEstimate:
    """What the next request of a turn will need."""

    def __init__(self, model: Model, context: ModelContext) -> None:
        self._model = model
        self._context = context
        self._tokens = 0
        self._last = Usage()

    def restore(self, replies: Sequence[Reply]) -> None:
        if replies:
            self.replied(replies[-1])

    def replied(self, reply: Reply) -> None:
        self._tokens, self._last = reply.usage.total, reply.usage

    def added(self, tokens: int) -> None:
        self._tokens += tokens

    def compacted(self, tokens: int) -> None:
        self._tokens = tokens

    def counted(self, counters: TurnCounters, state: str) -> TurnCounters:
        """The counters with the tokens and the cost of the next request, which ends with `state`."""
        compacted = self._context.tokens_if_compacted(state)
        tokens, cached = self._tokens, self._last.cached_tokens
        if compacted is not None:
            # A compacted context is not in the provider's cache.
            tokens, cached = compacted, 0
        elif not self._last.total:
            tokens = self._context.tokens(state)
        last = self._last
        return counters._replace(
            context=tokens,
            next_cost=self._cost(Usage(tokens, cached_tokens=cached)),
            growth=max(tokens - last.input_tokens, 0) if last.input_tokens else 0,
            reply=last.output_tokens,
            reply_cost=self._cost(Usage(0, last.output_tokens)),
        )

    def small(self, counters: TurnCounters, tokens: int) -> TurnCounters:
        """The counters if the next request is one of its own, with so many tokens."""
        return counters._replace(context=tokens, next_cost=self._cost(Usage(tokens)))

    def _cost(self, usage: Usage) -> float:
        return self._model.info.cost(usage) or 0.0


class TurnProgress:
    def __init__(self, work: WorkLog) -> None:
        self.counters = TurnCounters()
        self._work = work
        self._lists = ListState()
        self._changed_at = 0
        """The iteration in which a list last changed."""
        self._continued_at: object = None
        """The position at the last continuation."""
        self._continuing = False
        """A continuation was sent and the model has not stopped since."""

    @property
    def _position(self) -> object:
        """Changes with every progress: a change of a list, or new work."""
        return self._lists.version, self._work.amount

    @property
    def since_change(self) -> int:
        """Iterations since a list last changed."""
        return self.counters.iterations - self._changed_at

    def restore(self, counters: TurnCounters) -> None:
        """Set the counters of a turn that is resumed, after its lists were read."""
        self.counters = counters
        self._changed_at = counters.iterations

    def lists_read(self, lists: ListState) -> None:
        """A completed item gives one continuation back."""
        if lists.version != self._lists.version:
            self._changed_at = self.counters.iterations
        more = _completed(lists) - _completed(self._lists)
        if more > 0:
            self.counters = self.counters._replace(continuations=max(self.counters.continuations - more, 0))
        self._lists = lists

    def replied(self) -> None:
        self._work.next_reply()
        self.counters = self.counters._replace(iterations=self.counters.iterations + 1)

    def stopped(self) -> None:
        """The model has stopped. If it was sent back before, that brought progress, or it did not."""
        if self._continuing:
            self._continuing = False
            unchanged = self.counters.unchanged + 1 if self._position == self._continued_at else 0
            self.counters = self.counters._replace(unchanged=unchanged)

    def continued(self) -> None:
        self._continued_at, self._continuing = self._position, True
        sent, every = self.counters.continuations + 1, self.counters.all_continuations + 1
        self.counters = self.counters._replace(continuations=sent, all_continuations=every)

    def helped(self) -> None:
        """An attempt in a fresh context has brought progress."""
        self.counters = self.counters._replace(unchanged=0)


def _completed(lists: ListState) -> int:
    return sum(item.status == COMPLETED for item in lists.items)
