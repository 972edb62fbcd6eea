"""Missions as resources, and as completions for prompts, within the scope of a Lead or an owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from punchlist.app import Services
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.tools import list_json
from punchlist.surfaces.member_views import VIEWS as MEMBER_VIEWS
from punchlist.surfaces.member_views import MemberQuery, MemberViews

if TYPE_CHECKING:
    from punchlist.missions.model import Pillar

URI_TEMPLATE: Final = "punchlist://missions/{slug}"
_PREFIX: Final = URI_TEMPLATE.removesuffix("{slug}")
VIEW_TEMPLATE: Final = f"{URI_TEMPLATE}/{{view}}"
TODO_TEMPLATE: Final = f"{URI_TEMPLATE}/todos/{{id}}"
VIEWS: Final = tuple(name for name in MEMBER_VIEWS if name != "todo")
_MAX_LISTED: Final = 100


class MissionResources:
    def __init__(self, services: Services, scope: MissionScope) -> None:
        self._services = services
        self.scope = scope

    def uri(self, mission: Mission) -> str:
        return f"{_PREFIX}{mission.slug}"

    def missions(self) -> list[Mission]:
        if self.scope.mission_slug is not None:
            return [self._services.missions.get(self.scope.mission_slug)]
        return self._services.missions.list()[:_MAX_LISTED]

    def mission(self, slug: str) -> Mission:
        todo_validation.check_mission(self.scope, slug)
        return self._services.missions.get(slug)

    def pillars(self, mission: Mission) -> list[Pillar]:
        bound = self.scope.pillar_slug
        states = self._services.missions.pillars(mission)
        return [state.pillar for state in states if bound is None or state.pillar.slug == bound]

    def read(self, uri: str) -> dict[str, Any] | None:
        """The mission, the todo or the view with this URI; None for a URI of another kind."""
        if not uri.startswith(_PREFIX):
            return None
        match uri.removeprefix(_PREFIX).split("/"):
            case [slug]:
                return self.describe(self.mission(slug))
            case [slug, "todos", id]:
                return MemberViews(self._services, self.scope).read(MemberQuery("todo", slug, todo_id=id))
            case [slug, view] if view in VIEWS:
                return MemberViews(self._services, self.scope).read(MemberQuery(view, slug))
        return None

    def describe(self, mission: Mission) -> dict[str, Any]:
        """A mission and the first page of its todos."""
        page = self._services.mission_todos.list(mission.slug, pillar=self.scope.pillar_slug)
        return {
            "slug": mission.slug,
            "name": mission.name,
            "description": mission.description,
            "pillars": [{"slug": pillar.slug, "name": pillar.name} for pillar in self.pillars(mission)],
            **list_json(page),
        }
