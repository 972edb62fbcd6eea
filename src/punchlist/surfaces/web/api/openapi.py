"""The OpenAPI 3.1 document, from the endpoints and their models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from punchlist import __version__
from punchlist.surfaces.web.api.dispatch import JSON, PREFIX
from punchlist.surfaces.web.api.endpoint import Endpoint
from punchlist.surfaces.web.problems import TITLES
from punchlist.surfaces.web.webhooks import MAX_AGE_SECONDS, WEBHOOK_PATH, WebhookAnswer, WebhookBody

_REF: Final = "#/components/schemas/{model}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, to what, and what to do next."},
        "code": {"type": "string", "description": "For programs; it does not change."},
        "problems": {"type": "array", "items": {"type": "string"}, "description": "Each names its field."},
    },
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    models: list[tuple[Any, JsonSchemaMode]] = [(WebhookBody, "validation"), (WebhookAnswer, "serialization")]
    for endpoint in endpoints:
        models.append((endpoint.response, "serialization"))
        if endpoint.body is not None:
            models.append((endpoint.body, "validation"))
    references, definitions = models_json_schema(list(dict.fromkeys(models)), ref_template=_REF)
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, references)
    paths[f"{PREFIX}/events"] = {"get": _EVENTS}
    paths[WEBHOOK_PATH] = {
        "post": _webhook(references[WebhookBody, "validation"], references[WebhookAnswer, "serialization"])
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Punchlist",
            "version": __version__,
            "description": (
                "Todo lists that AI agents finish. Every request needs an access token. A change with an "
                "Idempotency-Key that is repeated gets the first answer and changes nothing."
            ),
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"login": []}],
        "paths": paths,
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Problem": _PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`punchlist token create`"},
                "login": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "punchlist-8420",
                    "description": "Set by the login link; changes also need X-CSRF-Token.",
                },
            },
        },
    }


def _operation(endpoint: Endpoint, references: dict[tuple[Any, JsonSchemaMode], Any]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(endpoint.path)
    ]
    query = TypeAdapter(endpoint.query).json_schema(mode="validation")
    for name, schema in query.get("properties", {}).items():
        described = {"description": schema.pop("description")} if "description" in schema else {}
        inlined = _inline(schema, query.get("$defs", {}))
        required = name in query.get("required", ())
        parameters.append({"name": name, "in": "query", "required": required, **described, "schema": _plain(inlined)})
    if endpoint.changes:
        parameters.append(_header("Idempotency-Key", "Repeated requests with one key change nothing twice.", 200))
    if endpoint.etag is not None:
        parameters.append(_header("If-Match", "The version that was read; 412 if there is a newer one.", 200))
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.path.split("/")[1]],
        "parameters": parameters,
        "responses": _responses(endpoint, references[endpoint.response, "serialization"]),
    }
    if endpoint.body is not None:
        schema = references[endpoint.body, "validation"]
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return operation


def _responses(endpoint: Endpoint, schema: dict[str, Any]) -> dict[str, Any]:
    success = {"description": "Done.", "content": {JSON: {"schema": schema}}}
    if endpoint.etag is not None or endpoint.name in ("getTodo", "getMission"):
        success["headers"] = {"ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}}}
    statuses = [401, 403, 429, 500, 503]
    if _PARAMETER.search(endpoint.path):
        statuses.append(404)
    statuses.append(422)
    if endpoint.changes:
        statuses += [404, 408, 409, 413]
    if endpoint.body is not None:
        statuses.append(415)
    if endpoint.etag is not None:
        statuses.append(412)
    problems = {str(status): _problem(status) for status in sorted({*statuses, 404, 414})}
    both = {"201": success, "200": success} if endpoint.name == "applyMission" else {str(endpoint.status): success}
    return {**both, **problems}


def _problem(status: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}}
    return {"description": TITLES.get(status, "Error"), "content": content}


def _header(name: str, description: str, length: int) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": length}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _webhook(body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    texts = {
        "webhook-id": "Of the request; a repeated one gets the first answer and changes nothing.",
        "webhook-timestamp": f"Unix seconds; at most {MAX_AGE_SECONDS} seconds from now.",
        "webhook-signature": "`v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body, joined by dots.",
    }
    lengths = {"webhook-id": 100, "webhook-timestamp": 11, "webhook-signature": 1_000}
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    done = {
        "description": "Done: the todos that were woken, or the run of the cycle.",
        "content": {JSON: {"schema": answer}},
    }
    return {
        "operationId": "receiveWebhook",
        "summary": "Wake what waits for an event, or start a planning cycle, by a signed request.",
        "description": "As in Standard Webhooks. `punchlist token create NAME --webhook` prints address and secret.",
        "tags": ["webhooks"],
        "security": [],
        "parameters": [id, *({**_header(name, texts[name], lengths[name]), "required": True} for name in texts)],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {
            "200": done,
            **{str(status): _problem(status) for status in (401, 403, 404, 408, 409, 413, 422, 429, 500, 503)},
        },
    }


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    """Parameters are short: their schemas refer to nothing."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inline(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        return {name: _inline(value, definitions) for name, value in schema.items() if name != "title"}
    return [_inline(each, definitions) for each in schema] if isinstance(schema, list) else schema


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that is left out is not null."""
    options = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and value is not None}
    if not options:
        return rest
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}


_EVENTS: Final[dict[str, Any]] = {
    "operationId": "streamEvents",
    "summary": "Events as they are committed by any process, as server-sent events.",
    "description": (
        "Each event has the id of its sequence number and the fields of listActivity. A client that connects again "
        "with Last-Event-ID, or `after`, misses none."
    ),
    "tags": ["events"],
    "parameters": [
        {"name": "mission", "in": "query", "required": False, "schema": {"type": "string", "maxLength": 100}},
        {"name": "conversation", "in": "query", "required": False, "schema": {"type": "string", "maxLength": 200}},
        {"name": "after", "in": "query", "required": False, "schema": {"type": "integer", "minimum": 0}},
        {
            "name": "text",
            "in": "query",
            "required": False,
            "description": "Also what models stream and running calls print, as it is written.",
            "schema": {"type": "boolean", "default": False},
        },
        {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 20}},
    ],
    "responses": {
        "200": {"description": "A stream.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **{str(status): _problem(status) for status in (401, 403, 404, 422, 429, 503)},
    },
}
