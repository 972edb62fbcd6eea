"""What the server offers one client: the tools of its role, the lists as resources, and prompts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from punchlist.app import Services
from punchlist.checklist.model import item_json
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound, PunchlistError
from punchlist.host_sessions import HostSessions
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt, visible
from punchlist.kernel.tool import ListToolSpec, ToolResult
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import Plan
from punchlist.plan.tools import plan_json
from punchlist.surfaces.role_tools import BOTH, RoleTools, mission_scope

if TYPE_CHECKING:
    from punchlist.storage.change_watch import ChangeWatch
    from punchlist.surfaces.mcp.elicitation import PendingQuestions
    from punchlist.surfaces.mcp.mission_resources import MissionResources
    from punchlist.surfaces.mcp.prompts import McpPrompts

CHECKLIST_URI: Final = "punchlist://checklist"
PLAN_URI: Final = "punchlist://plan"

_INTRODUCTION: Final = "Punchlist stores your todo lists."
_CHECKLIST_INSTRUCTIONS: Final = "TodoWrite writes this session's checklist, which people can watch."
_PLAN_INSTRUCTIONS: Final = """\
create_todo, list_todo, start_todo and complete_todo manage the plan of the current turn: plan first, work through it \
item by item, and do not hand back before every item is completed or cancelled. wait_todo records what an item waits \
for. If several agents work on one plan, claim_todo reserves an item for one of them."""

_VIEWER_INSTRUCTIONS: Final = """\
Punchlist stores todo lists, which you can read: list_todo shows the plan of this session, mission_todo_list and \
mission_read show missions, goals that take months, and the resource punchlist://checklist is the checklist."""

_MISSION_INSTRUCTIONS: Final = """\
mission_todo_create, mission_todo_update and mission_todo_list manage the todos of missions, which are goals that take \
months. Few todos can be active at a time. The Mission Lead starts them, reviews the work, and completes them or sends \
feedback; pillar owners claim them, work on them and report. mission_read shows missions, chats, feedback, metrics and \
what waits for a decision."""


@dataclass(frozen=True, slots=True)
class ListResource:
    uri: str
    name: str
    description: str
    read: Callable[[], dict[str, Any]]

    def as_json(self) -> dict[str, str]:
        return {"uri": self.uri, "name": self.name, "description": self.description}


