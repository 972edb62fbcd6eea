"""What one client is offered, whatever carries it: its role's tools, the lists as resources, prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.model import to_json
from punchlist.checklist.tools import checklist_tools
from punchlist.claims.model import ListKind
from punchlist.claims.tools import ClaimableList, claim_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound, PunchlistError
from punchlist.kernel.processes import this_process
from punchlist.kernel.text import excerpt, visible
from punchlist.kernel.tooling import Arguments, C, Tool, ToolResult, arguments
from punchlist.missions.model import MissionScope
from punchlist.missions.tools import mission_tools
from punchlist.plan.lifecycle import Status
from punchlist.plan.model import Plan
from punchlist.plan.tools import ClaimablePlan, plan_json, plan_tools
from punchlist.surfaces.desk import Desk
from punchlist.surfaces.mcp.mission_room import URI_TEMPLATE, MissionRoom
from punchlist.surfaces.mcp.prompts import Prompts
from punchlist.surfaces.mcp.questions import Questions

if TYPE_CHECKING:
    from punchlist.storage.changes import Watch

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


class Offer:
    def __init__(self, desk: Desk, scope: Scope) -> None:
        """A scope that is bound to a mission or a pillar (`MissionScope`) acts nowhere else in missions."""
        self._desk = desk
        self._scope = scope
        self._at = this_process()
        self._mission_scope = mission_scope(scope)
        self._mission_tools = self._usable(mission_tools(lambda: desk.mission_todos, lambda: desk.checks))
        self._session_tools = self._usable(checklist_tools(lambda: desk.checklists))
        self._turn_tools = self._usable(plan_tools(lambda: desk.plans))
        self._claim_tools = self._usable(claim_tools(self._claimable))
        self._room = MissionRoom(desk, self._mission_scope) if self._mission_tools else None
        self.prompts = Prompts(desk, scope, self._room, has_plan=bool(self._turn_tools))
        self.questions = Questions(desk, scope) if self._turn_tools else None

    def at(self, place: str) -> Offer:
        """The same for another client of this process, which is told from the others by its place when it claims."""
        other = Offer(self._desk, self._scope)
        other._at = f"{self._at} {place}"
        return other

    def _usable(self, tools: Iterable[Tool[C]]) -> dict[str, Tool[C]]:
        """Those that are for the caller's role, by name."""
        return {tool.name: tool for tool in tools if self._scope.actor.role in tool.roles}

    def _claimable(self, _: Scope) -> dict[ListKind, ClaimableList]:
        """The lists that the caller can claim from."""
        lists: dict[ListKind, ClaimableList] = {
            ListKind.PLAN: ClaimablePlan(self._desk.plans, self._turn_scope(), self._at)
        }
        if self._mission_tools:
            from punchlist.missions.claiming import ClaimableMission, MissionClaims

            claims = MissionClaims(self._desk.store)
            lists[ListKind.MISSION] = ClaimableMission(claims, self._mission_scope, self._at)
        return lists

    def warm_up(self) -> None:
        """Open the database now; otherwise the first call does."""
        _ = self._desk.checklists, self._desk.plans

    def watch(self) -> Watch:
        from punchlist.storage.changes import Watch

        return Watch(self._desk.store)

    def tools(self) -> list[Tool[Any]]:
        offered: list[dict[str, Tool[Any]]] = [
            dict(self._session_tools),
            dict(self._turn_tools),
            dict(self._claim_tools),
            dict(self._mission_tools),
        ]
        return [tool for tools in offered for tool in tools.values()]

    def instructions(self) -> str:
        return f"{INSTRUCTIONS} {MISSIONS}" if self._mission_tools else INSTRUCTIONS

    def call(self, name: str, raw_arguments: object) -> ToolResult:
        args: Arguments = arguments(raw_arguments)
        if tool := self._session_tools.get(name) or self._claim_tools.get(name):
            return tool.run(self._scope, args)
        if turn_tool := self._turn_tools.get(name):
            return turn_tool.run(self._turn_scope(), args)
        if mission_tool := self._mission_tools.get(name):
            return mission_tool.run(self._mission_scope, args)
        known = [tool.name for tool in self.tools()]
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(known)}."
        raise NotFound(f"There is no tool {excerpt(name)!r}. {hint}")

    def _turn_scope(self) -> TurnScope:
        """The session's open turn (T7)."""
        turn = self._desk.conversations.open_turn(self._scope)
        return TurnScope(self._scope.conversation_id, self._scope.actor, turn.id)

    def resources(self) -> list[ListResource]:
        offered = [ListResource(CHECKLIST_URI, "checklist", "This session's checklist", self._read_checklist)]
        if self._turn_tools:
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
        return {"todos": [to_json(item) for item in checklist.items], "progress": checklist.progress}

    def _read_plan(self) -> dict[str, Any]:
        # Looking at the plan does not open a turn.
        turn = self._desk.conversations.current_turn(self._scope.conversation_id)
        if turn is None:
            return {"turnId": None, **plan_json(Plan([], dict.fromkeys(Status, 0)))}
        scope = TurnScope(self._scope.conversation_id, self._scope.actor, turn.id)
        return {"turnId": turn.id, **plan_json(self._desk.plans.list(scope, frozenset(Status)))}


def mission_scope(scope: Scope) -> MissionScope:
    return scope if isinstance(scope, MissionScope) else MissionScope(scope.conversation_id, scope.actor)
