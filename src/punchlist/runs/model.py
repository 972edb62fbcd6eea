"""The run record and its values."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final, NamedTuple

from punchlist.kernel.camel_json import camel_json
from punchlist.runs.lifecycle import ControlRequest, RunStatus


class RunKind(StrEnum):
    EXECUTE = "execute"
    """A mission todo: its owner works on it, the Lead reviews."""
    CYCLE = "cycle"
    """A planning cycle of a mission."""
    PLAN = "plan"
    """The part of a cycle that plans one pillar."""
    CHAT = "chat"
    """Answers to the messages that people send to a mission's chat."""
    DELEGATE = "delegate"
    """An asynchronous delegation to a worker agent."""
    COLLECT = "collect"
    """Collection of metrics."""


_JSON_FIELDS: Final = (
    *("id", "kind", "status", "mission_id", "pillar_id", "todo_id", "conversation_id", "turn_id", "agent"),
    *("created_by", "attempts", "wish", "message", "why", "result"),
    *("created_at", "changed_at", "started_at", "ended_at", "cost"),
)


DELEGATED_WORK: Final = "the results of delegated work"
"""What a run waits for whose agent delegated work without waiting."""


class Run(NamedTuple):
    """A row of `runs`."""

    id: str
    kind: RunKind
    status: RunStatus
    mission_id: str | None
    pillar_id: str | None
    todo_id: str | None
    conversation_id: str
    agent: str
    request: str
    created_by: str
    leg: int = 0
    """The number of retries by a person."""
    attempts: int = 0
    """How many workers have owned it."""
    executor: str | None = None
    """The worker that owns it."""
    turn_id: str | None = None
    wish: ControlRequest | None = None
    message: str | None = None
    """For its agent, not delivered yet."""
    why: str = ""
    result: str | None = None
    created_at: str = ""
    changed_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    delivered_to: str | None = None
    """Of a delegation: the run whose agent has got the result."""

    @property
    def parameters(self) -> dict[str, Any]:
        request: dict[str, Any] = json.loads(self.request)
        return request

    @property
    def workflow_id(self) -> str:
        """Its id in the durable engine; each retry is a new workflow."""
        return f"{self.id}.{self.leg}"

    def as_json(self) -> dict[str, Any]:
        return {
            **camel_json(self, *_JSON_FIELDS),
            "request": self.parameters,
            "worker": self.executor,
            "usage": {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens},
            "toolCalls": self.calls,
            "seconds": round(self.seconds, 3),
        }


def from_row(row: tuple[Any, ...]) -> Run:
    run = Run(*row)
    return run._replace(
        kind=RunKind(run.kind), status=RunStatus(run.status), wish=run.wish and ControlRequest(run.wish)
    )


_SEPARATOR: Final = "\n\n"


def append_text(message: str | None, more: str) -> str:
    """Add a message to one that the agent has not received yet."""
    return f"{message}{_SEPARATOR}{more}" if message else more


def remaining_text(message: str, delivered: str) -> str | None:
    """The part of `message` after the delivered beginning; all of it when something else was delivered."""
    if message == delivered:
        return None
    return message.removeprefix(f"{delivered}{_SEPARATOR}")


class UsageIncrement(NamedTuple):
    """Usage to add to a run."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    seconds: float = 0.0
