"""Who the caller is, and the access tokens of the server."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from punchlist.kernel.events import Role
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.tokens.model import TokenValidity
from punchlist.tokens.validation import DEFAULT_LIFETIME, parse_lifetime


class PrincipalShape(ResponseModel):
    name: str
    role: str
    csrf: Annotated[str | None, Field(description="For the header X-CSRF-Token of changes with a cookie.")]


class TokenShape(ResponseModel):
    id: str
    name: str
    role: str
    created_by: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    parent_id: Annotated[
        str | None, Field(description="Of a browser: the token that it logged in with, which ends it as well.")
    ]


class ListedTokenShape(TokenShape):
    validity: TokenValidity


class TokenListShape(ResponseModel):
    items: list[ListedTokenShape]


class NewTokenBody(RequestModel):
    name: Annotated[str, Field(min_length=1, max_length=50)]
    role: Role
    expires: Annotated[str, Field(max_length=20, description="12h, 30d, 8w or never.")] = DEFAULT_LIFETIME


class NewTokenShape(TokenShape):
    token: Annotated[str, Field(description="It is not shown again.")]


def _me(call: ApiCall) -> Any:
    principal = call.context.principal
    return {"name": principal.name, "role": principal.role.value, "csrf": principal.csrf}


def _list(call: ApiCall) -> Any:
    return {
        "items": [{**token.as_json(), "validity": validity.value} for token, validity in call.services.tokens.list()]
    }


def _create(call: ApiCall) -> Any:
    body = call.body
    issued = call.services.tokens.create(call.scope(), body.name, body.role, parse_lifetime(body.expires))
    return {**issued.token.as_json(), "token": issued.text}


def _revoke(call: ApiCall) -> Any:
    return call.services.tokens.revoke(call.scope(), call.path["id"]).as_json()


ENDPOINTS = [
    Endpoint("GET", "/me", "getPrincipal", "The caller.", _me, PrincipalShape),
    Endpoint("GET", "/tokens", "listTokens", "All access tokens.", _list, TokenListShape, roles=PEOPLE),
    Endpoint(
        "POST", "/tokens", "createToken", "Create an access token.",
        _create, NewTokenShape, body=NewTokenBody, status=201, roles=PEOPLE,
    ),
    Endpoint("DELETE", "/tokens/{id}", "revokeToken", "Revoke an access token.", _revoke, TokenShape, roles=PEOPLE),
]  # fmt: skip
