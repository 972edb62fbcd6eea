"""The pillars of a mission, their strategies, and the chats of a mission."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from punchlist.errors import NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt
from punchlist.missions.model import PillarState, Strategy
from punchlist.missions.strategies import MAX_LENGTH
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import RequiredReason, RequiredReasonBody
from punchlist.surfaces.web.api.work_shapes import ChatRunShape
from punchlist.views.mission_chats import read_mission_chats

_PILLAR_FIELDS = ("id", "slug", "name", "description", "conversation_id", "todo_conversation_id")


class StrategyShape(ResponseModel):
    id: str
    description: str
    status: str


class StrategyListShape(ResponseModel):
    items: list[StrategyShape]


class PillarNameShape(ResponseModel):
    id: str
    slug: str
    name: str
    description: str
    conversation_id: str
    todo_conversation_id: str


class PillarDetailShape(PillarNameShape):
    strategies: list[StrategyShape]
    metrics: Annotated[list[str], Field(description="Slugs; listMetrics has the readings.")]


class PillarListShape(ResponseModel):
    items: list[PillarDetailShape]


class NewStrategyBody(RequestModel):
    description: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]
    reason: RequiredReason


class MissionChatShape(ResponseModel):
    id: str
    channel: str
    pillar: str | None
    messages: int
    last_message_at: str | None
    purpose: str
    waiting: Annotated[int, Field(description="Messages that wait for delivery.")]
    run: Annotated[ChatRunShape | None, Field(description="What works in it, else what waits for it.")]


class MissionChatListShape(ResponseModel):
    items: list[MissionChatShape]


def _strategy(strategy: Strategy) -> dict[str, Any]:
    return camel_json(strategy, "id", "description", "status")


def _pillar(state: PillarState) -> dict[str, Any]:
    return {
        **camel_json(state.pillar, *_PILLAR_FIELDS),
        "strategies": [_strategy(each) for each in state.strategies],
        "metrics": [metric.slug for metric in state.metrics],
    }


def _find(call: ApiCall) -> PillarState:
    missions, slug = call.services.missions, call.path["pillar"]
    for state in missions.pillars(missions.get(call.path["slug"])):
        if state.pillar.slug == slug:
            return state
    raise NotFound(f"Mission {call.path['slug']!r} has no pillar {excerpt(slug)!r}.")


def _list(call: ApiCall) -> Any:
    missions = call.services.missions
    return {"items": [_pillar(state) for state in missions.pillars(missions.get(call.path["slug"]))]}


def _show(call: ApiCall) -> Any:
    return _pillar(_find(call))


def _strategies(call: ApiCall) -> Any:
    return {"items": [_strategy(each) for each in _find(call).strategies]}


def _add(call: ApiCall) -> Any:
    slug, pillar, body = call.path["slug"], call.path["pillar"], call.body
    return _strategy(call.services.strategies.add(call.scope(), slug, pillar, body.description, body.reason))


def _retire(call: ApiCall) -> Any:
    slug, pillar, which = call.path["slug"], call.path["pillar"], call.path["strategy"]
    return _strategy(call.services.strategies.retire(call.scope(), slug, pillar, which, call.body.reason))


def _chats(call: ApiCall) -> Any:
    return {"items": [chat.as_json() for chat in read_mission_chats(call.services.store, call.path["slug"])]}


_PILLAR = "/missions/{slug}/pillars/{pillar}"
ENDPOINTS = [
    Endpoint("GET", "/missions/{slug}/pillars", "listPillars", "The pillars of a mission.", _list, PillarListShape),
    Endpoint("GET", _PILLAR, "getPillar", "A pillar with its strategies.", _show, PillarDetailShape),
    Endpoint("GET", f"{_PILLAR}/strategies", "listStrategies", "Its strategies.", _strategies, StrategyListShape),
    Endpoint(
        "POST", f"{_PILLAR}/strategies", "addStrategy", "Add a strategy to a pillar.",
        _add, StrategyShape, body=NewStrategyBody, status=201,
    ),
    Endpoint(
        "POST", f"{_PILLAR}/strategies/{{strategy}}/retire", "retireStrategy", "End a strategy, by its id.",
        _retire, StrategyShape, body=RequiredReasonBody,
    ),
    Endpoint(
        "GET", "/missions/{slug}/chats", "listChats", "The chats of the Lead and of the owners.",
        _chats, MissionChatListShape,
    ),
]  # fmt: skip
