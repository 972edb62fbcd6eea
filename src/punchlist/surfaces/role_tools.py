"""The tools that a role has on the lists, and what a call of one comes to, whoever calls: an MCP client, or an agent of
another framework.

Where the caller stands is given with each call, and looked at then: the session of a scope may be another than it was
at the last call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from punchlist.checklist.tools import checklist_tools
from punchlist.claims.model import ListKind
from punchlist.claims.tools import ClaimableList, claim_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound
from punchlist.kernel.actors import Role
from punchlist.kernel.process_id import this_process
from punchlist.kernel.text import excerpt
from punchlist.kernel.tool import C, ListToolSpec, ToolResult, arguments
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.tools import mission_tools
from punchlist.plan.tools import ClaimablePlan, plan_tools
from punchlist.surfaces.services import Services


class RoleTools:
    def __init__(self, desk: Services, role: Role, place: str | None = None) -> None:
        """Clients of one process are told apart by their `place` when they claim."""
        self._desk = desk
        self._role = role
        self._place = place
        self._of_sessions = self._usable(checklist_tools(lambda: desk.checklists))
        self._of_turns = self._usable(plan_tools(lambda: desk.plans))
        self._of_claims = self._usable(claim_tools(self._claimable))
        self._of_missions = self._usable(mission_tools(lambda: desk.mission_todos, lambda: desk.checks))
        self._all: dict[str, ListToolSpec[Any]] = {
            **self._of_sessions,
            **self._of_turns,
            **self._of_claims,
            **self._of_missions,
        }

    @property
    def tools(self) -> Sequence[ListToolSpec[Any]]:
        return list(self._all.values())

    @property
    def has_checklist(self) -> bool:
        return bool(self._of_sessions)

    @property
    def has_plan(self) -> bool:
        return bool(self._of_turns)

    @property
    def has_missions(self) -> bool:
        return bool(self._of_missions)

    def call(self, scope: Scope, name: str, raw_arguments: object) -> ToolResult:
        """In the turn of the scope; where that has none, in the session's open turn (T7)."""
        tool, args = self._all.get(name), arguments(raw_arguments)
        if tool is None:
            close = get_close_matches(name, self._all, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(self._all)}."
            raise NotFound(f"There is no tool {excerpt(name)!r}. {hint}")
        if name in self._of_turns:
            return tool.run(self._in_turn(scope), args)
        return tool.run(in_missions(scope) if name in self._of_missions else scope, args)

    def _usable(self, tools: Iterable[ListToolSpec[C]]) -> dict[str, ListToolSpec[C]]:
        """Those that are for the role, by name."""
        return {tool.name: tool for tool in tools if self._role in tool.roles}

    def _claimable(self, scope: Scope) -> dict[ListKind, ClaimableList]:
        """The lists that the caller can claim from."""
        at = this_process() if self._place is None else f"{this_process()} {self._place}"
        lists: dict[ListKind, ClaimableList] = {
            ListKind.PLAN: ClaimablePlan(self._desk.plans, self._in_turn(scope), at)
        }
        if self._of_missions:
            # Loads the database's libraries, and an MCP client is greeted before that.
            from punchlist.missions.todos.claims import ClaimableMission, MissionClaims

            lists[ListKind.MISSION] = ClaimableMission(MissionClaims(self._desk.store), in_missions(scope), at)
        return lists

    def _in_turn(self, scope: Scope) -> TurnScope:
        if isinstance(scope, TurnScope):
            return scope
        turn = self._desk.conversations.open_turn(scope)
        return TurnScope(turn.conversation_id, scope.actor, turn.id)


def in_missions(scope: Scope) -> MissionScope:
    """A scope that is bound to a mission or a pillar acts nowhere else in missions."""
    return scope if isinstance(scope, MissionScope) else MissionScope(scope.conversation_id, scope.actor)
