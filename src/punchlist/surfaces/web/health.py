"""`/healthz`: the process answers. `/readyz`: its database does too. Neither says anything about the content."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from punchlist.errors import PunchlistError
from punchlist.storage.store import Store
from punchlist.surfaces.web.problems import problem


def routes() -> list[Route]:
    return [Route("/healthz", _healthz), Route("/readyz", _readyz)]


async def _healthz(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


async def _readyz(request: Request) -> Response:
    web = request.app.state.web
    try:
        await web.call(_read, web.services.store)
    except PunchlistError:
        return problem(503, "The database is not available.", code="store_unavailable", headers={"Retry-After": "5"})
    return JSONResponse({"status": "ok", "worker": web.worker_state})


def _read(store: Store) -> None:
    with store.read() as tx:
        tx.raw("SELECT 1")
