"""`/api/v1/events`: the event log and live text as server-sent events.

All streams of a server share one watcher of the database (`views/live_hub.py`). An event has the id of its sequence
number, so that a client that connects again continues after the last one it got. Live text has no id: it is not
repeated, and its positions show what is missing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.camel_json import camel_json
from punchlist.surfaces.http.limits import MAX_EVENT_STREAMS
from punchlist.surfaces.web.api.dispatch import PREFIX
from punchlist.surfaces.web.context import RequestContext, context_of
from punchlist.surfaces.web.problems import error_problem, problem
from punchlist.views.activity_repository import ActivityEntry
from punchlist.views.live_hub import LiveItem, Subscription
from punchlist.views.live_text import LiveText

KEEPALIVE_SECONDS: Final = 15.0
KEEPALIVE: Final = b": keepalive\n\n"
_NAMES: Final = frozenset({"mission", "conversation", "after", "text"})


def route() -> Route:
    return Route(f"{PREFIX}/events", _events, methods=["GET"], name="streamEvents")


async def _events(request: Request) -> Response:
    context = context_of(request)
    if len(context.services.live) >= MAX_EVENT_STREAMS:
        reason = f"Limit of {MAX_EVENT_STREAMS} open streams reached."
        return problem(503, reason, headers={"Retry-After": "10"})
    try:
        subscription = await context.web.call_in_thread(_subscribe, context, request)
    except PunchlistError as error:
        return error_problem(error)
    return _WebEventStream(context, subscription)


def _subscribe(context: RequestContext, request: Request) -> Subscription:
    query = request.query_params
    if unknown := sorted(set(query) - _NAMES):
        raise InvalidInput([f"{name}: is not a parameter of this stream" for name in unknown])
    mission, conversation = query.get("mission"), query.get("conversation")
    if mission is not None and conversation is not None:
        raise InvalidInput("mission, conversation: only one of them can be given")
    # Browsers send the header when they connect again, with the first address.
    after = request.headers.get("last-event-id") or query.get("after")
    if after is not None and not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise InvalidInput("after, Last-Event-ID: must be a sequence number")
    text = query.get("text", "false")
    if text not in ("true", "false"):
        raise InvalidInput("text: must be true or false")
    return context.services.live.subscribe(
        mission=mission,
        conversation_id=conversation,
        after=None if after is None else int(after),
        text=text == "true",
    )


class _WebEventStream(StreamingResponse):
    def __init__(self, context: RequestContext, subscription: Subscription) -> None:
        super().__init__(
            _frames(context, subscription), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.close()


async def _frames(context: RequestContext, subscription: Subscription) -> AsyncIterator[bytes]:
    """Until the server stops or the token ends."""
    # The position, so that a client that loses the connection before the first event misses none either.
    name = b"reset" if subscription.reset else b"position"
    last = subscription.last
    yield b'retry: 1000\nid: %d\nevent: %s\ndata: {"last": %d}\n\n' % (last, name, last)
    while not subscription.closed:
        items = await subscription.batch(KEEPALIVE_SECONDS)
        if not await context.web.is_valid(context.principal):
            return
        yield b"".join(map(frame, items)) or KEEPALIVE


def frame(item: LiveItem) -> bytes:
    """A server-sent event. ASCII JSON has no line breaks."""
    if isinstance(item, LiveText):
        return b"event: text\ndata: %s\n\n" % json.dumps(item.as_json()).encode()
    return _event_frame(item)


@lru_cache(maxsize=4_096)
def _event_frame(entry: ActivityEntry) -> bytes:
    """Rendered once for all streams."""
    return b"id: %d\nevent: change\ndata: %s\n\n" % (entry.seq, json.dumps(camel_json(entry)).encode())
