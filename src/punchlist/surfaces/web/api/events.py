"""`/api/v1/events`: the event log as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.surfaces.http.limits import MAX_EVENT_STREAMS
from punchlist.surfaces.web.api.dispatch import PREFIX
from punchlist.surfaces.web.context import RequestContext, context_of
from punchlist.surfaces.web.event_hub import EventFilter, EventHub, Subscription
from punchlist.surfaces.web.problems import error_problem, problem

_NAMES = frozenset({"mission", "conversation", "after"})


def route() -> Route:
    return Route(f"{PREFIX}/events", _events, methods=["GET"], name="streamEvents")


async def _events(request: Request) -> Response:
    context = context_of(request)
    hub = context.web.hub
    if hub.streams >= MAX_EVENT_STREAMS:
        reason = f"Limit of {MAX_EVENT_STREAMS} open streams reached."
        return problem(503, reason, headers={"Retry-After": "10"})
    try:
        filter, after = _parse(request)
        subscription = await hub.subscribe(filter)
    except PunchlistError as error:
        return error_problem(error)
    return _WebEventStream(context, hub, subscription, after)


def _parse(request: Request) -> tuple[EventFilter, int | None]:
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
    return EventFilter(mission, conversation), None if after is None else int(after)


class _WebEventStream(StreamingResponse):
    def __init__(self, context: RequestContext, hub: EventHub, subscription: Subscription, after: int | None) -> None:
        content = _frames(context, hub, subscription, after)
        super().__init__(content, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._end = lambda: hub.unsubscribe(subscription)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


async def _frames(
    context: RequestContext, hub: EventHub, subscription: Subscription, after: int | None
) -> AsyncIterator[bytes]:
    """Until the server stops, the token ends, or the client reads too slowly."""
    # The position, so that a client that loses the connection before the first event misses none either.
    position = subscription.start if after is None else min(after, subscription.start)
    yield b'retry: 1000\nid: %d\nevent: position\ndata: {"last": %d}\n\n' % (position, position)
    if after is not None:
        async for frames in hub.missed(subscription, after):
            yield frames
    while not subscription.closed:
        frames = await subscription.next()
        if not await context.web.is_valid(context.principal):
            return
        if frames:
            yield frames
