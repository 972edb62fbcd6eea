"""The web server: the API, the login, MCP and the pages as one ASGI application.

`WebServer` is what all requests share. A request passes the gate (`gate.py`), which authenticates it, and reaches a
handler, which calls a service or a view and renders its result.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Final, Literal, ParamSpec, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from punchlist.app import Services
from punchlist.errors import PunchlistError, StoreError
from punchlist.idempotency.service import IdempotentRequests
from punchlist.kernel.text import excerpt
from punchlist.storage.async_bridge import AsyncBridge, make_bridge
from punchlist.surfaces.web import health, login_pages, webhooks
from punchlist.surfaces.web.answer_cache import AnswerCache
from punchlist.surfaces.web.api.routes import routes as api_routes
from punchlist.surfaces.web.context import WebPrincipal, is_authenticated
from punchlist.surfaces.web.gate import MCP, Gate, wants_page
from punchlist.surfaces.web.logins import Logins
from punchlist.surfaces.web.pages.routes import answer_without_page, page_routes
from punchlist.surfaces.web.problems import error_problem, problem
from punchlist.surfaces.web.warm_up import keep_warm

VALIDITY_SECONDS: Final = 1.0
P = ParamSpec("P")
T = TypeVar("T")
CLEANING_SECONDS: Final = 24 * 3600.0
NOTIFY_SECONDS: Final = 5.0


@dataclass(slots=False)
class WebServer:
    """What all requests share."""

    services: Services
    host_names: Collection[str] = ()
    """The names of this server in addition to the loopback names."""
    cookie_name: str = "punchlist"
    """With the port: cookies do not distinguish ports, so that two servers on one machine need two names."""
    secure: bool = False
    """Whether clients use https."""
    behind_proxy: bool = False
    """Whether every client comes through a proxy that appends its address to X-Forwarded-For."""
    model: str | None = None
    """The model that the person who started the server named."""
    mode: str | None = None
    """The permission mode that they named."""
    hosts_worker: bool = True
    """Whether the person who started it wants it to execute runs as well."""
    request_id_mark: str = field(default_factory=secrets.token_urlsafe)
    """Stands for the request id of forms in pages that are kept for several readers."""
    worker_state: Literal["none", "running", "failed"] = "none"
    login_page: Callable[..., Response] = field(default=login_pages.login_page)
    _validity: dict[str, tuple[bool, float]] = field(init=False, default_factory=dict)

    @cached_property
    def logins(self) -> Logins:
        return Logins(self.services)

    async def is_valid(self, principal: WebPrincipal) -> bool:
        """Whether the token of an open stream is still valid; asked at most once a second for each token."""
        now = time.monotonic()
        valid, at = self._validity.get(principal.token_id, (False, 0.0))
        if now - at > VALIDITY_SECONDS:
            # Before the question, so that a thousand streams of one token ask once.
            self._validity[principal.token_id] = (True, now)
            valid = await self.call(self.services.tokens.is_valid, principal.token_id)
            self._validity[principal.token_id] = (valid, now)
        return valid

    @cached_property
    def call(self) -> AsyncBridge:
        """Calls a synchronous service that writes in at most one transaction."""
        return make_bridge(self.services.store)

    @cached_property
    def answers(self) -> AnswerCache:
        return AnswerCache(self.services.store)

    async def call_in_thread(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a synchronous service in a thread, where it may wait."""
        return await asyncio.to_thread(work, *args, **kwargs)


def build_app(web: WebServer, mcp: ASGIApp | None = None) -> Starlette:
    routes: list[BaseRoute] = [
        *health.routes(),
        *login_pages.routes(),
        *webhooks.routes(),
        *api_routes(),
        *page_routes(),
    ]
    if mcp is not None:
        routes.append(Route(MCP, mcp))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(_forget_old_answers(web)), asyncio.create_task(_send_notifications(web))]
        stopping = asyncio.Event()
        warming = asyncio.create_task(keep_warm(web.services, stopping))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            stopping.set()
            # The worker's engine ends the threads of this loop when it stops first.
            with suppress(RuntimeError):
                await warming
            web.answers.close()
            # Not in a thread, for the same reason.
            web.services.live.close()

    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, web=web)],
        exception_handlers={PunchlistError: _answer_error, HTTPException: _answer_http_error, Exception: _answer_crash},
        lifespan=lifespan,
    )
    app.state.web = web
    app.router.redirect_slashes = False
    return app


async def _forget_old_answers(web: WebServer) -> None:
    """Delete the answers to idempotent requests that are too old to be repeated, at the start and once a day."""
    while True:
        # The next day is early enough after an outage of the database.
        with suppress(StoreError):
            await web.call_in_thread(IdempotentRequests(web.services.store).forget_old)
        await asyncio.sleep(CLEANING_SECONDS)


async def _send_notifications(web: WebServer) -> None:
    """While no worker of this process does it. So a person learns that no worker is alive."""
    while True:
        # Errors of channels are stored with the notification.
        with suppress(PunchlistError):
            if web.worker_state != "running":
                await web.call_in_thread(web.services.notifier.run)
        await asyncio.sleep(NOTIFY_SECONDS)


async def _answer_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, PunchlistError)
    return error_problem(error)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in (404, 405) and wants_page(request) and is_authenticated(request):
        return await answer_without_page(request, error.status_code)
    detail = error.detail
    if error.status_code == 405:
        detail = f"{request.method}: method not allowed"
    elif detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"There is nothing at {excerpt(request.url.path, 200)}. /api/v1/openapi.json describes the API."
    return problem(error.status_code, detail, headers=error.headers)


async def _answer_crash(request: Request, error: Exception) -> Response:
    """The traceback goes to the log; a response shows nothing of it."""
    del request, error
    return problem(500, "The server failed unexpectedly; its log has the error.", code="internal")
