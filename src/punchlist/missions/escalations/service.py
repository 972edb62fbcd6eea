"""Escalations: list the open questions to people, and carry out the answers (M13)."""

from __future__ import annotations

import builtins
from enum import StrEnum
from typing import Final

from punchlist.conversations.model import NoticeKind
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.text import block_problem, excerpt, visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, check_active, find_mission
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import EscalationAction
from punchlist.missions.escalations.transitions import (
    REVIEW,
    advance_escalation,
    create_escalation,
    status_since,
    title_sentence,
)
from punchlist.missions.model import Escalation, MissionScope, MissionTodo
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.reports import give_feedback, send_back
from punchlist.missions.todos.service import extend_todo
from punchlist.missions.todos.todo_drafts import parse_new_deadline
from punchlist.missions.todos.transitions import cancel_todo, find_todo
from punchlist.missions.todos.validation import check_mission
from punchlist.storage.store import Store, Transaction

DEFAULT_LIMIT: Final = 100
MAX_REASON_LENGTH: Final = 2_000
_MAX_ID_LENGTH: Final = 100


class EscalationAnswer(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"


class Escalations:
    def __init__(self, store: Store) -> None:
        self._store = store

    def list(
        self, mission_slug: str | None = None, open_only: bool = True, limit: int = DEFAULT_LIMIT
    ) -> builtins.list[Escalation]:
        """Unanswered escalations, oldest first; with `open_only=False` all, newest first."""
        with self._store.read() as tx:
            mission_id = find_mission(tx, mission_slug).id if mission_slug is not None else None
            if open_only:
                return escalation_repository.unanswered(tx, mission_id)[:limit]
            return escalation_repository.newest(tx, limit, mission_id)

    def find(self, id_or_suffix: str) -> Escalation:
        with self._store.read() as tx:
            return _find_escalation(tx, id_or_suffix)

    def acknowledge(self, scope: MissionScope, id: str) -> Escalation:
        """Note that a person has seen it; reminders stop."""
        with self._store.write() as tx:
            write, escalation, _ = _lock_escalation(tx, scope, id)
            return advance_escalation(write, escalation, EscalationAction.ACKNOWLEDGE, "seen")

    def answer(
        self, scope: MissionScope, id: str, answer: str, *, deadline: str | None = None, reason: str = ""
    ) -> Escalation:
        """Apply a person's answer to the todo and close the question, in one transaction."""
        choice = _parse_choice(answer, deadline)
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH):
            raise InvalidInput(f"reason: {problem}")
        reason = reason.strip()
        with self._store.write() as tx:
            write, escalation, todo = _lock_escalation(tx, scope, id)
            if choice is not EscalationAnswer.KEEP and todo.status not in OPEN:
                raise IllegalTransition(
                    f"“{visible(todo.title)}” is already {todo.status}. Answer `keep` to close this question."
                )
            until = parse_new_deadline(write, deadline) if choice is EscalationAnswer.EXTEND else None
            text = f"{choice}{f' to {until}' if until else ''}{f': {reason}' if reason else ''}"
            given = {"answer": text, "answered_by": str(scope.actor), "answered_at": tx.now()}
            answered = advance_escalation(write, escalation, EscalationAction.ANSWER, text, **given)
            why = reason or f"{scope.actor.known_name} answered: {choice}"
            if choice is EscalationAnswer.CANCEL:
                cancel_todo(write, todo, why)
            elif until is not None:
                extend_todo(write, todo, until, why)
            _post_answer(write, todo, choice, text)
            if choice is not EscalationAnswer.CANCEL:
                _tell_owner(write, escalation, todo, f"{scope.actor.known_name} answered: {text}", reason)
            return answered


