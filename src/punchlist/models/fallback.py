"""Uses a second model after the first has failed.

The failed request gave no reply, so nothing is done twice: the same request goes to the second model. The
switch lasts for the rest of the turn. Trying the first model again would cost its retries each time, and
replies would alternate between two models.
"""

from __future__ import annotations

from collections.abc import Callable

from punchlist.models.model import Model, ModelError, ModelRequest, Reply, RequestRefused, TextListener, WrappedModel


class FallbackModel(WrappedModel):
    """Made for one turn; it does not switch back."""

    def __init__(self, first: Model, second: Model, on_note: Callable[[str], None] | None = None) -> None:
        super().__init__(first)
        self._second = second
        self._on_note = on_note

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        model = self._model
        try:
            return await model.ask(request, on_text)
        except RequestRefused:
            raise
        except ModelError as failure:
            if model is self._second:
                raise
            # With concurrent requests, only the first failure is reported.
            if self._model is model and self._on_note is not None:
                self._on_note(f"{model.name}: {failure} Switching to {self._second.name}.")
            self._model = self._second
        return await self._second.ask(request, on_text)
