"""The missions that a Lead or an owner can look into: as resources, and to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.tools import list_json
from punchlist.surfaces.services import Services

if TYPE_CHECKING:
    from punchlist.missions.model import Pillar

URI_TEMPLATE: Final = "punchlist://missions/{slug}"
_PREFIX: Final = URI_TEMPLATE.removesuffix("{slug}")
MOST_LISTED: Final = 100


class MissionResources:
    def __init__(self, desk: Services, scope: MissionScope) -> None:
        """Whoever is bound to a mission or a pillar sees no other."""
        self._desk = desk
        self.scope = scope

    def uri(self, mission: Mission) -> str:
        return f"{_PREFIX}{mission.slug}"

    def missions(self) -> list[Mission]:
        if self.scope.mission_slug is not None:
            return [self._desk.missions.get(self.scope.mission_slug)]
        return self._desk.missions.list()[:MOST_LISTED]

    def mission(self, slug: str) -> Mission:
        todo_validation.check_mission(self.scope, slug)
        return self._desk.missions.get(slug)

    def pillars(self, mission: Mission) -> list[Pillar]:
        bound = self.scope.pillar_slug
        return [one.pillar for one in self._desk.missions.pillars(mission) if bound is None or one.pillar.slug == bound]

    def read(self, uri: str) -> dict[str, Any] | None:
        """The mission with this address; None for an address of another kind."""
        return self.describe(self.mission(uri.removeprefix(_PREFIX))) if uri.startswith(_PREFIX) else None

    def describe(self, mission: Mission) -> dict[str, Any]:
        """A mission and the first page of its todos."""
        listed = self._desk.mission_todos.list(mission.slug, pillar=self.scope.pillar_slug)
        return {
            "slug": mission.slug,
            "name": mission.name,
            "description": mission.description,
            "pillars": [{"slug": one.slug, "name": one.name} for one in self.pillars(mission)],
            **list_json(listed),
        }
