"""What a run works on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.errors import NotFound
from punchlist.runs.model import RunKind

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.runs.model import Run

_TITLES: Final = {
    RunKind.CYCLE: "Planning cycle",
    RunKind.PLAN: "Planning",
    RunKind.CHAT: "Answer in a chat",
    RunKind.COLLECT: "Collection of metrics",
    RunKind.DELEGATE: "Delegated work",
}


class RunTitles:
    """Titles of runs; pillars are read once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._pillars: dict[str, str] | None = None

    def of(self, run: Run) -> str:
        if run.todo_id is not None:
            try:
                return self._services.mission_todos.get(run.todo_id).title
            except NotFound:
                pass
        title = _TITLES.get(run.kind, run.kind.value.capitalize())
        return f"{title}: {pillar}" if (pillar := self._pillar(run)) else title

    def _pillar(self, run: Run) -> str:
        if run.pillar_id is None:
            return ""
        if self._pillars is None:
            missions = self._services.missions
            states = (state for mission in missions.list(archived=True) for state in missions.pillars(mission))
            self._pillars = {state.pillar.id: state.pillar.name for state in states}
        return self._pillars.get(run.pillar_id, "")
