"""What the todos of a plan have taken: time, requests, tokens, and the calls made while each was in progress (X4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations import usage as conversation_usage
from punchlist.conversations.usage import CallEvidence, ModelRequestUsage
from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt
from punchlist.plan.model import TurnTodo
from punchlist.storage.store import Store


@dataclass(frozen=True, slots=True)
class PlanTodoUsage:
    """Of one todo. What a model's tokens cost is not kept with its requests."""

    seconds: float
    requests: int
    input_tokens: int
    output_tokens: int
    evidence: tuple[CallEvidence, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 3),
            "requests": self.requests,
            "usage": {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens},
            "toolCalls": len(self.evidence),
            "evidence": [one.as_json() for one in self.evidence],
        }


class PlanUsageService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def usage_by_todo(self, turn_id: str, todos: Sequence[TurnTodo]) -> dict[str, PlanTodoUsage]:
        """By id, those of the turn's todos that were begun."""
        with self._store.read() as tx:
            turn = conversation_repository.find_turn(tx, turn_id)
            if turn is None:
                raise NotFound(f"There is no turn {excerpt(turn_id)!r}.")
            among = conversation_usage.with_child_turns(tx, turn)
            calls, requests = conversation_usage.tool_calls(tx, among), conversation_usage.model_requests(tx, among)
            # What was left open when its turn ended is not in progress any more.
            now = turn.ended_at or tx.now()
        return {todo.id: _account(todo, calls, requests, now) for todo in todos if todo.started_at is not None}


def _account(
    todo: TurnTodo, calls: Sequence[CallEvidence], requests: Sequence[ModelRequestUsage], now: str
) -> PlanTodoUsage:
    since, until = todo.started_at or now, todo.completed_at or now
    asked = [one for one in requests if since <= one.at <= until]
    return PlanTodoUsage(
        max(0.0, (parse_timestamp(until) - parse_timestamp(since)).total_seconds()),
        len(asked),
        sum(one.input_tokens for one in asked),
        sum(one.output_tokens for one in asked),
        tuple(one for one in calls if since <= one.at <= until),
    )
