"""Webhooks in: a signed POST of another program wakes a todo that waits for an event, or starts a planning cycle.

A webhook belongs to an access token, whose name and role its changes have and whose expiry and revocation end it. The
secret is derived from the token's id with the user's key, so that it is stored nowhere. Requests are signed as in the
Standard Webhooks specification: `webhook-signature` is `v1,` and the base64 of the HMAC-SHA256 of id, timestamp and
body. The id of a request is remembered, so that a replayed request changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from punchlist.app import Services
from punchlist.errors import PunchlistError, StoreError
from punchlist.idempotency.model import Answer, fingerprint
from punchlist.kernel.events import Actor
from punchlist.missions.model import MissionScope
from punchlist.surfaces.web.api.endpoint import RequestModel, ResponseModel
from punchlist.surfaces.web.problems import error_problem, problem
from punchlist.tokens.model import AccessToken
from punchlist.tokens.validation import WEBHOOK_PREFIX, webhook_secret

MAX_AGE_SECONDS: Final = 300
WEBHOOK_PATH: Final = "/webhooks/{id}"


class WebhookBody(RequestModel):
    """`wake` reports an event that todos of a session wait for; `cycle` starts a planning cycle of a mission."""

    type: Literal["wake", "cycle"]
    session: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    event: Annotated[str | None, Field(min_length=1, max_length=500)] = None
    note: Annotated[str, Field(max_length=2_000)] = ""
    mission: Annotated[str | None, Field(min_length=1, max_length=100)] = None


class WokenShape(ResponseModel):
    todo_id: str
    title: str


class WebhookAnswer(ResponseModel):
    woken: Annotated[list[WokenShape] | None, Field(description="After wake: what no longer waits.")] = None
    run_id: Annotated[str | None, Field(description="After cycle: its run.")] = None


def routes() -> list[Route]:
    return [Route(WEBHOOK_PATH, _receive, methods=["POST"])]


async def _receive(request: Request) -> Response:
    web, body = request.app.state.web, await request.body()
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    id, at, signatures = (request.headers.get(name, "") for name in names)
    try:
        given = await web.call_in_thread(_answer, web.services, request.path_params["id"], id, at, signatures, body)
    except PunchlistError as error:
        return error_problem(error)
    if given is None:
        # One answer for every reason: a stranger learns nothing.
        return problem(401, "webhook-signature: is not valid for this address", code="bad_signature")
    return Response(given.body, given.status, given.headers)


def _answer(services: Services, token_id: str, id: str, at: str, signatures: str, body: bytes) -> Answer | None:
    token = services.tokens.find_for_webhook(token_id)
    if token is None or not _is_fresh(services, at) or not _is_signed(services, token, id, at, signatures, body):
        return None
    answer, _ = services.idempotent_requests.answer(
        token.id, f"webhook {id}", fingerprint([body]), lambda: _carry_out(services, token, body)
    )
    return answer


def _is_fresh(services: Services, at: str) -> bool:
    now = services.store.clock().timestamp()
    return at.isascii() and at.isdecimal() and len(at) < 12 and abs(now - int(at)) <= MAX_AGE_SECONDS


def _is_signed(services: Services, token: AccessToken, id: str, at: str, signatures: str, body: bytes) -> bool:
    if not (id.isascii() and id.isprintable() and 1 <= len(id) <= 100):
        return False
    expected = b"v1," + sign(webhook_secret(services.trust, token.id), id, at, body)
    return any(hmac.compare_digest(expected, each.encode()) for each in signatures.split()[:10])


def sign(secret: str, id: str, at: str, body: bytes) -> bytes:
    key = base64.b64decode(secret.removeprefix(WEBHOOK_PREFIX))
    digest = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest)


def _carry_out(services: Services, token: AccessToken, body: bytes) -> Answer:
    headers = {"Content-Type": "application/json"}
    try:
        asked = WebhookBody.model_validate_json(body)
        return Answer(200, headers, json.dumps(_perform(services, Actor(token.role, token.name), asked)))
    except ValidationError:
        refused = problem(422, "The body must be a wake with session and event, or a cycle with mission.")
    except StoreError:
        raise
    except PunchlistError as error:
        refused = error_problem(error)
    return Answer(refused.status_code, dict(refused.headers), bytes(refused.body).decode())


def _perform(services: Services, actor: Actor, asked: WebhookBody) -> dict[str, Any]:
    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.errors import InvalidInput, NotAllowed
    from punchlist.missions.todos.lifecycle import LEADS

    if asked.type == "wake":
        if asked.session is None or asked.event is None:
            raise InvalidInput("session, event: are required for a wake")
        woken = services.plans.report_event(asked.session, asked.event, actor, note=asked.note)
        return {"woken": [{"todoId": each.todo.id, "title": each.todo.title} for each in woken]}
    if asked.mission is None:
        raise InvalidInput("mission: is required for a cycle")
    if actor.role not in LEADS:
        raise NotAllowed(f"{actor.role.described} may not start a cycle; the Lead and people may.")
    mission = services.missions.get(asked.mission)
    run = enqueue_cycle(services.store, MissionScope(mission.conversation_id, actor), mission)
    return {"runId": run.id}
