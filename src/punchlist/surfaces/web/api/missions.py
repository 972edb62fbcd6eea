"""Missions: their file, board, flow, planning cycles, directives."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import find_mission
from punchlist.missions.config.model import MissionConfig
from punchlist.missions.model import Mission
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.runs.lifecycle import RunStatus
from punchlist.storage.store import Transaction
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, ApiReply, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.metrics import MetricShape
from punchlist.surfaces.web.api.pillars import PillarNameShape, StrategyShape
from punchlist.surfaces.web.api.shapes import (
    CapacityShape,
    Cursor,
    Limit,
    ReasonBody,
    RequiredReasonBody,
    Text,
)
from punchlist.surfaces.web.api.todos import TodoShape
from punchlist.surfaces.web.api.work_shapes import (
    CycleShape,
    CycleTimesShape,
    FlowDayShape,
    RunShape,
    SpendDayShape,
    ThroughputDayShape,
    TurnsDayShape,
)
from punchlist.views.board import BoardFilter, board_json, read_board
from punchlist.views.series import DEFAULT_DAYS, MAX_DAYS, read_series

_MISSION_FIELDS = ("id", "slug", "name", "description", "status", "conversation_id", "created_at", "updated_at")


class ListQuery(RequestModel):
    archived: Annotated[bool, Field(description="Include archived missions.")] = False


class MissionShape(ResponseModel):
    id: str
    slug: str
    name: str
    description: str
    status: str
    conversation_id: str
    created_at: str
    updated_at: str


class MissionListShape(ResponseModel):
    items: list[MissionShape]


class PillarShape(PillarNameShape):
    strategies: list[StrategyShape]
    metrics: list[MetricShape]


class MissionDetailShape(MissionShape):
    config: Annotated[MissionConfig, Field(description="The file, as changeMission takes it.")]
    pillars: list[PillarShape]
    capacity: CapacityShape
    next_cycle: str | None


class ApplyShape(ResponseModel):
    mission: MissionShape
    created: bool
    changes: list[str]
    warnings: list[str]


class PreviewShape(ResponseModel):
    created: bool
    changes: list[str]
    warnings: list[str]


class BoardQuery(RequestModel):
    pillar: Annotated[str | None, Field(max_length=100, description="The slug of a pillar.")] = None
    priority: TodoPriority | None = None
    search: Annotated[str, Field(max_length=200, description="A part of the title or the description.")] = ""
    archived: Annotated[bool, Field(description="Include todos that ended long ago.")] = False
    limit: Limit = 200
    cursor: Cursor = None


class ColumnShape(ResponseModel):
    status: str
    count: int


class CardRunShape(ResponseModel):
    id: str
    status: RunStatus
    agent: str
    why: str


class CardWaitShape(ResponseModel):
    kind: str
    id: str
    text: str


class CardShape(TodoShape):
    run: Annotated[CardRunShape | None, Field(description="The newest one, while it is in progress.")] = None
    waits: Annotated[tuple[CardWaitShape, ...], Field(description="What it waits for.")] = ()


class BoardPillarShape(PillarShape):
    todos: list[CardShape]


class BoardShape(ResponseModel):
    columns: list[ColumnShape]
    capacity: CapacityShape
    next_cycle: str | None
    pillars: list[BoardPillarShape]
    next_cursor: str | None = None


class SeriesQuery(RequestModel):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = DEFAULT_DAYS


class SeriesShape(ResponseModel):
    since: str
    timezone: str
    flow: list[FlowDayShape]
    throughput: list[ThroughputDayShape]
    cycle_times: CycleTimesShape
    cycles: Annotated[list[CycleShape], Field(description="Newest first.")]
    spend: list[SpendDayShape]
    turns: list[TurnsDayShape]
    finish_rate: float | None


class DirectiveQuery(RequestModel):
    ended: Annotated[bool, Field(description="Include those that no longer hold.")] = False


class DirectiveBody(RequestModel):
    text: Text
    until: Annotated[str | None, Field(max_length=100, description="The last day on which it holds.")] = None


class DirectiveShape(ResponseModel):
    id: str
    mission_id: str
    number: int
    content: str
    status: Literal["open", "ended"]
    holds_until: str | None
    created_by: str
    created_at: str
    ended_at: str | None


class DirectiveListShape(ResponseModel):
    items: list[DirectiveShape]


def mission_json(mission: Mission) -> dict[str, Any]:
    return camel_json(mission, *_MISSION_FIELDS)


def mission_version(call: ApiCall, tx: Transaction) -> str:
    """Of the settings; locks the mission."""
    mission = find_mission(tx, call.path["slug"])
    return (mission_repository.lock_mission(tx, mission.id) or mission).settings_version


def _list(call: ApiCall) -> Any:
    return {"items": [mission_json(each) for each in call.services.missions.list(archived=call.query.archived)]}


def _apply(call: ApiCall) -> ApiReply:
    source = json.dumps(call.body.as_json(), indent=2)
    config = _config(call)
    result = call.services.missions.apply(call.scope(), config, source)
    value = {
        "mission": mission_json(result.mission),
        "created": result.created,
        "changes": result.changes,
        "warnings": result.warnings,
    }
    return ApiReply(value, 201 if result.created else 200, result.mission.settings_version)


def _replace(call: ApiCall) -> ApiReply:
    if call.body.slug != call.path["slug"]:
        raise InvalidInput(f"slug: must be {call.path['slug']!r}, as in the path")
    call.services.missions.get(call.path["slug"])
    return _apply(call)


def _config(call: ApiCall) -> MissionConfig:
    """Checked once more as a file is: references between its parts too."""
    from punchlist.missions.config.file import parse_value

    return parse_value(call.body.as_json())


def _preview(call: ApiCall) -> Any:
    preview = call.services.missions.preview(_config(call))
    return {"created": preview.created, "changes": preview.lines, "warnings": preview.warnings}


def _show(call: ApiCall) -> ApiReply:
    board = read_board(call.services.store, call.path["slug"], limit=1)
    shown = board_json(board)
    value = {
        **mission_json(board.mission),
        "config": board.mission.config,
        "pillars": [{name: part for name, part in each.items() if name != "todos"} for each in shown["pillars"]],
        "capacity": board.todos.capacity.as_json(),
        "nextCycle": board.next_cycle,
    }
    return ApiReply(value, etag=board.mission.settings_version)


def _board(call: ApiCall) -> Any:
    query = call.query
    filter = BoardFilter(query.pillar, query.priority, query.search, query.archived)
    board = read_board(call.services.store, call.path["slug"], filter, limit=query.limit, cursor=query.cursor)
    return {**board_json(board), "capacity": board.todos.capacity.as_json()}


def _series(call: ApiCall) -> Any:
    return read_series(call.services.store, call.path["slug"], days=call.query.days).as_json()


def _archive(call: ApiCall) -> Any:
    return mission_json(call.services.missions.archive(call.scope(), call.path["slug"], call.body.reason))


def _unarchive(call: ApiCall) -> Any:
    return mission_json(call.services.missions.unarchive(call.scope(), call.path["slug"], call.body.reason))


def _cycle(call: ApiCall) -> Any:
    from punchlist.engine.periodic import enqueue_cycle

    mission = call.services.missions.get(call.path["slug"])
    return enqueue_cycle(call.services.store, call.scope(mission.conversation_id), mission).as_json()


def _pause(call: ApiCall) -> Any:
    return mission_json(call.services.missions.pause(call.scope(), call.path["slug"], call.body.reason))


def _resume(call: ApiCall) -> Any:
    return mission_json(call.services.missions.resume(call.scope(), call.path["slug"], call.body.reason))


def _directives(call: ApiCall) -> Any:
    found = call.services.directives.list(call.path["slug"], ended=call.query.ended)
    return {"items": [camel_json(each) for each in found]}


def _add_directive(call: ApiCall) -> Any:
    added = call.services.directives.add(call.scope(), call.path["slug"], call.body.text, until=call.body.until)
    return camel_json(added)


def _end_directive(call: ApiCall) -> Any:
    number = call.path["number"]
    if not (number.isdecimal() and len(number) < 10):
        raise NotFound(f"There is no directive {excerpt(number)!r}.")
    return camel_json(call.services.directives.end(call.scope(), call.path["slug"], int(number)))


ENDPOINTS = [
    Endpoint("GET", "/missions", "listMissions", "All missions.", _list, MissionListShape, ListQuery),
    Endpoint(
        "POST", "/missions", "applyMission", "Create a mission, or change it to match this file.",
        _apply, ApplyShape, body=MissionConfig, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/preview", "previewMission", "What applying this file would change.",
        _preview, PreviewShape, body=MissionConfig,
    ),
    Endpoint("GET", "/missions/{slug}", "getMission", "A mission and its settings.", _show, MissionDetailShape),
    Endpoint(
        "PUT", "/missions/{slug}", "changeMission", "Change a mission to match this file.",
        _replace, ApplyShape, body=MissionConfig, roles=PEOPLE, etag=mission_version,
    ),
    Endpoint(
        "GET", "/missions/{slug}/board", "getBoard", "A page of the board with the counts of all columns.",
        _board, BoardShape, BoardQuery,
    ),
    Endpoint(
        "GET", "/missions/{slug}/series", "getSeries", "Flow, throughput, cycle times, spend and ends of turns by day.",
        _series, SeriesShape, SeriesQuery,
    ),
    Endpoint(
        "POST", "/missions/{slug}/archive", "archiveMission", "End a mission; it stays readable.",
        _archive, MissionShape, body=RequiredReasonBody, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/{slug}/unarchive", "unarchiveMission", "Bring an archived mission back.",
        _unarchive, MissionShape, body=RequiredReasonBody, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/{slug}/pause", "pauseMission", "Start no cycles and runs any more; pause those that run.",
        _pause, MissionShape, body=ReasonBody, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/{slug}/resume", "resumeMission", "Continue a paused mission.",
        _resume, MissionShape, body=ReasonBody, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/{slug}/cycle", "startCycle", "Queue a planning cycle.",
        _cycle, RunShape, status=202, roles=PEOPLE,
    ),
    Endpoint(
        "GET", "/missions/{slug}/directives", "listDirectives", "The standing instructions of people.",
        _directives, DirectiveListShape, DirectiveQuery,
    ),
    Endpoint(
        "POST", "/missions/{slug}/directives", "addDirective", "Add a standing instruction.",
        _add_directive, DirectiveShape, body=DirectiveBody, status=201, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/missions/{slug}/directives/{number}/end", "endDirective", "End a standing instruction.",
        _end_directive, DirectiveShape, roles=PEOPLE,
    ),
]  # fmt: skip
