"""Recommendations of owners that wait for a decision of the Lead or a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from punchlist.errors import NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt
from punchlist.missions.recommendations.model import Recommendation, RecommendationStatus
from punchlist.missions.todos.tools import change_json
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import JsonObject, RequiredReasonBody, Text
from punchlist.surfaces.web.api.todos import TodoChangeShape


class RecommendationQuery(RequestModel):
    decided: Annotated[bool, Field(description="Include decided ones.")] = False


class RecommendationBody(RequestModel):
    text: Text
    pillar: Annotated[str | None, Field(max_length=100, description="The slug of a pillar.")] = None
    todo_id: Annotated[str | None, Field(max_length=100)] = None


class RecommendationShape(ResponseModel):
    id: str
    number: int
    mission_id: str
    pillar_id: str | None
    todo_id: str | None
    kind: str
    status: RecommendationStatus
    content: str
    arguments: Annotated[JsonObject, Field(description="What accepting it does, by its kind.")]
    created_by: str
    created_at: str
    decided_by: str | None
    decided_at: str | None
    decision: str | None


class ListedRecommendationShape(RecommendationShape):
    pillar: Annotated[str | None, Field(description="Its slug.")]
    action: str


class RecommendationListShape(ResponseModel):
    items: list[ListedRecommendationShape]


class DecisionShape(ResponseModel):
    recommendation: RecommendationShape
    change: TodoChangeShape | None


def _json(recommendation: Recommendation) -> dict[str, Any]:
    shown = {**camel_json(recommendation), "arguments": recommendation.arguments}
    return {name: value for name, value in shown.items() if name != "payload"}


def _list(call: ApiCall) -> Any:
    found = call.services.recommendations.list(call.path["slug"], decided=call.query.decided)
    return {
        "items": [{**_json(each.recommendation), "pillar": each.pillar_slug, "action": each.action} for each in found]
    }


def _add(call: ApiCall) -> Any:
    body = call.body
    added = call.services.recommendations.add(
        call.scope(), call.path["slug"], body.text, pillar_slug=body.pillar, todo_id=body.todo_id
    )
    return _json(added)


def _decide(name: str) -> Callable[[ApiCall], Any]:
    def decide(call: ApiCall) -> Any:
        number = call.path["number"]
        if not (number.isdecimal() and len(number) < 10):
            raise NotFound(f"There is no recommendation {excerpt(number)!r}.")
        act = getattr(call.services.recommendations, name)
        decided = act(call.scope(), call.path["slug"], int(number), call.body.reason)
        change = change_json(decided.change) if decided.change else None
        return {"recommendation": _json(decided.recommendation), "change": change}

    return decide


def _decision(name: str, summary: str) -> Endpoint:
    return Endpoint(
        "POST", f"/missions/{{slug}}/recommendations/{{number}}/{name}", f"{name}Recommendation", summary,
        _decide(name), DecisionShape, body=RequiredReasonBody,
    )  # fmt: skip


ENDPOINTS = [
    Endpoint(
        "GET", "/missions/{slug}/recommendations", "listRecommendations", "Open recommendations, oldest first.",
        _list, RecommendationListShape, RecommendationQuery,
    ),
    Endpoint(
        "POST", "/missions/{slug}/recommendations", "addRecommendation", "Recommend something to the Lead.",
        _add, RecommendationShape, body=RecommendationBody, status=201,
    ),
    _decision("accept", "Accept a recommendation and perform its action."),
    _decision("decline", "Decline a recommendation."),
]  # fmt: skip
