"""The pages of mission control: each module parses the request, calls one view or service, and names a template."""

from __future__ import annotations

from starlette.routing import BaseRoute


def routes() -> list[BaseRoute]:
    from punchlist.surfaces.web.pages.routes import page_routes

    return page_routes()
