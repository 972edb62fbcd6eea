"""The tools for recommendations: an owner recommends, the Lead reads all of them and decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, json_result, schema
from punchlist.missions.model import MissionScope
from punchlist.missions.recommendations.model import MAX_LENGTH
from punchlist.missions.todos import tool_arguments
from punchlist.missions.todos import validation as todo_validation

if TYPE_CHECKING:
    from punchlist.missions.recommendations.service import Decided, Recommendations, RecommendationView

LIST_TOOL: Final = "mission_recommendation_list"
DECIDE_TOOL: Final = "mission_recommendation_decide"
RECOMMEND_TOOL: Final = "mission_recommend"
DECISIONS: Final = {"accept": "accept", "decline": "decline"}
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_BLOCK: Final[Schema] = {**_TEXT, "maxLength": MAX_LENGTH}
_NUMBER: Final[Schema] = {"type": "integer", "minimum": 1}
_FIELDS: Final = (
    "number",
    "kind",
    "status",
    "content",
    "created_by",
    "created_at",
    "decided_by",
    "decision",
    "todo_id",
)


def view_json(view: RecommendationView) -> dict[str, Any]:
    values = {**camel_json(view.recommendation, *_FIELDS), "pillarSlug": view.pillar_slug, "action": view.action}
    arguments = view.recommendation.arguments
    return {name: value for name, value in values.items() if value} | ({"arguments": arguments} if arguments else {})


def decided_json(decided: Decided) -> dict[str, Any]:
    values = camel_json(decided.recommendation, *_FIELDS)
    change = decided.change
    done = {"todoStatus": change.todo.status.value, "runId": change.run_id} if change is not None else {}
    return {name: value for name, value in {**values, **done}.items() if value}


def recommendation_tools(recommendations: Callable[[], Recommendations]) -> list[ListToolSpec[MissionScope]]:
    return [_recommend(recommendations), _list(recommendations), _decide(recommendations)]


def _recommend(recommendations: Callable[[], Recommendations]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        added = recommendations().add(scope, **tool_arguments.parse_recommendation(args))
        return json_result({"number": added.number, "status": added.status})

    return ListToolSpec(
        name=RECOMMEND_TOOL,
        title="Recommend something to the Lead",
        description="Recommend what you may not decide yourself. It stays before the Lead until it is decided.",
        input_schema=schema(["missionSlug", "text"], missionSlug=_TEXT, text=_BLOCK, todoId=_TEXT),
        output_schema=schema(["number", "status"], number=_NUMBER, status=_TEXT),
        roles=frozenset({Role.OWNER}),
        read_only=False,
        run=run,
        idempotent=True,
    )


def _list(recommendations: Callable[[], Recommendations]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        query = tool_arguments.parse_recommendation_query(args)
        todo_validation.check_mission(scope, query["mission_slug"])
        found = recommendations().list(query["mission_slug"], decided=query["decided"])
        items = [view_json(view) for view in found if view.recommendation.number > query["after"]][: query["limit"]]
        return json_result({"items": items, "total": len(found)})

    return ListToolSpec(
        name=LIST_TOOL,
        title="Read the recommendations",
        description="The open recommendations of a mission with their whole text.",
        input_schema=schema(
            ["missionSlug"],
            missionSlug=_TEXT,
            after={"type": "integer", "description": "Only those with higher numbers"},
            limit=_NUMBER,
            decided={"type": "boolean", "description": "Include decided ones"},
        ),
        output_schema=schema(["items", "total"], items={"type": "array", "items": {"type": "object"}}, total=_NUMBER),
        roles=frozenset({Role.PERSON, Role.LEAD, Role.OWNER, Role.VIEWER}),
        read_only=True,
        run=run,
        idempotent=True,
    )


def _decide(recommendations: Callable[[], Recommendations]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        values = tool_arguments.parse_decision(args, DECISIONS)
        service = recommendations()
        decide = service.accept if values.pop("decision") == "accept" else service.decline
        return json_result(decided_json(decide(scope, **values)))

    return ListToolSpec(
        name=DECIDE_TOOL,
        title="Decide on a recommendation",
        description="Accept a recommendation, which performs its action, or decline it.",
        input_schema=schema(
            ["missionSlug", "number", "decision", "reason"],
            missionSlug=_TEXT,
            number=_NUMBER,
            decision={"type": "string", "enum": list(DECISIONS)},
            reason=_BLOCK,
        ),
        output_schema=schema(["number", "status"], number=_NUMBER, status=_TEXT),
        roles=frozenset({Role.PERSON, Role.LEAD}),
        read_only=False,
        run=run,
    )
