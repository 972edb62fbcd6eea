"""The two weeks before `punchlist demo serve` begins: todos, readings and a directive, with the times they would have.

The services write them, with a clock that stands at the time of each line of history.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from punchlist.conversations.service import Conversations
from punchlist.kernel.clock import system_clock
from punchlist.kernel.events import Actor
from punchlist.missions.config import file
from punchlist.missions.directives.service import Directives
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import Mission, MissionScope, NewMissionTodo
from punchlist.missions.service import Missions
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.trust import Trust

Line = Mapping[str, Any]
Step = tuple[float, Callable[[], object]]
"""Days ago, and what happened."""


def write_history(address: str, trust: Trust, person: Actor, mission_file: Path, lines: list[Line]) -> Mission:
    """Apply the mission and everything that happened in it."""
    begin = system_clock()
    now = begin - timedelta(days=15)

    def clock() -> datetime:
        return now

    with closing(open_store(address, clock=clock, trust=trust)) as store:
        text = file.read(mission_file)
        scope = MissionScope("demo", person)
        mission = Missions(store, Conversations(store)).apply(scope, file.parse_mission(text), text).mission
        history = _History(store, MissionScope(mission.conversation_id, person), mission.slug, begin)
        steps = [step for line in lines for step in history.steps(line)]
        for ago, happen in sorted(steps, key=lambda step: -step[0]):
            now = begin - timedelta(days=ago)
            happen()
    return mission


class _History:
    def __init__(self, store: Store, scope: MissionScope, slug: str, begin: datetime) -> None:
        self._scope, self._slug, self._begin = scope, slug, begin
        self._todos, self._runs = MissionTodos(store), Runs(store)
        self._metrics, self._directives = Metrics(store), Directives(store)

    def steps(self, line: Line) -> Iterator[Step]:
        ago = float(line["ago"])
        if "metric" in line:
            yield ago, lambda: self._metrics.record(self._scope, self._slug, line["metric"], line["value"])
        elif "directive" in line:
            yield ago, lambda: self._directives.add(self._scope, self._slug, line["directive"])
        else:
            yield from self._todo_steps(line, ago)

    def _todo_steps(self, line: Line, ago: float) -> Iterator[Step]:
        ids: list[str] = []
        yield ago, lambda: ids.append(self._create(line))
        if "done" in line:
            done = float(line["done"])
            yield (ago + done) / 2, lambda: self._start(ids[0])
            yield done, lambda: self._complete(ids[0], line)
        elif "cancelled" in line:
            cancel = TodoAction.CANCEL
            yield (
                float(line["cancelled"]),
                lambda: self._todos.update(self._scope, self._slug, ids[0], cancel, line["reason"]),
            )

    def _create(self, line: Line) -> str:
        deadline = (self._begin - timedelta(days=line["deadline"])).date().isoformat() if "deadline" in line else None
        new = NewMissionTodo(
            line["pillar"],
            line["title"],
            justification=line.get("justification", ""),
            completion_criteria=line.get("criteria", ""),
            deadline=deadline,
            priority=TodoPriority(line.get("priority", "medium")),
            target=TodoStatus(line.get("target", "pending")),
            labels=tuple(line.get("labels", ())),
        )
        return self._todos.create(self._scope, self._slug, new).todo.id

    def _start(self, id: str) -> None:
        started = self._todos.update(self._scope, self._slug, id, TodoAction.START, "It is the next one.")
        # The person did the work, so that no agent should begin it when the demo starts.
        self._runs.stop(self._scope, str(started.run_id), "I do it myself.")

    def _complete(self, id: str, line: Line) -> None:
        metrics = tuple(line.get("metrics", ()))
        done = self._todos.complete(self._scope, self._slug, id, line["outcome"], metrics_impacted=metrics)
        if done.run_id is not None:
            # Their readings are in the history, too.
            self._runs.stop(self._scope, done.run_id, "It was recorded by hand.")
