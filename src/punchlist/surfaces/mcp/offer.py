"""What one client is offered, whatever carries it: its role's tools, and the lists as resources."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.model import to_json
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound
from punchlist.kernel.text import excerpt
from punchlist.kernel.tooling import Arguments, Tool, ToolResult, arguments
from punchlist.plan.lifecycle import Status
from punchlist.plan.model import Plan
from punchlist.plan.tools import plan_json, plan_tools
from punchlist.surfaces.desk import Desk

if TYPE_CHECKING:
    from punchlist.storage.changes import Watch

CHECKLIST_URI: Final = "punchlist://checklist"
PLAN_URI: Final = "punchlist://plan"

INSTRUCTIONS: Final = """\
Punchlist keeps what you must do. TodoWrite is this session's checklist, which people watch. create_todo, list_todo, \
start_todo and complete_todo are the plan of the present turn: plan first, work through it item by item, and do not \
hand back before every item is completed or cancelled; wait_todo says what an item has to wait for. Both are stored \
and outlive compaction and restarts."""


@dataclass(frozen=True, slots=True)
class ListResource:
    uri: str
    name: str
    description: str
    read: Callable[[], dict[str, Any]]


class Offer:
    def __init__(self, desk: Desk, scope: Scope) -> None:
        self._desk = desk
        self._scope = scope
        self._session_tools = {
            tool.name: tool for tool in checklist_tools(lambda: desk.checklists) if self._may_use(tool)
        }
        self._turn_tools = {tool.name: tool for tool in plan_tools(lambda: desk.plans) if self._may_use(tool)}

    def _may_use(self, tool: Tool[Any]) -> bool:
        return self._scope.actor.role in tool.roles

    def warm_up(self) -> None:
        """Open the database now; otherwise the first call does."""
        _ = self._desk.checklists, self._desk.plans

    def watch(self) -> Watch:
        from punchlist.storage.changes import Watch

        return Watch(self._desk.store)

    def tools(self) -> list[Tool[Any]]:
        return [*self._session_tools.values(), *self._turn_tools.values()]

    def call(self, name: str, raw_arguments: object) -> ToolResult:
        args: Arguments = arguments(raw_arguments)
        if tool := self._session_tools.get(name):
            return tool.run(self._scope, args)
        if turn_tool := self._turn_tools.get(name):
            return turn_tool.run(self._turn_scope(), args)
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

    def read(self, uri: str) -> str:
        for resource in self.resources():
            if resource.uri == uri:
                return json.dumps(resource.read(), ensure_ascii=False)
        raise NotFound(f"There is no resource {excerpt(uri)!r}.")

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
