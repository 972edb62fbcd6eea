"""A model whose context window is known: from a setting, from the table of models, or else by a cautious guess."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from punchlist.models.model import Model, ModelInfo, ModelRequest, Reply, TextListener

ASSUMED_WINDOW: Final = 32_768
"""Tokens. What most servers of local models are started with, or more."""


class ModelWithWindow:
    def __init__(self, model: Model, window: int | None) -> None:
        """`window` is the setting; it wins over the table."""
        self._model = model
        self._window = window

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def info(self) -> ModelInfo:
        # Of a model with a fallback, it changes during a turn.
        info = self._model.info
        if self._window is not None:
            return replace(info, context_window=self._window)
        if info.context_window is not None:
            return info
        return replace(info, context_window=ASSUMED_WINDOW, window_assumed=True)

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        return await self._model.ask(request, on_text)
