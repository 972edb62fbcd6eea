"""Time, model requests, tokens and tool calls spent on the todos of a plan (X4).

Work is attributed to a todo by time: everything that happened while it was in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import CallEvidence, ModelRequestUsage
from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt
from punchlist.plan.model import TurnTodo
from punchlist.storage.store import Store


@dataclass(frozen=True, slots=True)
class PlanTodoUsage:
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
            "evidence": [call.as_json() for call in self.evidence],
        }


class PlanUsageService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def usage_by_todo(self, turn_id: str, todos: Sequence[TurnTodo]) -> dict[str, PlanTodoUsage]:
        """The usage of each todo that was started, by id."""
        with self._store.read() as tx:
            turn = conversation_repository.find_turn(tx, turn_id)
            if turn is None:
                raise NotFound(f"There is no turn {excerpt(turn_id)!r}.")
            turns = conversation_repository.with_child_turns(tx, turn)
            calls, requests = (
                conversation_repository.tool_calls(tx, turns),
                conversation_repository.model_requests(tx, turns),
            )
            # A todo that was left open stops when its turn ends.
            now = turn.ended_at or tx.now()
        return {todo.id: _usage_of(todo, calls, requests, now) for todo in todos if todo.started_at is not None}


def _usage_of(
    todo: TurnTodo, calls: Sequence[CallEvidence], requests: Sequence[ModelRequestUsage], now: str
) -> PlanTodoUsage:
    since, until = todo.started_at or now, todo.completed_at or now
    requests = [request for request in requests if since <= request.at <= until]
    return PlanTodoUsage(
        max(0.0, (parse_timestamp(until) - parse_timestamp(since)).total_seconds()),
        len(requests),
        sum(request.input_tokens for request in requests),
        sum(request.output_tokens for request in requests),
        tuple(call for call in calls if since <= call.at <= until),
    )
