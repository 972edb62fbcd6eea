"""A mission with a worker in this process, a clock that a test moves, and a model whose replies a test writes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.agent.definitions import AgentDefinition
from punchlist.app import Services
from punchlist.config import load
from punchlist.engine.worker import Worker
from punchlist.models.model import (
    CallReturn,
    Model,
    ModelInfo,
    ModelRequest,
    Reply,
    RequestedCall,
    TextListener,
    Usage,
    UserText,
)
from punchlist.storage.open import open_store
from punchlist.toolcalls.policy import Mode

PRICE: Final = 1_000.0
"""Dollars per million tokens: a thousand tokens cost a dollar."""
Answers = Callable[[str, ModelRequest], Reply]
PATIENCE: Final = 60.0


@dataclass
class ScriptedModel:
    """Answers as the test says; each reply uses 100 tokens."""

    agent: str
    answers: Answers
    asked: list[tuple[str, ModelRequest]]
    name: str = "scripted"
    info: ModelInfo = field(default_factory=lambda: ModelInfo(200_000, PRICE, PRICE))

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        self.asked.append((self.agent, request))
        reply = self.answers(self.agent, request)
        return Reply(reply.text, reply.calls, reply.finish, Usage(90, 10))


class Office:
    """The services of one project, and its workers."""

    def __init__(self, folder: Path, database: str, clock: StoppedClock, answers: Answers, **mission: Any) -> None:
        folder.mkdir()
        (folder / ".git").mkdir()
        self.clock = clock
        self.asked: list[tuple[str, ModelRequest]] = []
        """Agents and what they were sent."""
        environment = {"PUNCHLIST_DATABASE_URL": database, "HOME": os.environ["HOME"]}
        self.services = Services(load(environment=environment, cwd=folder))
        self.services._store = open_store(database, clock=clock, trust=self.services.trust)
        self.answers = answers
        self.team: Team = developer_experience(self.services.store, **mission)
        self.said: list[str] = []

    def work(self, mode: Mode = Mode.YOLO) -> None:
        """A worker that ends when no run can continue."""
        try:
            asyncio.run(asyncio.wait_for(self.worker(mode).run(until_idle=True), PATIENCE))
        except TimeoutError:
            runs = [f"{run.kind} {run.status} {run.why}" for run in self.services.runs.list()]
            raise AssertionError(f"the worker is not idle: {runs}\n{self.said[-20:]}") from None

    def worker(self, mode: Mode = Mode.YOLO) -> Worker:
        return self.services.worker(self._model, mode, slots=4, report=self.said.append)

    def _model(self, agent: AgentDefinition) -> Model:
        return ScriptedModel(agent.name, self.answers, self.asked)

    def close(self) -> None:
        self.services.close()


def last_words(request: ModelRequest) -> str:
    """The newest message of a person or the loop, without the state."""
    texts = (each.text for each in reversed(request.messages) if isinstance(each, UserText))
    return next((text for text in texts if not text.startswith("<state>")), "")


def words(request: ModelRequest) -> str:
    """Every message of a person or the loop."""
    return "\n".join(each.text for each in request.messages if isinstance(each, UserText))


def has_results(request: ModelRequest) -> bool:
    """Whether the agent has made a call in this turn."""
    return any(isinstance(each, CallReturn) for each in request.messages)


def call(tool: str, **arguments: Any) -> Reply:
    return Reply(calls=(RequestedCall(f"call-{tool}", tool, arguments),))
