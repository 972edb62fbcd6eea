"""The agents of a project, and third-party agents that use its lists now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punchlist.conversations import repository as conversation_repository
from punchlist.host_sessions import HostSessions
from punchlist.kernel.camel_json import camel_json
from punchlist.views.conversations import ListProgress, list_progress

if TYPE_CHECKING:
    from punchlist.app import Services


@dataclass(frozen=True, slots=True)
class ProjectAgent:
    name: str
    model: str | None
    """None for the default of the model providers."""
    description: str


@dataclass(frozen=True, slots=True)
class RunningAgent:
    """A third-party agent with a session of its own."""

    name: str
    session: str
    items: ListProgress
    has_list: bool
    """Whether it has used its list yet, so that there is a conversation."""


@dataclass(frozen=True, slots=True)
class AgentsView:
    agents: Sequence[ProjectAgent]
    running: Sequence[RunningAgent]

    def as_json(self) -> dict[str, Any]:
        running = [
            {**camel_json(each, "name", "session", "has_list"), "items": camel_json(each.items)}
            for each in self.running
        ]
        return {"agents": [camel_json(each) for each in self.agents], "running": running}


def read_agents(services: Services) -> AgentsView:
    found = services.agents
    agents = [
        ProjectAgent(agent.name, agent.model or found.default_model, agent.description)
        for agent in found.definitions.values()
    ]
    sessions = HostSessions(services.settings, os.environ).running()
    with services.store.read() as tx:
        running = [
            RunningAgent(
                agent,
                session,
                list_progress(tx, session, conversation_repository.last_top_turn(tx, session)),
                conversation_repository.find_conversation(tx, session) is not None,
            )
            for session, agent in sessions.items()
        ]
    return AgentsView(agents, running)
