"""From a model's name to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt
from punchlist.models.model import Model
from punchlist.models.rehearsal import Rehearsal, load

REHEARSAL: Final = "rehearsal"


def model_named(name: str) -> Model:
    provider, _, rest = name.partition(":")
    if provider == REHEARSAL and rest:
        return Rehearsal(load(Path(rest)), name=name)
    raise ConfigError(f"There is no model {excerpt(name)!r}. For now there is rehearsal:FILE; real ones come next.")


def for_agent(model: Model, agent: str) -> Model:
    """The model as one agent has it: a rehearsal may have lines of its own for each."""
    return model.for_agent(agent) if isinstance(model, Rehearsal) else model
