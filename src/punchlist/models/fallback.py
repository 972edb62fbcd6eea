"""Another model when the first fails for good.

Nothing is done twice: what failed gave no reply, so there is nothing of it that was acted upon; the same
question goes to the other model. The change is for the rest of the turn. A model that was down a moment
ago would only cost its retries again, and the answers would change their voice back and forth.
"""

from __future__ import annotations

from collections.abc import Callable

from punchlist.models.model import Model, ModelError, ModelInfo, ModelRequest, Reply, RequestRefused, TextListener


class FallbackModel:
    """Made for one turn: it does not go back to the first."""

    def __init__(self, first: Model, second: Model, told: Callable[[str], None] | None = None) -> None:
        self._second = second
        self._in_use = first
        self._told = told

    @property
    def name(self) -> str:
        return self._in_use.name

    @property
    def info(self) -> ModelInfo:
        return self._in_use.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        asked = self._in_use
        try:
            return await asked.ask(request, on_text)
        except RequestRefused:
            raise
        except ModelError as failure:
            if asked is self._second:
                raise
            # Several may ask at once; the first to fail tells.
            if self._in_use is asked and self._told is not None:
                self._told(f"{asked.name}: {failure} From here on {self._second.name} is asked.")
            self._in_use = self._second
        return await self._second.ask(request, on_text)
