"""What of a mission's file may run: what the person has read and trusted, to the letter.

It is taken from the text that was trusted, not from the rows that were made of it: whoever can write to
the database does not thereby run programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from punchlist.missions.config import file
from punchlist.missions.config.model import MissionConfig
from punchlist.missions.model import Mission, MissionTodo

TrustOf = Callable[[Mission], bool]
"""Whether the person has trusted the file that a mission was made from."""


def trust_name(mission_slug: str, workspace: Path) -> str:
    """By which name a mission's file is trusted: for this folder, since its commands mean other programs elsewhere."""
    return f"mission:{mission_slug}@{workspace.resolve()}"


def check_name(todo: MissionTodo) -> str:
    """By which name the command is trusted that a person gave a todo as its check."""
    return f"check:{todo.id}"


def trusted_config(mission: Mission, trust_of: TrustOf) -> MissionConfig | None:
    return file.parse(mission.source) if trust_of(mission) else None


def trusted_collector(config: MissionConfig | None, metric_slug: str) -> Mapping[str, Any] | None:
    metrics = (metric for pillar in (config.pillars if config else ()) for metric in pillar.metrics)
    return next((metric.collector for metric in metrics if metric.slug == metric_slug), None)