class Capabilities:
    """Parts are built on first use: the client waits for the greeting."""

    def __init__(self, services: Services, scope: Scope, client: str | None = None, lists: str = BOTH) -> None:
        """A `MissionScope` limits the client to one mission or pillar. `client` distinguishes the clients of one
        process as owners of claims."""
        self._services = services
        self._scope = scope
        self._lists_offered = lists
        self._session_of_offer: str | None = None
        self._role_tools = RoleTools(services, scope.actor.role, client, lists)

    def for_client(self, client: str) -> Capabilities:
        """The same for another client of this process."""
        return Capabilities(self._services, self._scope, client, self._lists_offered)

    @cached_property
    def _missions(self) -> MissionResources | None:
        if not self._role_tools.has_missions:
            return None
        from punchlist.surfaces.mcp.mission_resources import MissionResources

        return MissionResources(self._services, mission_scope(self._scope))

    @cached_property
    def prompts(self) -> McpPrompts:
        from punchlist.surfaces.mcp.prompts import McpPrompts

        return McpPrompts(self._services, self._scope, self._missions, has_plan=self.has_plan)

    @cached_property
    def questions(self) -> PendingQuestions:
        from punchlist.surfaces.mcp.elicitation import PendingQuestions

        return PendingQuestions(self._services, self._scope)

    def warm_up(self) -> None:
        """Open the database and load the main service now instead of in the first call."""
        _ = self._services.plans if self.has_plan else self._services.checklists

    def watch(self) -> ChangeWatch:
        from punchlist.storage.change_watch import ChangeWatch

        return ChangeWatch(self._services.store)

    @property
    def has_plan(self) -> bool:
        return self._role_tools.has_plan

    @property
    def announces_results(self) -> bool:
        return self._role_tools.announces_results

    @property
    def tools_can_change(self) -> bool:
        return self._role_tools.can_change

    def tools(self) -> Sequence[ListToolSpec[Any]]:
        """What is offered now. `todos add` is told which kind of list this client uses."""
        if self.tools_can_change:
            self._record_offer()
        return self._role_tools.offered(self._scope)

    def _record_offer(self) -> None:
        with suppress(PunchlistError, OSError):
            # The session of a host agent is stored beside the database.
            _ = self._services.store
            session = self._scope.conversation_id
            if session != self._session_of_offer:
                HostSessions(self._services.settings, os.environ).record_offer(session, self._lists_offered)
                self._session_of_offer = session

    def instructions(self) -> str:
        offered, role = self._role_tools, self._scope.actor.role
        if role is Role.VIEWER:
            return _VIEWER_INSTRUCTIONS
        parts = [
            _INTRODUCTION,
            _CHECKLIST_INSTRUCTIONS if offered.has_checklist else "",
            _PLAN_INSTRUCTIONS if offered.has_plan else "",
            "The lists survive compaction and restarts.",
            _MISSION_INSTRUCTIONS if offered.has_missions else "",
        ]
        return " ".join(part for part in parts if part)

    def call(self, name: str, raw_arguments: object) -> ToolResult:
        return self._role_tools.call(self._scope, name, raw_arguments)

    def resources(self) -> list[ListResource]:
        """All resources that can be read now."""
        missions = self._missions
        if missions is None:
            return self._lists()
        return [
            *self._lists(),
            *(
                ListResource(
                    missions.uri(mission),
                    mission.slug,
                    f"The mission {visible(mission.name)} and its todos",
                    partial(missions.describe, mission),
                )
                for mission in missions.missions()
            ),
        ]

    def resource_templates(self) -> list[dict[str, str]]:
        if self._missions is None:
            return []
        from punchlist.surfaces.mcp.mission_resources import TODO_TEMPLATE, URI_TEMPLATE, VIEW_TEMPLATE, VIEWS

        return [
            {"uriTemplate": URI_TEMPLATE, "name": "mission", "description": "A mission: pillars and todos"},
            {"uriTemplate": VIEW_TEMPLATE, "name": "mission view", "description": f"One of {', '.join(VIEWS)}"},
            {"uriTemplate": TODO_TEMPLATE, "name": "mission todo", "description": "A todo with all that belongs to it"},
        ]

    def read_resource(self, uri: str) -> str:
        for resource in self._lists():
            if resource.uri == uri:
                return json.dumps(resource.read(), ensure_ascii=False)
        if self._missions and (mission := self._missions.read(uri)) is not None:
            return json.dumps(mission, ensure_ascii=False)
        raise NotFound(f"There is no resource {excerpt(uri)!r}.")

    def has_resource(self, uri: str) -> bool:
        """The lists exist even while they cannot be read."""
        if any(resource.uri == uri for resource in self._lists()):
            return True
        try:
            return self._missions is not None and self._missions.read(uri) is not None
        except PunchlistError:
            return False

    def _lists(self) -> list[ListResource]:
        lists = [ListResource(CHECKLIST_URI, "checklist", "This session's checklist", self._read_checklist)]
        if self.has_plan:
            lists.append(ListResource(PLAN_URI, "plan", "The plan of the open turn", self._read_plan))
        return lists

    def _read_checklist(self) -> dict[str, Any]:
        checklist = self._services.checklists.get(self._scope.conversation_id)
        return {"todos": [item_json(item) for item in checklist.items], "progress": checklist.progress}

    def _read_plan(self) -> dict[str, Any]:
        """Reading the plan does not open a turn."""
        turn = self._services.conversations.current_turn(self._scope.conversation_id)
        if turn is None:
            return {"turnId": None, **plan_json(Plan([], dict.fromkeys(PlanStatus, 0)))}
        scope = TurnScope(self._scope.conversation_id, self._scope.actor, turn.id)
        return {"turnId": turn.id, **plan_json(self._services.plans.list(scope, frozenset(PlanStatus)))}
