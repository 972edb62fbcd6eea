"""Tokens and cost that a turn and all its workers have used: budgets cover both."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from punchlist.agent.continuation import Limits
from punchlist.models.model import Usage

N = TypeVar("N", int, float)


class Budget:
    def __init__(self, parent: Budget | None = None) -> None:
        self.usage = Usage()
        self.cost = 0.0
        self._parent = parent

    def charge(self, usage: Usage, cost: float) -> None:
        self.restore(usage, cost)
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