def escalate_stuck_work(write: MissionWrite, todo: MissionTodo, why: str) -> Escalation:
    """Ask a person about work that does not finish; an open question of this kind is returned instead."""
    question = (
        f"TODO needs a decision: {title_sentence(todo)} Status: {status_since(write, todo)}.\n{visible(why)}\n"
        "Please advise: keep working, extend deadline or cancel?"
    )
    created = create_escalation(write, todo, REVIEW, question, excerpt(why, MAX_REASON_LENGTH))
    if created:
        return created
    unanswered = escalation_repository.unanswered_of_todo(write.tx, todo.id)
    return next(escalation for escalation in unanswered if escalation.kind == REVIEW)


def _parse_choice(answer: str, deadline: str | None) -> EscalationAnswer:
    try:
        choice = EscalationAnswer(answer)
    except ValueError:
        options = ", ".join(EscalationAnswer)
        raise InvalidInput(f"answer: must be one of {options}, got {excerpt(str(answer))!r}") from None
    if choice is EscalationAnswer.EXTEND and deadline is None:
        raise InvalidInput("deadline: is required to extend; write a day such as 2026-02-21")
    if choice is not EscalationAnswer.EXTEND and deadline is not None:
        raise InvalidInput(f"deadline: is only for `extend`, not for `{choice}`")
    return choice


def _lock_escalation(tx: Transaction, scope: MissionScope, id: str) -> tuple[MissionWrite, Escalation, MissionTodo]:
    before = _find_escalation(tx, id)
    mission = mission_repository.lock_mission(tx, before.mission_id)
    # Read again: another writer may have answered it before we held the lock.
    escalation = escalation_repository.find(tx, before.id)
    if mission is None or escalation is None:
        raise _unknown_escalation(id)
    check_mission(scope, mission.slug)
    check_active(mission)
    return MissionWrite(tx, scope, mission), escalation, find_todo(tx, mission, escalation.todo_id)


def _find_escalation(tx: Transaction, id_or_suffix: str) -> Escalation:
    # Only characters of ids: others could act as wildcards in the pattern.
    plain = id_or_suffix.isascii() and id_or_suffix.replace("-", "").isalnum()
    if len(id_or_suffix) > _MAX_ID_LENGTH or not plain:
        raise _unknown_escalation(id_or_suffix)
    if found := escalation_repository.find(tx, id_or_suffix):
        return found
    matches = escalation_repository.find_by_suffix(tx, id_or_suffix)
    if len(matches) > 1:
        raise InvalidInput(f"{excerpt(id_or_suffix)!r} matches the ends of several ids; give more characters.")
    if not matches:
        raise _unknown_escalation(id_or_suffix)
    return matches[0]


def _unknown_escalation(id: str) -> NotFound:
    return NotFound(f"There is no escalation {excerpt(id)!r}. List them with `punchlist mission escalations`.")


def _tell_owner(write: MissionWrite, escalation: Escalation, todo: MissionTodo, answer: str, reason: str) -> None:
    """Work that did not finish goes on; the reason of any answer is feedback for the owner."""
    pillar = mission_repository.pillar(write.tx, todo.pillar_id)
    if pillar is None or todo.status is not TodoStatus.IN_PROGRESS:
        return
    if escalation.kind == REVIEW:
        send_back(write, todo, pillar, reason or answer)
    elif reason:
        give_feedback(write, todo, pillar, answer)


def _post_answer(write: MissionWrite, todo: MissionTodo, choice: EscalationAnswer, text: str) -> None:
    """In the mission chat, for the Lead; and in the TODO chat while the work continues."""
    note = f"Answer of {visible(write.scope.actor.known_name)} about {title_sentence(todo)} {visible(text)}"
    write.post(NoticeKind.NOTE, note)
    if todo.status is TodoStatus.IN_PROGRESS and choice is not EscalationAnswer.CANCEL:
        pillar = mission_repository.pillar(write.tx, todo.pillar_id)
        assert pillar is not None
        write.post(NoticeKind.NOTE, note, pillar.todo_conversation_id, todo_id=todo.id)
