"""All routes of the API."""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from punchlist.surfaces.web.api import (
    access,
    activity,
    agents,
    conversations,
    dispatch,
    events,
    inbox,
    lists,
    metrics,
    missions,
    openapi,
    pillars,
    push,
    recommendations,
    replay,
    runs,
    timelines,
    todo_lists,
    todos,
)
from punchlist.surfaces.web.api.endpoint import Endpoint

ENDPOINTS: Final[list[Endpoint]] = [
    endpoint
    for module in (
        *(access, push, missions, pillars, recommendations, metrics, todos, todo_lists, runs, timelines),
        *(conversations, lists, replay, agents, inbox, activity),
    )
    for endpoint in module.ENDPOINTS
]


def routes() -> list[BaseRoute]:
    return [
        Route(f"{dispatch.PREFIX}/openapi.json", _document, methods=["GET"]),
        events.route(),
        *dispatch.routes(ENDPOINTS),
    ]


@cache
def document_text() -> str:
    return json.dumps(openapi.document(ENDPOINTS), indent=2)


async def _document(request: Request) -> Response:
    del request
    return Response(document_text(), media_type="application/json")
