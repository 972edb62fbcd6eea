"""What missions have taken: tokens, money, time and calls, of a todo, a pillar or all of it; and evidence (X4).

Runs count what they use, so sums are sums of their rows. What was done for a todo are the calls of its
runs' turns and of their workers; which turns those are, the trail of a run tells.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_records
from punchlist.conversations import usage_repository as conversation_usage
from punchlist.conversations.model import CallEvidence
from punchlist.runs import service as runs_service
from punchlist.runs.lifecycle import RunAction
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

_SUMS: Final = "count(*), sum(input_tokens), sum(output_tokens), sum(cost), sum(seconds), sum(calls)"
OF_MISSION: Final = Statement(
    f"SELECT pillar_id, todo_id, {_SUMS} FROM runs WHERE mission_id = :mission_id GROUP BY pillar_id, todo_id"
)
OF_TODO: Final = Statement(f"SELECT {_SUMS} FROM runs WHERE todo_id = :todo_id")
RUNS_OF_TODO: Final = Statement("SELECT id FROM runs WHERE todo_id = :todo_id ORDER BY created_at, id")
# Each turn that a run has taken up is told in its trail.
TAKEN_UP: Final = Statement(
    f"SELECT data FROM events WHERE stream = :stream AND action = '{RunAction.SET_TURN}' ORDER BY version"
)


class RunUsage(NamedTuple):
    """What some runs have used. A run counts what a turn has used when that turn is over."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    calls: int = 0

    def plus(self, other: RunUsage) -> RunUsage:
        return RunUsage(
            self.runs + other.runs,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
            self.seconds + other.seconds,
            self.calls + other.calls,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "usage": {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens},
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
            "toolCalls": self.calls,
        }


@dataclass(frozen=True, slots=True)
class TodoUsage:
    usage: RunUsage
    evidence: tuple[CallEvidence, ...]
    """Calls in the order in which they began."""

    def as_json(self) -> dict[str, Any]:
        return {**self.usage.as_json(), "evidence": [one.as_json() for one in self.evidence]}


@dataclass(frozen=True, slots=True)
class MissionUsage:
    usage: RunUsage
    pillars: dict[str, RunUsage]
    """By id. What the Lead does for all of them is in the mission's own only."""
    todos: dict[str, RunUsage]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.usage.as_json(),
            "pillars": {id: one.as_json() for id, one in self.pillars.items()},
            "todos": {id: one.as_json() for id, one in self.todos.items()},
        }


class MissionUsageService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def todo(self, todo_id: str) -> TodoUsage:
        with self._store.read() as tx:
            row = tx.one(OF_TODO, todo_id=todo_id)
            taken = {turn: None for (run,) in tx.all(RUNS_OF_TODO, todo_id=todo_id) for turn in _turns_of(tx, run)}
            heads = [turn for id in taken if (turn := conversation_records.find_turn(tx, id))]
            among = [turn for head in heads for turn in conversation_usage.with_child_turns(tx, head)]
            shown = tuple(conversation_usage.tool_calls(tx, among))
        # Of those that are under way, too.
        return TodoUsage(_run_usage(row or ())._replace(calls=len(shown)), shown)

    def pillar(self, mission_id: str, pillar_id: str) -> RunUsage:
        return self.mission(mission_id).pillars.get(pillar_id, RunUsage())

    def mission(self, mission_id: str) -> MissionUsage:
        """All at once, from the rows of its runs."""
        with self._store.read() as tx:
            rows = tx.all(OF_MISSION, mission_id=mission_id)
        total, pillars, todos = RunUsage(), dict[str, RunUsage](), dict[str, RunUsage]()
        for pillar_id, todo_id, *sums in rows:
            used = _run_usage(sums)
            total = total.plus(used)
            if pillar_id is not None:
                pillars[pillar_id] = pillars.get(pillar_id, RunUsage()).plus(used)
            if todo_id is not None:
                todos[todo_id] = todos.get(todo_id, RunUsage()).plus(used)
        return MissionUsage(total, pillars, todos)


def _turns_of(tx: Transaction, run_id: str) -> list[str]:
    """The ids of the turns that a run has taken up."""
    told = (json.loads(data) for (data,) in tx.all(TAKEN_UP, stream=runs_service.event_stream(run_id)))
    return [str(turn) for data in told if (turn := data.get("turn_id"))]


def _run_usage(sums: Any) -> RunUsage:
    if not sums or not sums[0]:
        return RunUsage()
    count, read, said, cost, seconds, calls = sums
    return RunUsage(int(count), int(read or 0), int(said or 0), float(cost or 0), float(seconds or 0), int(calls or 0))
