"""What an endpoint declares, and what its handler gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from punchlist.app import Services
from punchlist.kernel.events import Role
from punchlist.missions.model import MissionScope
from punchlist.storage.store import Transaction
from punchlist.surfaces.web.context import RequestContext

M = TypeVar("M", bound=BaseModel)
PEOPLE: Final = frozenset({Role.PERSON})
"""Answers and settings are for people, whatever a service would accept from an agent."""


class RequestModel(BaseModel):
    """A body or a query. Unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", allow_inf_nan=False, frozen=True
    )


class ResponseModel(BaseModel):
    """The fields that clients can rely on. More can be added."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class NoQuery(RequestModel):
    pass


@dataclass(frozen=True, slots=True)
class ApiCall:
    """An authenticated request with checked parameters."""

    context: RequestContext
    path: Mapping[str, str]
    query: Any
    body: Any

    @property
    def services(self) -> Services:
        return self.context.services

    def scope(self, session: str | None = None) -> MissionScope:
        return self.context.scope(session)


@dataclass(frozen=True, slots=True)
class ApiReply:
    """A result with a status or a version of its own."""

    value: Any
    status: int = 200
    etag: str | None = None


@dataclass(frozen=True, eq=False)
class Endpoint:
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """After `/api/v1`; parameters in braces."""
    name: str
    """The operation's id."""
    summary: str
    handle: Callable[[ApiCall], Any]
    response: Any
    """A type that pydantic can check."""
    query: type[RequestModel] = NoQuery
    body: type[BaseModel] | None = None
    status: int = 200
    roles: frozenset[Role] | None = None
    """Who may call it; None leaves that to the service."""
    etag: Callable[[ApiCall, Transaction], str] | None = None
    """The current version of the object, locked until the end of the transaction; for If-Match."""
    prepare: Callable[[ApiCall], None] | None = None
    """Slow work before the transaction of a change, such as running a check."""
    joins: bool = True
    """Whether a change runs in one transaction; not if it waits for a process."""

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    @cached_property
    def response_adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.response)
