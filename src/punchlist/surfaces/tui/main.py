"""Starts the terminal application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.app import PunchlistApp

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.surfaces.tui.backend import Backend


def run(services: Services, options: AgentOptions, *, session: str | None = None, goal: str | None = None) -> str:
    """Run until the person quits; returns what goes on running."""

    def open_backend() -> Backend:
        from punchlist.surfaces.tui.backend import Backend

        return Backend(services, options)

    app = PunchlistApp(open_backend, session=session, goal=goal)
    farewell = app.run() or ""
    if app.return_code:
        # The application has said what happened.
        raise SystemExit(app.return_code)
    return farewell
