"""What one client is offered, whatever carries it: its role's tools, the lists as resources, prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.model import item_json
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound, PunchlistError
from punchlist.kernel.text import excerpt, visible
from punchlist.kernel.tool import ListToolSpec, ToolResult
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import Plan
from punchlist.plan.tools import plan_json
from punchlist.surfaces.mcp.mission_resources import URI_TEMPLATE, MissionResources
from punchlist.surfaces.mcp.pending_questions import PendingQuestions
from punchlist.surfaces.mcp.prompts import McpPrompts
from punchlist.surfaces.role_tools import RoleTools, mission_scope
from punchlist.surfaces.services import Services

if TYPE_CHECKING:
    from punchlist.storage.change_watch import ChangeWatch

CHECKLIST_URI: Final = "punchlist://checklist"
PLAN_URI: Final = "punchlist://plan"

INSTRUCTIONS: Final = """\
Punchlist keeps what you must do. TodoWrite is this session's checklist, which people watch. create_todo, list_todo, \
start_todo and complete_todo are the plan of the present turn: plan first, work through it item by item, and do not \
hand back before every item is completed or cancelled; wait_todo says what an item has to wait for. Where several \
agents work on one plan, claim_todo gives each its own item. All is stored and outlives compaction and restarts."""

MISSIONS: Final = """\
mission_todo_create, mission_todo_update and mission_todo_list are the todos of missions, goals that take months: few \
can be active at a time, the Mission Lead starts them and alone completes them, pillar owners work on them."""


@dataclass(frozen=True, slots=True)
class ListResource:
    uri: str
    name: str
    description: str
    read: Callable[[], dict[str, Any]]


class Capabilities:
    def __init__(self, desk: Services, scope: Scope, place: str | None = None) -> None:
        """A scope that is bound to a mission or a pillar (`MissionScope`) acts nowhere else in missions. Clients of one
        process are told apart by their `place` when they claim."""
        self._desk = desk
        self._scope = scope
        self._toolbox = RoleTools(desk, scope.actor.role, place)
        self._room = MissionResources(desk, mission_scope(scope)) if self._toolbox.has_missions else None
        self.prompts = McpPrompts(desk, scope, self._room, has_plan=self._toolbox.has_plan)
        self.questions = PendingQuestions(desk, scope) if self._toolbox.has_plan else None

    def at(self, place: str) -> Capabilities:
        """The same for another client of this process."""
        return Capabilities(self._desk, self._scope, place)

    def warm_up(self) -> None:
        """Open the database now; otherwise the first call does."""
        _ = self._desk.checklists, self._desk.plans

    def watch(self) -> ChangeWatch:
        from punchlist.storage.change_watch import ChangeWatch

        return ChangeWatch(self._desk.store)

    def tools(self) -> Sequence[ListToolSpec[Any]]:
        return self._toolbox.tools

    def instructions(self) -> str:
        return f"{INSTRUCTIONS} {MISSIONS}" if self._toolbox.has_missions else INSTRUCTIONS

    def call(self, name: str, raw_arguments: object) -> ToolResult:
        return self._toolbox.call(self._scope, name, raw_arguments)

    def resources(self) -> list[ListResource]:
        offered = [ListResource(CHECKLIST_URI, "checklist", "This session's checklist", self._read_checklist)]
        if self._toolbox.has_plan:
            offered.append(ListResource(PLAN_URI, "plan", "The plan of the open turn", self._read_plan))
        return offered

    def listed(self) -> list[ListResource]:
        """All that can be read now."""
        room = self._room
        if room is None:
            return self.resources()
        told = "The mission {} and its todos"
        return [
            *self.resources(),
            *(
                ListResource(room.uri(one), one.slug, told.format(visible(one.name)), partial(room.describe, one))
                for one in room.missions()
            ),
        ]

    def templates(self) -> list[dict[str, str]]:
        if not self._room:
            return []
        return [{"uriTemplate": URI_TEMPLATE, "name": "mission", "description": "A mission: pillars and todos"}]

    def read(self, uri: str) -> str:
        for resource in self.resources():
            if resource.uri == uri:
                return json.dumps(resource.read(), ensure_ascii=False)
        if self._room and (mission := self._room.read(uri)) is not None:
            return json.dumps(mission, ensure_ascii=False)
        raise NotFound(f"There is no resource {excerpt(uri)!r}.")

    def knows(self, uri: str) -> bool:
        """Whether there is such a resource; the lists are there also while they cannot be read."""
        if any(resource.uri == uri for resource in self.resources()):
            return True
        try:
            return self._room is not None and self._room.read(uri) is not None
        except PunchlistError:
            return False

    def _read_checklist(self) -> dict[str, Any]:
        checklist = self._desk.checklists.get(self._scope.conversation_id)
        return {"todos": [item_json(item) for item in checklist.items], "progress": checklist.progress}

    def _read_plan(self) -> dict[str, Any]:
        # Looking at the plan does not open a turn.
        turn = self._desk.conversations.current_turn(self._scope.conversation_id)
        if turn is None:
            return {"turnId": None, **plan_json(Plan([], dict.fromkeys(PlanStatus, 0)))}
        scope = TurnScope(self._scope.conversation_id, self._scope.actor, turn.id)
        return {"turnId": turn.id, **plan_json(self._desk.plans.list(scope, frozenset(PlanStatus)))}
