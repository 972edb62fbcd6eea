"""What people do in the 120-day rehearsal besides the daily work: messages, answers, edits, stops and budgets.

Each kind of event happens on a day of every twelve, so that the short form has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, Final, Protocol

from tests.faults.long_mission import ASKS, DELEGATES, EDITED, GREETING, PILLARS, QUESTION, RESUMED, SLUG
from tests.faults.mission_worker import until

from punchlist.app import Services
from punchlist.claims import repository as claim_repository
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo
from punchlist.missions.todos.edits import EditedFields
from punchlist.missions.todos.lifecycle import OPEN, TodoAction, TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run
from punchlist.views.inbox_model import InboxItem, RequestKind

PERIOD: Final = 12
TOKENS_PER_TODO: Final = 150
_PATIENCE: Final = 120.0


class Rehearsal(Protocol):
    """The part of the rehearsal that people see."""

    house: Services
    scope: MissionScope
    mission: Mission

    def end_workers(self) -> None: ...
    def start_workers(self) -> None: ...


class People:
    def __init__(self, rehearsal: Rehearsal, config: dict[str, Any]) -> None:
        self._rehearsal = rehearsal
        self._config = config
        self.house, self.scope = rehearsal.house, rehearsal.scope
        self.completed: dict[str, list[str]] = {}
        """The ids of todos that a person started and that were completed, by what happened to them."""
        self.answered: list[str] = []
        self.edited: list[str] = []
        self.stopped: list[Run] = []
        self.events: dict[int, Callable[[int], None]] = {
            2: self.write_to_agents,
            4: self.start_delegated_work,
            7: self.reach_a_budget,
            8: self.edit_a_todo,
            9: self.stop_runs_without_workers,
            10: self.answer_a_question,
        }

    def on(self, day: int) -> None:
        if event := self.events.get(day % PERIOD):
            event(day)

    def write_to_agents(self, day: int) -> None:
        """To the Lead, and to an owner whose planning waits for an approval. Both answer in the chat."""
        pillars = {state.pillar.slug: state.pillar for state in self.house.missions.pillars(self._rehearsal.mission)}
        queue, text = MessageQueue(self.house.store, self.house.conversations), f"{GREETING} {day}?"
        for chat in (self._rehearsal.mission.conversation_id, pillars["support"].conversation_id):
            queue.add(Scope(chat, self.scope.actor), text)
            self._wait(partial(self._is_answered, chat, text), f"{text} is answered in {chat}")
            self.answered.append(chat)

    def _is_answered(self, chat: str, text: str) -> bool:
        said = [(each.role, each.content) for each in self.house.conversations.messages(chat)]
        asked = [place for place, (role, content) in enumerate(said) if role == "user" and content == text]
        return bool(asked) and any(role == "assistant" for role, _ in said[asked[-1] :])

    def start_delegated_work(self, day: int) -> None:
        self._finish("delegated", self._start(day, f"measure {DELEGATES} {day}"))

    def reach_a_budget(self, day: int) -> None:
        """The work on a todo stops at the budget, the inbox says so, and a larger budget lets it continue."""
        self._apply(limits={"tokensPerTodo": TOKENS_PER_TODO})
        if todo := self._start(day, f"expensive {day}"):
            self._wait(lambda: self._requests(RequestKind.BUDGET, todo.id), "the budget is reached")
            self._wait(lambda: self._run_of(todo).status is RunStatus.WAITING, "its run waits")
        self._apply()
        self._finish("budget", todo)

    def edit_a_todo(self, day: int) -> None:
        """Before it starts: the worker reads the new text."""
        todo = self._create(day, f"edit {day}")
        if todo is not None:
            fields: EditedFields = {"completion_criteria": EDITED}
            self.house.mission_todos.edit(self.scope, SLUG, todo.id, fields, "Once is too little.")
            self.edited.append(todo.id)
            self._begin(todo)
        self._finish("edited", todo)

    def stop_runs_without_workers(self, day: int) -> None:
        """A queued run and one that waits are stopped while no worker lives; the idle todo is resumed by a message."""
        if waits := self._start(day, f"publish {ASKS} {day}"):
            self._wait(lambda: self._run_of(waits).status is RunStatus.WAITING, "an approval is asked for")
        self._rehearsal.end_workers()
        todo = self._start(day, f"idle {day}")
        for run in [self._run_of(each) for each in (todo, waits) if each is not None]:
            stopped = self.house.runs.stop(self.scope, run.id, "not now")
            assert stopped.status is RunStatus.STOPPED
            with self.house.store.read() as tx:
                claim = claim_repository.find(tx, str(run.todo_id))
            assert claim is None or claim.holder is None
            assert run.todo_id in {one.todo_id for one in self.house.escalations.list(SLUG)}
            self.stopped.append(stopped)
        self._rehearsal.start_workers()
        if todo is not None:
            self.house.mission_todos.update(self.scope, SLUG, todo.id, TodoAction.RESUME, RESUMED)
            # The work goes on, which answers the question about it.
            assert todo.id not in {one.todo_id for one in self.house.escalations.list(SLUG)}
        self._finish("resumed", todo)

    def answer_a_question(self, day: int) -> None:
        """A todo of the owner's plan waits for a person, who answers in the inbox."""
        todo = self._start(day, f"roll out {QUESTION} {day}")
        if todo is not None:
            self._wait(lambda: self._requests(RequestKind.QUESTION, todo.id), "the owner asks")
            [item] = self._requests(RequestKind.QUESTION, todo.id)
            assert item.question == f"Which region for {day}?"
            self.house.inbox.answer(self.scope, str(item.number), "answer", text=f"region-{day}")
        self._finish("question", todo)

    # --- parts ------------------------------------------------------------------------------------------------

    def _apply(self, **more: Any) -> None:
        text = json.dumps({**deepcopy(self._config), **more})
        self.house.missions.apply(self.scope, file.parse_mission(text), text)

    def _create(self, day: int, title: str) -> MissionTodo | None:
        """None while the active list is full."""
        capacity = self.house.mission_todos.capacity(SLUG)
        if capacity.active >= capacity.active_limit:
            return None
        new = NewMissionTodo(PILLARS[day % len(PILLARS)], title, completion_criteria="It is done.")
        return self.house.mission_todos.create(self.scope, SLUG, new).todo

    def _begin(self, todo: MissionTodo) -> None:
        self.house.mission_todos.update(self.scope, SLUG, todo.id, TodoAction.START, "a person wants it")

    def _start(self, day: int, title: str) -> MissionTodo | None:
        if todo := self._create(day, title):
            self._begin(todo)
        return todo

    def _run_of(self, todo: MissionTodo) -> Run:
        return self.house.runs.for_todo(todo.id)[0]

    def _requests(self, kind: RequestKind, todo_id: str) -> list[InboxItem]:
        return [item for item in self.house.inbox.about_todo(todo_id) if item.kind is kind]

    def _finish(self, what: str, todo: MissionTodo | None) -> None:
        """Until a todo has ended."""
        if todo is not None:
            self._wait(lambda: self._status(todo) not in OPEN, f"{todo.title} ends")
            assert self._status(todo) is TodoStatus.COMPLETED
            self.completed.setdefault(what, []).append(todo.id)

    def _status(self, todo: MissionTodo) -> TodoStatus:
        return self.house.mission_todos.get(todo.id).status

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        def why() -> str:
            runs = [f"{run.kind} {run.status} {run.why}" for run in self.house.runs.list(limit=100)]
            return f"{what}; {runs}"

        until(condition, why, _PATIENCE)
