"""Questions to people about todos: those that are open, and what is done when a person answers (M13)."""

from __future__ import annotations

import builtins
from enum import StrEnum
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import block_problem, excerpt, visible
from punchlist.missions import changes as mission_changes
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations import repository as asked_records
from punchlist.missions.escalations.transitions import (
    OVERDUE,
    REVIEW,
    advance_escalation,
    create_escalation,
    status_since,
    title_sentence,
)
from punchlist.missions.model import Escalation, Mission, MissionScope, MissionTodo
from punchlist.missions.todos import deadlines
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.execution import enqueue_execution, has_open_run
from punchlist.missions.todos.lifecycle import MISSION, OPEN, EscalationAction, TodoAction, TodoStatus
from punchlist.missions.todos.transitions import answer_escalations, cancel_todo, find_todo, update_todo
from punchlist.missions.todos.validation import check_mission
from punchlist.storage.store import Store, Transaction

DEFAULT_LIMIT: Final = 100
MAX_REASON_LENGTH: Final = 2_000
_MAX_ID_LENGTH: Final = 100


class EscalationAnswer(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    # It is all right as it is.
    KEEP = "keep"


class Escalations:
    def __init__(self, store: Store) -> None:
        self._store = store

    def list(
        self, mission_slug: str | None = None, open_only: bool = True, most: int = DEFAULT_LIMIT
    ) -> builtins.list[Escalation]:
        """Those that wait for an answer, oldest first; or all that were ever asked, newest first."""
        with self._store.read() as tx:
            mission_id = mission_changes.find_mission(tx, mission_slug).id if mission_slug is not None else None
            if open_only:
                return asked_records.unanswered(tx, mission_id)[:most]
            return asked_records.newest(tx, most, mission_id)

    def find(self, wanted: str) -> Escalation:
        """By its id, or by the end of that."""
        with self._store.read() as tx:
            return _find_escalation(tx, wanted)

    def acknowledge(self, scope: MissionScope, id: str) -> Escalation:
        """A person has seen it: there are no more reminders."""
        with self._store.write() as tx:
            mission, asked, _ = _lock_escalation(tx, scope, id)
            return advance_escalation(tx, scope, mission, asked, EscalationAction.ACKNOWLEDGE, "seen")

    def answer(
        self, scope: MissionScope, id: str, answer: str, *, deadline: str | None = None, reason: str = ""
    ) -> Escalation:
        """Do what a person says of a todo, and close the question, in one transaction."""
        choice = _choice(answer, deadline)
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH):
            raise InvalidInput(f"reason: {problem}")
        reason = reason.strip()
        with self._store.write() as tx:
            mission, asked, todo = _lock_escalation(tx, scope, id)
            if choice is not EscalationAnswer.KEEP and todo.status not in OPEN:
                raise IllegalTransition(
                    f"“{visible(todo.title)}” is {todo.status} already. Answer `keep` to close this."
                )
            until = _parse_deadline(tx, mission, deadline) if choice is EscalationAnswer.EXTEND else None
            said = f"{choice}{f' to {until}' if until else ''}{f': {reason}' if reason else ''}"
            given = {"answer": said, "answered_by": str(scope.actor), "answered_at": tx.now()}
            done = advance_escalation(tx, scope, mission, asked, EscalationAction.ANSWER, said, **given)
            if choice is EscalationAnswer.CANCEL:
                cancel_todo(tx, scope, mission, todo, reason or f"{scope.actor.name} answered: cancel")
            elif until is not None:
                _extend(tx, scope, mission, todo, until, reason or f"{scope.actor.name} answered: extend")
            _post_answer(tx, scope, mission, todo, choice, said)
            if asked.kind == REVIEW and choice is not EscalationAnswer.CANCEL:
                _resume_work(tx, scope, todo, said)
            return done


