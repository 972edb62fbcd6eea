"""The list tools of a role, for MCP clients and for agents of other frameworks.

The scope is passed with each call, because its session can change between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from punchlist.app import Services
from punchlist.checklist.tools import checklist_tools
from punchlist.claims.model import ListKind
from punchlist.claims.tools import ClaimableList, claim_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import NotFound, PunchlistError
from punchlist.kernel.events import Role
from punchlist.kernel.processes import current_process
from punchlist.kernel.text import excerpt
from punchlist.kernel.tool import C, ListToolSpec, ToolResult, parse_arguments
from punchlist.missions.model import TEAM, MissionScope
from punchlist.plan.lifecycle import OPEN, PLANNERS
from punchlist.plan.tools import claimable_plan, plan_tools
from punchlist.verification.model import Mark

PLAN: Final = "plan"
CHECKLIST: Final = "checklist"
BOTH: Final = "both"
Tools = dict[str, ListToolSpec[Any]]


class RoleTools:
    """Groups of tools are built on first use: a server greets its client before it loads them all."""

    def __init__(self, services: Services, role: Role, client: str | None = None, lists: str = BOTH) -> None:
        """`client` distinguishes the clients of one process as owners of claims; `lists` are offered: `plan`,
        `checklist` or `both`."""
        self._services = services
        self._role = role
        self._client = client
        self._lists = lists
        self.has_plan = lists != CHECKLIST and (role in PLANNERS or role is Role.VIEWER)
        self.has_checklist = lists != PLAN
        self.has_missions = role in TEAM or role is Role.VIEWER
        # With them, the tools of a member would take twice as many tokens as X1 allows.
        self.announces_results = role not in TEAM

    @property
    def tools(self) -> Sequence[ListToolSpec[Any]]:
        groups = (self._checklist_tools, self._plan_tools, self._claim_tools, self._mission_tools)
        return [tool for group in groups for tool in group.values()]

    @property
    def can_change(self) -> bool:
        """Whether what is offered depends on what is open."""
        return self._lists != BOTH

    def offered(self, scope: Scope) -> Sequence[ListToolSpec[Any]]:
        """The tools now. A server of one kind of list also offers the tools of the other while that has open items:
        the agent must be able to end them."""
        other = {**self._plan_tools_for_open_items(scope), **self._checklist_tools_for_open_items(scope)}
        return [*self.tools, *other.values()]

    def _plan_tools_for_open_items(self, scope: Scope) -> Tools:
        if self._lists != CHECKLIST or self._role not in PLANNERS or not _is_true(lambda: self._has_open_plan(scope)):
            return {}
        return self._of_role(plan_tools(lambda: self._services.plans))

    def _checklist_tools_for_open_items(self, scope: Scope) -> Tools:
        if self._lists != PLAN or not _is_true(lambda: self._has_open_checklist(scope)):
            return {}
        return self._of_role(checklist_tools(lambda: self._services.checklists))

    def _has_open_checklist(self, scope: Scope) -> bool:
        return any(item.is_open for item in self._services.checklists.get(scope.conversation_id).items)

    def _has_open_plan(self, scope: Scope) -> bool:
        turn = self._services.conversations.current_turn(scope.conversation_id)
        if turn is None:
            return False
        of_turn = TurnScope(scope.conversation_id, scope.actor, turn.id)
        return bool(self._services.plans.list(of_turn, OPEN).items)

    @cached_property
    def _checklist_tools(self) -> Tools:
        return self._of_role(checklist_tools(lambda: self._services.checklists)) if self.has_checklist else {}

    @cached_property
    def _plan_tools(self) -> Tools:
        return self._of_role(plan_tools(lambda: self._services.plans)) if self.has_plan else {}

    @cached_property
    def _claim_tools(self) -> Tools:
        # Items of a checklist cannot be claimed.
        return self._of_role(claim_tools(self._claimable)) if self.has_plan or self.has_missions else {}

    @cached_property
    def _mission_tools(self) -> Tools:
        if not self.has_missions:
            return {}
        from punchlist.missions.recommendations.tools import LIST_TOOL as RECOMMENDATION_LIST
        from punchlist.missions.recommendations.tools import recommendation_tools
        from punchlist.missions.todos.tools import mission_tools
        from punchlist.surfaces.member_tools import member_tools

        todos = mission_tools(lambda: self._services.mission_todos, lambda: self._services.checks)
        recommendations = recommendation_tools(lambda: self._services.recommendations)
        tools = self._of_role([*todos, *recommendations, *member_tools(self._services)])
        # `mission_read` has them too.
        tools.pop(RECOMMENDATION_LIST, None)
        return tools

    def call(self, scope: Scope, name: str, raw_arguments: object) -> ToolResult:
        """Run a tool. A plan tool acts on the scope's turn, or else on the session's open turn (T7)."""
        args = parse_arguments(raw_arguments)
        if tool := self._plan_tools.get(name) or self._plan_tools_for_open_items(scope).get(name):
            of_turn = self._turn_scope(scope)
            return self._verified(of_turn, name, tool.run(of_turn, args))
        if tool := self._checklist_tools.get(name) or self._claim_tools.get(name):
            return self._verified(scope, name, tool.run(scope, args))
        if tool := self._mission_tools.get(name):
            return tool.run(mission_scope(scope), args)
        if tool := self._checklist_tools_for_open_items(scope).get(name):
            return self._verified(scope, name, tool.run(scope, args))
        known = [tool.name for tool in self.offered(scope)]
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]}?" if close else f"The tools are: {', '.join(known)}."
        raise NotFound(f"There is no tool {excerpt(name)!r}. {hint}")

    def _verified(self, scope: Scope, name: str, result: ToolResult) -> ToolResult:
        """The result after the checks of the items that the call completed (V2)."""
        if not _has_check(name, result.data):
            return result
        from punchlist.integrations.claim_checks import ClaimChecks

        services = self._services
        checks = services.host_checks(scope, services.workspace)
        claims = ClaimChecks(services.store, services.conversations, checks)
        if name != "complete_todo":
            return claims.written(scope, result)
        assert isinstance(scope, TurnScope)
        return claims.completed(scope, result)

    def _of_role(self, tools: Iterable[ListToolSpec[C]]) -> Tools:
        return {tool.name: tool for tool in tools if self._role in tool.roles}

    def _claimable(self, scope: Scope) -> dict[ListKind, ClaimableList]:
        """The lists from which the caller can claim todos."""
        owner = current_process() if self._client is None else f"{current_process()} {self._client}"
        lists: dict[ListKind, ClaimableList] = {
            ListKind.PLAN: claimable_plan(self._services.plans, self._turn_scope(scope), owner)
        }
        if self.has_missions:
            from punchlist.missions.todos.claims import MissionClaims, claimable_mission

            lists[ListKind.MISSION] = claimable_mission(
                MissionClaims(self._services.store), mission_scope(scope), owner
            )
        return lists

    def _turn_scope(self, scope: Scope) -> TurnScope:
        if isinstance(scope, TurnScope):
            return scope
        if self._role is Role.VIEWER:
            # Reading must not open a turn.
            current = self._services.conversations.current_turn(scope.conversation_id)
            if current is None:
                raise NotFound("This session has no open turn, so there is no plan.")
            return TurnScope(scope.conversation_id, scope.actor, current.id)
        turn = self._services.conversations.open_turn(scope)
        return TurnScope(turn.conversation_id, scope.actor, turn.id)


def _is_true(condition: Callable[[], bool]) -> bool:
    """False where the lists cannot be read: the call that meets the same error reports it."""
    try:
        return condition()
    except (PunchlistError, OSError):
        return False


def _has_check(tool: str, data: Any) -> bool:
    """Whether the result says that items were completed whose checks are to be run."""
    if tool == "complete_todo":
        return _is_unchecked(data)
    return tool == "TodoWrite" and any(_is_unchecked(item) for item in data["todos"])


def _is_unchecked(item: dict[str, Any]) -> bool:
    return "check" in item and item.get("mark") in (Mark.CLAIMED, Mark.EVIDENCED)


def mission_scope(scope: Scope) -> MissionScope:
    """A scope that is bound to a mission or a pillar keeps that bound."""
    return scope if isinstance(scope, MissionScope) else MissionScope(scope.conversation_id, scope.actor)
