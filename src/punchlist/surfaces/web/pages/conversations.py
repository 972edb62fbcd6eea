"""`/conversations`: sessions of agents."""

from __future__ import annotations

from typing import Final

from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.turns import turn_model
from punchlist.views.conversations import read_conversations

_LIMIT: Final = 50


def conversations(request: PageRequest) -> Page:
    services = request.services
    page = read_conversations(services.store, limit=_LIMIT, cursor=request.get("cursor") or None)
    chats = _mission_chats(request)
    rows = [{"line": line, "chat": chats.get(line.id)} for line in page.conversations]
    more = request.link(cursor=page.cursor) if page.cursor else None
    values = {"rows": rows, "model": turn_model(request), "more": more}
    return Page("conversations.html", "Conversations", values, section="conversations")


def _mission_chats(request: PageRequest) -> dict[str, tuple[str, str]]:
    """The name and the mission of each chat of a mission."""
    missions = request.services.missions
    found = {}
    for mission in missions.list(archived=True):
        found[mission.conversation_id] = ("Mission chat", mission.name)
        for pillar in (state.pillar for state in missions.pillars(mission)):
            found[pillar.conversation_id] = (pillar.name, mission.name)
            found[pillar.todo_conversation_id] = (f"{pillar.name}: todos", mission.name)
    return found
