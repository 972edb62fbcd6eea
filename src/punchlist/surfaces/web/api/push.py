"""Web push: the key to subscribe with, and the subscription of the caller's browser."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from punchlist.notify.push import PushSubscription
from punchlist.storage import event_log
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, Endpoint, RequestModel, ResponseModel

_Key = Annotated[str, Field(min_length=1, max_length=200)]
_Address = Annotated[str, Field(min_length=1, max_length=2_000)]


class PushShape(ResponseModel):
    public_key: Annotated[str, Field(description="The applicationServerKey.")]
    subscriptions: Annotated[int, Field(description="In how many browsers it is turned on.")]


class PushKeys(RequestModel):
    p256dh: _Key
    auth: _Key


class PushBody(RequestModel):
    endpoint: _Address
    keys: PushKeys


class PushEndBody(RequestModel):
    endpoint: _Address


def _show(call: ApiCall) -> Any:
    push = call.services.web_push
    return {"publicKey": push.public_key(), "subscriptions": len(push.subscriptions())}


def _subscribe(call: ApiCall) -> Any:
    body = call.body
    token = call.context.principal.token_id
    call.services.web_push.subscribe(PushSubscription(body.endpoint, body.keys.p256dh, body.keys.auth, token))
    _record(call, "turn_on_push")
    return _show(call)


def _unsubscribe(call: ApiCall) -> Any:
    call.services.web_push.unsubscribe(call.body.endpoint)
    _record(call, "turn_off_push")
    return _show(call)


def _record(call: ApiCall, action: str) -> None:
    principal = call.context.principal
    with call.services.store.write() as tx:
        change = call.scope().change(f"push:{principal.token_id}", action, principal.token_id, "asked for", {})
        event_log.append(tx, change)


ENDPOINTS = [
    Endpoint("GET", "/push", "getPush", "The key that browsers subscribe with.", _show, PushShape, roles=PEOPLE),
    Endpoint(
        "POST", "/push", "subscribePush", "Send messages about the inbox to a browser, until its login ends.",
        _subscribe, PushShape, body=PushBody, roles=PEOPLE, joins=False,
    ),
    Endpoint(
        "DELETE", "/push", "unsubscribePush", "Send no more messages to a browser.",
        _unsubscribe, PushShape, body=PushEndBody, roles=PEOPLE, joins=False,
    ),
]  # fmt: skip
