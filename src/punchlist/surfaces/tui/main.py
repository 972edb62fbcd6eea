"""Starts the terminal application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.backend import AgentOptions, Backend

if TYPE_CHECKING:
    from punchlist.app import Services


def run(services: Services, options: AgentOptions, *, session: str | None = None, goal: str | None = None) -> str:
    """Run until the person quits; returns what goes on running."""
    return PunchlistApp(Backend(services, options), session=session, goal=goal).run() or ""
