"""`/agents`: the agents of the project and the third-party agents beside it."""

from __future__ import annotations

from punchlist.surfaces.web.pages.page import Page, PageRequest


def agents(request: PageRequest) -> Page:
    found = request.services.agents
    shown = [
        {"name": agent.name, "model": agent.model or found.default_model, "description": agent.description}
        for agent in found.definitions.values()
    ]
    return Page("agents.html", "Agents", {"agents": shown, "others": []}, section="agents")
