"""Agents of the project, and third-party agents that run beside it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from punchlist.surfaces.web.api.conversations import ProgressShape
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, ResponseModel
from punchlist.views.agents import read_agents


class AgentShape(ResponseModel):
    name: str
    model: Annotated[str | None, Field(description="null for the default of the provider.")]
    description: str


class RunningAgentShape(ResponseModel):
    name: str
    session: str
    has_list: Annotated[bool, Field(description="Whether it has used its list yet.")]
    items: Annotated[ProgressShape, Field(description="The progress of plan and checklist.")]


class AgentsShape(ResponseModel):
    agents: list[AgentShape]
    running: Annotated[list[RunningAgentShape], Field(description="Third-party agents that run now.")]


def _list(call: ApiCall) -> Any:
    return read_agents(call.services).as_json()


ENDPOINTS = [
    Endpoint(
        "GET", "/agents", "listAgents", "The agents of the project, and third-party agents that use its lists.",
        _list, AgentsShape,
    ),
]  # fmt: skip