def escalate_stuck_work(tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, why: str) -> Escalation:
    """Ask a person about work that does not come to an end, inside a transaction that has locked the mission. What is
    being asked already is not asked twice."""
    said = (
        f"TODO needs a decision: {title_sentence(todo)} Status: {status_since(tx, mission, todo)}.\n{visible(why)}\n"
        "Please advise: go on, extend deadline or cancel?"
    )
    made = create_escalation(tx, scope, mission, todo, REVIEW, said, excerpt(why, MAX_REASON_LENGTH))
    return made or next(one for one in todo_repository.asked(tx, todo.id) if one.kind == REVIEW)


def _choice(answer: str, deadline: str | None) -> EscalationAnswer:
    try:
        choice = EscalationAnswer(answer)
    except ValueError:
        raise InvalidInput(
            f"answer: must be one of {', '.join(EscalationAnswer)}, got {excerpt(str(answer))!r}"
        ) from None
    if choice is EscalationAnswer.EXTEND and deadline is None:
        raise InvalidInput("deadline: is needed to extend; write a day such as 2026-02-21")
    if choice is not EscalationAnswer.EXTEND and deadline is not None:
        raise InvalidInput(f"deadline: goes with `extend`, not with `{choice}`")
    return choice


def _lock_escalation(tx: Transaction, scope: MissionScope, id: str) -> tuple[Mission, Escalation, MissionTodo]:
    before = _find_escalation(tx, id)
    mission = mission_repository.lock_mission(tx, before.mission_id)
    # Read again: somebody may have answered it before the lock was ours.
    asked = asked_records.find(tx, before.id)
    if mission is None or asked is None:
        raise _unknown_escalation(id)
    check_mission(scope, mission.slug)
    mission_changes.check_active(mission)
    return mission, asked, find_todo(tx, mission, asked.todo_id)


def _find_escalation(tx: Transaction, wanted: str) -> Escalation:
    # Only what ids are made of: anything else could act in the pattern.
    if len(wanted) > _MAX_ID_LENGTH or not wanted.isascii() or not wanted.replace("-", "").isalnum():
        raise _unknown_escalation(wanted)
    if found := asked_records.find(tx, wanted):
        return found
    ends = asked_records.find_by_suffix(tx, wanted)
    if len(ends) > 1:
        raise InvalidInput(f"{excerpt(wanted)!r} is the end of several ids; give more of it.")
    if not ends:
        raise _unknown_escalation(wanted)
    return ends[0]


def _unknown_escalation(wanted: str) -> NotFound:
    return NotFound(
        f"There is no escalation {excerpt(wanted)!r}. `punchlist mission escalations` lists those there are."
    )


def _parse_deadline(tx: Transaction, mission: Mission, deadline: str | None) -> str:
    return deadlines.parse_future_deadline(deadline, cadence_of(mission).timezone, parse_timestamp(tx.now()))


def _extend(tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, until: str, reason: str) -> None:
    MISSION.advance(todo.status, TodoAction.EXTEND, scope.actor.role)
    update_todo(tx, scope, mission, TodoAction.EXTEND, todo, reason, deadline=until, overdue_at=None)
    answer_escalations(tx, scope, mission, todo, f"extended to {until}: {reason}", OVERDUE)


def _resume_work(tx: Transaction, scope: Scope, todo: MissionTodo, said: str) -> None:
    """Work that had come to no end is taken up again."""
    pillar = mission_repository.pillar(tx, todo.pillar_id)
    if pillar is not None and todo.status is TodoStatus.IN_PROGRESS and not has_open_run(tx, todo):
        enqueue_execution(tx, scope, pillar, todo, said)


def _post_answer(
    tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, choice: EscalationAnswer, said: str
) -> None:
    """In the mission chat, where the Lead reads it; and where it is worked on, if it still is."""
    note = f"Answer of {visible(scope.actor.name)} about {title_sentence(todo)} {visible(said)}"
    chat_service.post(tx, scope, mission.conversation_id, chat_service.NOTE, note)
    if todo.status is TodoStatus.IN_PROGRESS and choice is not EscalationAnswer.CANCEL:
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert pillar is not None
        chat_service.post(tx, scope, pillar.todo_conversation_id, chat_service.NOTE, note)
