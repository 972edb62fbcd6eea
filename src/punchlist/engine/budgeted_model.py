"""A model whose requests are charged to a mission's budget (M19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from punchlist.agent.context import message_length, offer_length
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN, weighted_length
from punchlist.missions.budgets.repository import Spend, SpendPlace
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.config.policy import limits_of
from punchlist.missions.model import Mission
from punchlist.models.model import (
    Model,
    ModelRefused,
    ModelRequest,
    Reply,
    TextListener,
    Usage,
    WrappedModel,
)
from punchlist.storage.async_bridge import AsyncBridge

_EMPTY: Final = Spend()


class BudgetedModel(WrappedModel):
    """Charges each request before it is sent. A request that would exceed a budget suspends the turn instead."""

    def __init__(
        self,
        model: Model,
        budgets: Budgets,
        call: AsyncBridge,
        mission: Mission,
        place: SpendPlace,
        suspend: Callable[[str], None],
    ) -> None:
        """`suspend` interrupts the agent's turn with a reason; the turn can be resumed."""
        super().__init__(model)
        self._budgets = budgets
        self._call = call
        self._mission = mission
        self._place = place
        self._suspend = suspend

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        self._check_price()
        estimate, at = self._spend(Usage(_estimated_tokens(request))), self._budgets.now()
        reason = await self._call(self._budgets.reserve, self._place, estimate, at)
        if reason is not None:
            self._suspend(reason)
            # Cancelled by the signal that `suspend` sets.
            await asyncio.Event().wait()
        used = _EMPTY
        try:
            reply = await self._model.ask(request, on_text)
            used = self._spend(reply.usage)
            return reply
        finally:
            # Shielded: a cancelled turn must not leave its estimate behind.
            await asyncio.shield(self._call(self._budgets.settle, self._place, estimate, used, at))

    def _check_price(self) -> None:
        if (problem := price_problem(self._model, self._mission)) is not None:
            raise ModelRefused(problem)

    def _spend(self, usage: Usage) -> Spend:
        cost = self._model.info.cost(usage)
        return Spend(1, usage.input_tokens, usage.output_tokens, cost or 0.0, 1 if cost is None else 0)


def price_problem(model: Model, mission: Mission) -> str | None:
    """Why the cost limits of a mission cannot be enforced for a model; None if they can."""
    limits = limits_of(mission)
    limited = limits.cost_per_day is not None or limits.cost_per_todo is not None
    if not limited or model.info.cost(Usage()) is not None:
        return None
    return (
        f"The price of {model.name} is unknown, so the cost limits of mission {mission.slug!r} cannot be enforced. "
        "Limit tokens instead (tokensPerDay, tokensPerTodo)."
    )


def _estimated_tokens(request: ModelRequest) -> int:
    length = weighted_length(request.system) + sum(map(message_length, request.messages))
    return (length + sum(map(offer_length, request.tools))) // CHARACTERS_PER_TOKEN
