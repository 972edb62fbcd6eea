"""Runs an endpoint: checks the request, calls the handler, checks and renders its result.

A change runs in one transaction with the comparison of If-Match and the record of its Idempotency-Key.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from punchlist.errors import InvalidInput, NotAllowed, PunchlistError, StoreError
from punchlist.idempotency.model import Answer, fingerprint
from punchlist.idempotency.service import KeyReused
from punchlist.kernel.text import excerpt, field_path
from punchlist.storage.store import Transaction
from punchlist.surfaces.http.auth import HttpRejection
from punchlist.surfaces.web.api.endpoint import ApiCall, ApiReply, Endpoint
from punchlist.surfaces.web.context import context_of
from punchlist.surfaces.web.problems import ChangedSinceRead, error_problem, problem

PREFIX: Final = "/api/v1"
JSON: Final = "application/json"
MAX_QUERY_LENGTH: Final = 8_000


def routes(endpoints: Sequence[Endpoint]) -> list[Route]:
    """One route for each path, so that an unknown method is answered with 405 and the methods that exist.

    Fixed paths come before those with a parameter in the same place.
    """
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [_route(path, methods) for path, methods in sorted(by_path.items(), key=lambda entry: "{" in entry[0])]


def _route(path: str, methods: Mapping[str, Endpoint]) -> Route:
    async def handle(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            answer = await _answer(endpoint, request)
        except HttpRejection as error:
            return problem(error.status, str(error), headers=error.headers)
        except PunchlistError as error:
            return error_problem(error)
        return Response(answer.body, answer.status, answer.headers)

    return Route(PREFIX + path, handle, methods=list(methods))


async def _answer(endpoint: Endpoint, request: Request) -> Answer:
    call = await _parse(endpoint, request)
    role = call.context.principal.role
    if endpoint.roles is not None and role not in endpoint.roles:
        allowed = " or a ".join(sorted(endpoint.roles))
        raise NotAllowed(f"{role.described} may not do this; a {allowed} may.")
    if not endpoint.changes:
        return await _read(endpoint, call, request)
    if_match = request.headers.get("if-match")
    key = request.headers.get("idempotency-key")
    content = [endpoint.method.encode(), request.url.path.encode(), request.url.query.encode(), await request.body()]
    return await asyncio.to_thread(_change, endpoint, call, if_match, key, fingerprint(content))


async def _read(endpoint: Endpoint, call: ApiCall, request: Request) -> Answer:
    key = (request.url.path, request.url.query, call.context.principal)
    answer = await call.context.web.answers.get(
        key, lambda: call.context.call(lambda: _render(endpoint, endpoint.handle(call)))
    )
    if_none_match = request.headers.get("if-none-match")
    if if_none_match is not None and answer.headers.get("ETag") in _tags(if_none_match):
        return Answer(304, answer.headers, "")
    return answer


def _change(endpoint: Endpoint, call: ApiCall, if_match: str | None, key: str | None, content: str) -> Answer:
    """For a thread. A repeated request is answered without doing anything."""
    requests, client = call.services.idempotent_requests, call.context.principal.token_id
    if key is not None and (before := requests.find(client, key, content)):
        return _repeated(before)
    if if_match is not None and endpoint.etag is None:
        raise InvalidInput("If-Match: this object has no version")
    if endpoint.prepare is not None:
        endpoint.prepare(call)

    def work() -> Answer:
        try:
            with call.services.store.write() as tx:
                _check_version(endpoint, call, tx, if_match)
            return _render(endpoint, endpoint.handle(call))
        except (StoreError, KeyReused):
            raise
        except PunchlistError as error:
            # What a service has committed before it refused stays, such as a recommendation.
            refused = error_problem(error)
            return Answer(refused.status_code, dict(refused.headers), bytes(refused.body).decode())

    if key is None:
        with call.services.store.join() if endpoint.joins else nullcontext():
            return work()
    answer, repeated = (requests.answer if endpoint.joins else requests.answer_alone)(client, key, content, work)
    return _repeated(answer) if repeated else answer


def _check_version(endpoint: Endpoint, call: ApiCall, tx: Transaction, if_match: str | None) -> None:
    if if_match is None or endpoint.etag is None:
        return
    current = quoted(endpoint.etag(call, tx))
    if if_match.strip() != "*" and current not in _tags(if_match):
        raise ChangedSinceRead(f"It was changed since you read it: its version is {current} now. Read it again.")


def _repeated(answer: Answer) -> Answer:
    return answer._replace(headers={**answer.headers, "Idempotent-Replayed": "true"})


def _render(endpoint: Endpoint, result: Any) -> Answer:
    reply = result if isinstance(result, ApiReply) else ApiReply(result, endpoint.status)
    # Raises where a view does not return what the document promises.
    endpoint.response_adapter.validate_python(reply.value)
    headers = {"Content-Type": JSON}
    if reply.etag is not None:
        headers["ETag"] = quoted(reply.etag)
    return Answer(reply.status, headers, json.dumps(reply.value))


def version_of(*parts: Any) -> str:
    """A version: the same for the same content."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


def quoted(etag: str) -> str:
    return f'"{etag}"'


def _tags(header: str) -> list[str]:
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]


# --- parsing ----------------------------------------------------------------------------------------------


async def _parse(endpoint: Endpoint, request: Request) -> ApiCall:
    context = context_of(request)
    given: dict[str, Any] = {}
    if len(request.url.query) > MAX_QUERY_LENGTH:
        raise HttpRejection(414, "The query is too long.")
    for name, value in request.query_params.multi_items():
        if name in given:
            raise InvalidInput(f"{excerpt(name)}: is given more than once")
        given[name] = value
    query = _checked(endpoint.query, lambda model: model.model_validate(given))
    body = None
    if endpoint.body is not None:
        content = await request.body()
        kind, _, rest = request.headers.get("content-type", "").partition(";")
        if kind.strip().lower() != JSON or "charset" in rest.lower().replace("charset=utf-8", ""):
            raise HttpRejection(415, f"Content-Type: must be {JSON}")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpRejection(415, "Content-Encoding: not supported")
        body = _checked(endpoint.body, lambda model: model.model_validate_json(content))
    elif endpoint.changes and await request.body():
        raise InvalidInput("This request has no body.")
    return ApiCall(context, request.path_params, query, body)


def _checked(model: type[BaseModel], parse: Callable[[type[BaseModel]], BaseModel]) -> BaseModel:
    try:
        return parse(model)
    except ValidationError as error:
        problems = [
            f"{field_path(each['loc']) if each['loc'] else 'body'}: {each['msg']}"
            for each in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise InvalidInput(problems) from None
