"""What a turn and all its workers have used: budgets are for both."""

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
        """What was paid before the program ended; whoever delegated has counted it."""
        self.usage += usage
        self.cost += cost

    def limits_for_worker(self, limits: Limits, of: Limits) -> Limits:
        """The limits of a worker, and no more than is left of `of`, those of the turn whose purse this is."""
        tokens = None if of.tokens is None else max(1, of.tokens - self.usage.total)
        cost = None if of.cost is None else max(0.0, of.cost - self.cost)
        return replace(limits, tokens=_less(limits.tokens, tokens), cost=_less(limits.cost, cost))


def _less(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
