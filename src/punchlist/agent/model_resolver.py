"""Resolves the model of an agent: by name, with retries, fallback and a known context window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from punchlist.agent.definitions import AgentDefinition
from punchlist.models.fallback import FallbackModel
from punchlist.models.model import Model, ModelInfo, WrappedModel
from punchlist.models.providers import REHEARSAL, resolve_model
from punchlist.models.rehearsal import Rehearsal, for_agent, load_rehearsal
from punchlist.models.retry import RetryingModel

ASSUMED_WINDOW: Final = 32_768
"""Tokens. What most servers of local models are started with, or more."""


class ModelResolver:
    """An agent uses the model that its definition names, else the model of the run. Each model is made once."""

    def __init__(
        self, model: str, environment: Mapping[str, str], on_note: Callable[[str], None] | None = None
    ) -> None:
        self._model = model
        self._environment = environment
        self._on_note = on_note
        self._models: dict[str, Model] = {}
        # Resolved at once, so that a wrong name fails before any work.
        self._named(model)

    def __call__(self, agent: AgentDefinition) -> Model:
        model = self._retrying(agent.model or self._model, agent)
        if agent.fallback is None:
            return model
        return FallbackModel(model, self._retrying(agent.fallback, agent), self._on_note)

    def _retrying(self, name: str, agent: AgentDefinition) -> Model:
        return RetryingModel(for_agent(self._named(name), agent.name), on_note=self._on_note)

    def _named(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = model_named(name, self._environment)
        return self._models[name]


def model_named(name: str, environment: Mapping[str, str]) -> Model:
    """Raises `ConfigError` for an unknown provider, a missing key or an invalid rehearsal file."""
    kind, _, rest = name.partition(":")
    if kind == REHEARSAL and rest:
        return Rehearsal(load_rehearsal(Path(rest)), name=name)
    from punchlist.models.provider_model import ProviderModel

    return ProviderModel(resolve_model(name, environment))


class ModelWithWindow(WrappedModel):
    """A model whose context window is known: from a setting, from the table of models, or else by a cautious guess."""

    def __init__(self, model: Model, window: int | None) -> None:
        """`window` is the setting; it wins over the table."""
        super().__init__(model)
        self._window = window

    @property
    def info(self) -> ModelInfo:
        # Of a model with a fallback, it changes during a turn.
        info = self._model.info
        if self._window is not None:
            return replace(info, context_window=self._window)
        if info.context_window is not None:
            return info
        return replace(info, context_window=ASSUMED_WINDOW, window_assumed=True)
