"""Retries requests to a busy model, with exponential back-off and jitter, a limited number of times.

A reply is complete or there is none, so only the request is repeated, never a tool call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from punchlist.models.model import Model, ModelBusy, ModelRequest, Reply, TextListener, WrappedModel

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    tries: int = 4
    first_pause: float = 1.0
    max_pause: float = 60.0

    def pause(self, number: int, requested: float | None, jitter: float) -> float:
        """Seconds to wait after try `number` (from 1): `requested` by the server, else doubling, with jitter."""
        if requested is not None:
            return min(max(requested, 0.0), self.max_pause)
        longest: float = min(self.first_pause * 2.0 ** (number - 1), self.max_pause)
        return longest * (0.5 + 0.5 * jitter)


DEFAULT_POLICY: Final = RetryPolicy()


class RetryingModel(WrappedModel):
    def __init__(
        self,
        model: Model,
        policy: RetryPolicy = DEFAULT_POLICY,
        *,
        on_note: Callable[[str], None] | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._policy = policy
        self._on_note = on_note
        self._sleep = sleep
        self._jitter = jitter

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        for number in range(1, self._policy.tries + 1):
            try:
                return await self._model.ask(request, on_text)
            except ModelBusy as busy:
                if number == self._policy.tries:
                    raise
                pause = self._policy.pause(number, busy.retry_after, self._jitter())
                if self._on_note is not None:
                    self._on_note(f"{self.name}: {busy} Retrying in {pause:.1f} s.")
                await self._sleep(pause)
        raise AssertionError("a policy has at least one try")
