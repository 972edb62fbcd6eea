"""An agent on a rehearsal, with everything else real."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from punchlist.agent.continuation import Limits
from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.agent.events import AgentEvent
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn_model import TurnResult
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.cancellation import CancelSignal
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, TextListener
from punchlist.models.rehearsal import Rehearsal, RehearsalScript, RehearsedReply
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.tools.settings import PolicySettings, ToolSettings
from punchlist.tools.tool_session import ToolSite


def says(text: str, **more: Any) -> RehearsedReply:
    return RehearsedReply(text=text, **more)


def calls(*wanted: tuple[str, Any], text: str = "") -> RehearsedReply:
    return RehearsedReply(text=text, calls=wanted)


def plans(*titles: str) -> RehearsedReply:
    return calls(("create_todo", {"items": [{"title": title} for title in titles]}))


def completes(number: int) -> RehearsedReply:
    """Work for a todo, then the claim that it is done."""
    return calls(("find_files", {"pattern": f"*{number}"}), claims(number))


def claims(number: int) -> tuple[str, Any]:
    return "complete_todo", {"todoId": f"{{{{ created[{number}].id }}}}", "outcome": "done"}


class Heard(Rehearsal):
    """A rehearsal that remembers what it was asked."""

    def __init__(
        self, script: RehearsalScript, agent: str = "", requests: dict[str, list[ModelRequest]] | None = None
    ) -> None:
        super().__init__(script, agent)
        self._agent = agent
        self.requests: dict[str, list[ModelRequest]] = {} if requests is None else requests

    def for_agent(self, agent: str) -> Heard:
        return Heard(self._script, agent, self.requests) if agent in self._script.agents else self

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        self.requests.setdefault(self._agent, []).append(replace(request, messages=list(request.messages)))
        return await super().ask(request, on_text)


class Rehearsing:
    """One agent in one session."""

    def __init__(
        self, store: Store, scope: Scope, workspace: Path, *replies: RehearsedReply, **agents: Sequence[RehearsedReply]
    ) -> None:
        conversations = Conversations(store)
        self.model = Heard(RehearsalScript(tuple(replies), {name: tuple(lines) for name, lines in agents.items()}))
        self.news: list[AgentEvent] = []
        self.signal = CancelSignal()
        self.runtime = AgentRuntime(
            ToolSite(store, scope, workspace, ToolSettings(PolicySettings()), workspace / "outputs", {}),
            conversations,
            Plans(store),
            Checklists(store, conversations),
            lambda agent: self.model.for_agent(agent.name),
            Mode.YOLO,
            on_event=self.news.append,
        )
        self.agent: AgentDefinition = BUILT_IN["supervisor"]

    def limits(self, **limits: Any) -> Rehearsing:
        self.agent = replace(self.agent, limits=replace(Limits(), **limits))
        return self

    def in_mode(self, mode: Mode) -> Rehearsing:
        self.runtime = replace(self.runtime, mode=mode)
        return self

    def run(self, goal: str = "Do it.") -> TurnResult:
        return asyncio.run(asyncio.wait_for(self.runtime.run(self.agent, goal, self.signal), 60))

    @property
    def asked(self) -> list[ModelRequest]:
        return self.model.requests.get("", [])


Rehearse = Callable[..., Rehearsing]


def every_call_has_one_result(messages: Sequence[Message]) -> bool:
    """What providers insist on."""
    asked = [call.id for message in messages if isinstance(message, Reply) for call in message.calls]
    answered = [message.call_id for message in messages if isinstance(message, CallReturn)]
    return sorted(asked) == sorted(answered) and len(set(asked)) == len(asked)
