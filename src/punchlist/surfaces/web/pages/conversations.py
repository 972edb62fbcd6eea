"""`/conversations`: sessions of agents, with their lists and turns."""

from __future__ import annotations

import json
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Scope
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.turns import turn_model

_LIMIT: Final = 100


def conversations(request: PageRequest) -> Page:
    services = request.services
    with services.store.read() as tx:
        found = conversation_repository.overviews(tx, _LIMIT)
    names = {mission.slug: mission.name for mission in services.missions.list(archived=True)}
    rows = []
    for overview in found:
        metadata = json.loads(overview.conversation.metadata)
        slug = metadata.get("missionSlug")
        rows.append({"overview": overview, "mission": names.get(slug) if slug else None})
    values = {"rows": rows, "model": turn_model(request)}
    return Page("conversations.html", "Conversations", values, section="conversations")


def lists(request: PageRequest) -> Page:
    """The plan and the checklist of a session."""
    services, id = request.services, request.parameters["chat"]
    conversation = services.conversations.get(id)
    todos = services.todos.list(Scope(id, request.actor))
    turns = services.conversations.turns(id)
    values = {"conversation": conversation, "todos": todos, "turns": turns}
    return Page("lists.html", conversation.title or id, values, section="conversations")
