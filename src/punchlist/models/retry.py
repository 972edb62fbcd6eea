"""Asking again when a model is busy: with growing pauses, some chance in them, and an end.

A model that has begun to act is never asked twice: a reply is whole or there is none, so what is
repeated is the question, never a tool call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from punchlist.models.model import Model, ModelBusy, ModelInfo, ModelRequest, Reply, TextListener

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    tries: int = 4
    first_pause: float = 1.0
    max_pause: float = 60.0

    def pause(self, number: int, asked_for: float | None, chance: float) -> float:
        """Seconds before try `number`, from 1: what the model asked for, else twice as long each time, at random."""
        if asked_for is not None:
            return min(max(asked_for, 0.0), self.max_pause)
        longest: float = min(self.first_pause * 2.0 ** (number - 1), self.max_pause)
        return longest * (0.5 + 0.5 * chance)


DEFAULT_POLICY: Final = RetryPolicy()


class RetryingModel:
    """A model that is asked again."""

    def __init__(
        self,
        model: Model,
        patience: RetryPolicy = DEFAULT_POLICY,
        *,
        told: Callable[[str], None] | None = None,
        sleep: Sleep = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._patience = patience
        self._told = told
        self._sleep = sleep
        self._chance = chance

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        for number in range(1, self._patience.tries + 1):
            try:
                return await self._model.ask(request, on_text)
            except ModelBusy as busy:
                if number == self._patience.tries:
                    raise
                pause = self._patience.pause(number, busy.retry_after, self._chance())
                if self._told is not None:
                    self._told(f"{self.name}: {busy} Asking again in {pause:.1f} s.")
                await self._sleep(pause)
        raise AssertionError("there is at least one try")
