"""`/agents`: the agents of the project, and third-party agents that use its lists now."""

from __future__ import annotations

from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.agents import read_agents


def agents(request: PageRequest) -> Page:
    return Page("agents.html", "Agents", {"found": read_agents(request.services)}, section="agents")
