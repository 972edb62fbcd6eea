"""What the search box offers besides what is stored: actions and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from punchlist.kernel.events import Role
from punchlist.surfaces.web.pages.page import PageRequest
from punchlist.surfaces.web.pages.search_results import Result, plain
from punchlist.surfaces.web.pages.turns import turn_model

if TYPE_CHECKING:
    from punchlist.missions.model import Mission

_PAGES: Final = (
    ("Attention", "/", "inbox"),
    ("Conversations", "/conversations", "chat"),
    ("Runs", "/runs", "run"),
    ("Agents", "/agents", "bot"),
    ("You and this browser", "/settings", "shield"),
)
_MISSION_PAGES: Final = (
    ("Overview", ""),
    ("Chats", "/chats"),
    ("Runs", "/runs"),
    ("Flow", "/flow"),
    ("History", "/replay"),
    ("Settings", "/settings"),
)


def actions(request: PageRequest, missions: Sequence[Mission]) -> Iterator[Result]:
    """What this person may do; `missions` are the active ones, that of the page first."""
    if request.actor.role is Role.VIEWER:
        return
    for mission in missions:
        yield Result("plus", plain("New todo"), mission.name, f"/missions/{mission.slug}/new")
        yield Result("refresh", plain("Plan now"), mission.name, f"/missions/{mission.slug}/cycle", posts=True)
    if turn_model(request) is not None:
        yield Result("chat", plain("New conversation"), "", "/conversations#new-conversation")
    yield Result("target", plain("New mission"), "", "/missions/new")


def pages(missions: Sequence[Mission], *, deep: bool) -> Iterator[Result]:
    """`deep`: also those within a mission."""
    for mission in missions:
        state = "Board" if mission.status == "active" else f"Board, {mission.status}"
        yield Result("board", plain(mission.name), state, f"/missions/{mission.slug}/board")
    for name, url, icon in _PAGES:
        yield Result(icon, plain(name), "", url)
    if deep:
        for mission in missions:
            for name, path in _MISSION_PAGES:
                yield Result("target", plain(name), mission.name, f"/missions/{mission.slug}{path}")
