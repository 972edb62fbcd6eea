"""The tools that a role has on the lists, called in the name of one run."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from punchlist.checklist.tools import checklist_tools
from punchlist.claims.model import ListKind
from punchlist.claims.tools import ClaimableList, claim_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound
from punchlist.kernel.actors import Actor
from punchlist.kernel.processes import this_process
from punchlist.kernel.text import excerpt
from punchlist.kernel.tooling import Tool, ToolResult, arguments
from punchlist.missions.claiming import ClaimableMission, MissionClaims
from punchlist.missions.model import MissionScope
from punchlist.missions.tools import mission_tools
from punchlist.plan.tools import ClaimablePlan, plan_tools
from punchlist.surfaces.desk import Desk


class Toolbox:
    def __init__(self, desk: Desk, actor: Actor) -> None:
        self._desk = desk
        role = actor.role
        missions = [
            tool for tool in mission_tools(lambda: desk.mission_todos, lambda: desk.checks) if role in tool.roles
        ]
        self._of_missions = {tool.name for tool in missions}
        self.tools: Sequence[Tool[Any]] = [
            *(tool for tool in checklist_tools(lambda: desk.checklists) if role in tool.roles),
            *(tool for tool in plan_tools(lambda: desk.plans) if role in tool.roles),
            *(tool for tool in claim_tools(self._claimable) if role in tool.roles),
            *missions,
        ]
        self._by_name = {tool.name: tool for tool in self.tools}

    def call(self, here: TurnScope, name: str, raw: object) -> ToolResult:
        tool = self._by_name.get(name)
        if tool is None:
            close = get_close_matches(name, self._by_name, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(self._by_name)}."
            raise NotFound(f"There is no tool {excerpt(name)!r}. {hint}")
        scope = MissionScope(here.conversation_id, here.actor) if name in self._of_missions else here
        return tool.run(scope, arguments(raw))

    def _claimable(self, scope: Scope) -> dict[ListKind, ClaimableList]:
        assert isinstance(scope, TurnScope)
        lists: dict[ListKind, ClaimableList] = {ListKind.PLAN: ClaimablePlan(self._desk.plans, scope, this_process())}
        if self._of_missions:
            claims, where = MissionClaims(self._desk.store), MissionScope(scope.conversation_id, scope.actor)
            lists[ListKind.MISSION] = ClaimableMission(claims, where, this_process())
        return lists
