"""What missions have used: tokens, money, time and calls per todo, pillar and mission (X4).

Runs count their own usage, so totals are sums over their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.turn_usage import usage_so_far
from punchlist.missions import repository as mission_repository
from punchlist.missions.repository import TurnWork
from punchlist.storage.store import Store, Transaction


class RunUsage(NamedTuple):
    """Totals over runs. A run includes a turn's usage once that turn has ended; those of a todo include open turns."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    calls: int = 0

    def plus(self, other: RunUsage) -> RunUsage:
        return RunUsage._make(a + b for a, b in zip(self, other, strict=True))

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "usage": {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens},
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
            "toolCalls": self.calls,
        }


@dataclass(frozen=True, slots=True)
class MissionUsage:
    usage: RunUsage
    pillars: dict[str, RunUsage]
    """By id. The Lead's own runs count only for the mission."""
    todos: dict[str, RunUsage]


class MissionUsageService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def todo(self, todo_id: str) -> RunUsage:
        with self._store.read() as tx:
            return usage_of_todo(tx, todo_id, mission_repository.work_of_todo(tx, todo_id))

    def pillars(self, mission_id: str) -> dict[str | None, RunUsage]:
        """By pillar id. The Lead's own runs have none."""
        with self._store.read() as tx:
            rows = mission_repository.run_totals_by_pillar(tx, mission_id=mission_id)
        return {pillar_id: _run_usage(sums) for pillar_id, *sums in rows}

    def mission(self, mission_id: str) -> MissionUsage:
        with self._store.read() as tx:
            rows = mission_repository.run_totals_of_mission(tx, mission_id)
        total, pillars, todos = RunUsage(), dict[str, RunUsage](), dict[str, RunUsage]()
        for pillar_id, todo_id, *sums in rows:
            used = _run_usage(sums)
            total = total.plus(used)
            if pillar_id is not None:
                pillars[pillar_id] = pillars.get(pillar_id, RunUsage()).plus(used)
            if todo_id is not None:
                todos[todo_id] = todos.get(todo_id, RunUsage()).plus(used)
        return MissionUsage(total, pillars, todos)


def usage_of_todo(tx: Transaction, todo_id: str, work: Sequence[TurnWork]) -> RunUsage:
    totals = _run_usage(mission_repository.run_totals_of_todo(tx, todo_id) or ())
    # The totals of a run do not contain its open turn.
    for turn_id in mission_repository.turns_of_open_runs(tx, todo_id):
        if turn := conversation_repository.find_turn(tx, turn_id):
            totals = totals.plus(RunUsage(0, *usage_so_far(tx, turn)))
    return totals._replace(calls=sum(turn.calls for turn in work))


def _run_usage(sums: Sequence[Any]) -> RunUsage:
    if not sums or not sums[0]:
        return RunUsage()
    runs, input_tokens, output_tokens, cost, seconds, calls = (value or 0 for value in sums)
    return RunUsage(int(runs), int(input_tokens), int(output_tokens), float(cost), float(seconds), int(calls))
