"""What a request handler gets: the services, who asks, and the clock.

`gate.py` authenticates a request and puts its `RequestContext` where `context_of` finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from punchlist.app import Services
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope

if TYPE_CHECKING:
    from starlette.requests import Request

    from punchlist.surfaces.web.server import WebServer

P = ParamSpec("P")
T = TypeVar("T")

CONTEXT: Final = "punchlist"
"""The name in the state of a request."""


@dataclass(frozen=True, slots=True)
class WebPrincipal:
    """The owner of a valid token."""

    token_id: str
    name: str
    """The name of the token; the event log names it."""
    role: Role
    csrf: str | None
    """What forms and scripts must send with every change; None if the client sent the token itself."""

    @property
    def actor(self) -> Actor:
        return Actor(self.role, self.name)

    @property
    def can_write(self) -> bool:
        """For pages, which do not offer what is refused. The services decide."""
        return self.role is not Role.VIEWER


@dataclass(frozen=True, slots=True)
class RequestContext:
    web: WebServer
    principal: WebPrincipal

    @property
    def services(self) -> Services:
        return self.web.services

    @property
    def now(self) -> datetime:
        return self.web.services.store.clock()

    def scope(self, session: str | None = None) -> MissionScope:
        """Who acts, for the services."""
        return MissionScope(session or self.services.settings.session, self.principal.actor)

    async def call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a synchronous service without blocking other requests."""
        return await self.web.call(work, *args, **kwargs)


def context_of(request: Request) -> RequestContext:
    context: Any = getattr(request.state, CONTEXT)
    assert isinstance(context, RequestContext)
    return context


def is_authenticated(request: Request) -> bool:
    """False for paths that are open to everyone."""
    return hasattr(request.state, CONTEXT)
