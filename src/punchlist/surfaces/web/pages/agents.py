"""`/agents`: the agents of the project, and third-party agents that use its lists now."""

from __future__ import annotations

import os
from typing import Any

from punchlist.conversations import repository as conversation_repository
from punchlist.host_sessions import HostSessions
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.conversations import list_progress


def agents(request: PageRequest) -> Page:
    found = request.services.agents
    shown = [
        {"name": agent.name, "model": agent.model or found.default_model, "description": agent.description}
        for agent in found.definitions.values()
    ]
    return Page("agents.html", "Agents", {"agents": shown, "others": _others(request)}, section="agents")


def _others(request: PageRequest) -> list[dict[str, Any]]:
    services = request.services
    running = HostSessions(services.settings, os.environ).running()
    with services.store.read() as tx:
        return [
            {
                "name": agent,
                "session": session,
                "items": list_progress(tx, session, conversation_repository.last_top_turn(tx, session)),
                # An agent that has not used its list yet has no conversation.
                "url": f"/chats/{session}/todos" if conversation_repository.find_conversation(tx, session) else None,
            }
            for session, agent in running.items()
        ]
