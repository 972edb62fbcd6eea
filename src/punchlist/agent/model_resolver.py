"""Which model speaks for which agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from punchlist.agent.definitions import AgentDefinition
from punchlist.models.fallback import FallbackModel
from punchlist.models.model import Model
from punchlist.models.provider_model import model_named
from punchlist.models.rehearsal import for_agent
from punchlist.models.retry import RetryingModel


class ModelResolver:
    """An agent has the model that its definition names, else the one of the run; each is made once."""

    def __init__(self, model: str, environment: Mapping[str, str], told: Callable[[str], None] | None = None) -> None:
        self._model = model
        self._environment = environment
        self._told = told
        self._made: dict[str, Model] = {}
        # At once, so that a wrong name is found before any work.
        self._named(model)

    def __call__(self, agent: AgentDefinition) -> Model:
        model = self._patient(agent.model or self._model, agent)
        if agent.fallback is None:
            return model
        return FallbackModel(model, self._patient(agent.fallback, agent), self._told)

    def _patient(self, name: str, agent: AgentDefinition) -> Model:
        return RetryingModel(for_agent(self._named(name), agent.name), told=self._told)

    def _named(self, name: str) -> Model:
        if name not in self._made:
            self._made[name] = model_named(name, self._environment)
        return self._made[name]
