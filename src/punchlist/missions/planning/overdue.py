"""Processes a mission's deadlines in one transaction (M13, M14).

A todo past its deadline is flagged once: its owner is warned, or it gives up a slot in which it was never started, and
a person is asked. A flagged todo is left alone until it gets another deadline, so a second pass at the same moment
takes no action.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from punchlist.conversations.model import NoticeKind, Scope
from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, event_stream
from punchlist.missions.config.policy import OverduePending, StaleBacklog, TodoPolicy, cadence_of, policy_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import EscalationAction, EscalationStatus
from punchlist.missions.escalations.transitions import (
    OVERDUE,
    advance_escalation,
    create_escalation,
    status_since,
    title_sentence,
)
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.planning import prompts
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.deadlines import OverdueReport, due_at
from punchlist.missions.todos.lifecycle import ACTIVE, TodoAction, TodoStatus
from punchlist.missions.todos.transitions import advance_todo, cancel_todo, update_todo
from punchlist.storage.store import Store

FLAG: Final = "overdue"
"""The event that flags a todo as overdue."""
_MAX_NAMED: Final = 20


class _OverdueAction(NamedTuple):
    todo: MissionTodo
    action: str
    """demoted, cancelled, warned or kept."""
    escalation: Escalation | None


class OverdueService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def process_mission(self, scope: Scope, mission_id: str) -> OverdueReport:
        """Process one mission, as the system. Archived missions are skipped."""
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, mission_id)
            if mission is None:
                raise NotFound(f"There is no mission with id {mission_id!r}.")
            if mission.status != "active":
                return OverdueReport()
            write, policy, now = MissionWrite(tx, scope, mission), policy_of(mission), parse_timestamp(tx.now())
            # Before new questions are asked: those need no reminder yet.
            reminded = _remind(write, policy, now)
            report = _process_deadlines(write, policy, now)
            return _process_stale_backlog(write, policy, now, report._replace(reminded=reminded))


def _process_deadlines(write: MissionWrite, policy: TodoPolicy, now: datetime) -> OverdueReport:
    zone = cadence_of(write.mission).timezone
    due = {
        todo: due_at(todo.deadline, zone)
        for todo in todo_repository.open_in_mission(write.tx, write.mission.id)
        if todo.status in ACTIVE and todo.deadline is not None
    }
    overdue, actions = [], []
    for todo in sorted((todo for todo, at in due.items() if at <= now), key=lambda todo: (due[todo], todo.id)):
        if todo.overdue_at is not None:
            overdue.append(todo)
        elif not _was_cancelled(write, todo):
            actions.append(_handle(write, policy, todo))
            overdue.append(actions[-1].todo)
    return OverdueReport(
        overdue=tuple(overdue),
        demoted=_with_action(actions, "demoted"),
        cancelled=_with_action(actions, "cancelled"),
        warned=_with_action(actions, "warned"),
        escalated=tuple(action.escalation for action in actions if action.escalation),
    )


def _was_cancelled(write: MissionWrite, todo: MissionTodo) -> bool:
    """Whether it ended with its parent in this pass."""
    stored = todo_repository.find(write.tx, todo.id) if todo.parent_id is not None else None
    return stored is not None and stored.ended_at is not None


def _with_action(actions: Sequence[_OverdueAction], name: str) -> tuple[MissionTodo, ...]:
    return tuple(action.todo for action in actions if action.action == name)


def _handle(write: MissionWrite, policy: TodoPolicy, todo: MissionTodo) -> _OverdueAction:
    """Flag an overdue todo, apply the mission's policy, and ask a person."""
    tx, status = write.tx, status_since(write, todo)
    reason = f"It was due {todo.deadline}."

    def ask(todo: MissionTodo, consequence: str) -> Escalation | None:
        question = f"TODO overdue: {title_sentence(todo)} Status: {status}.\n"
        question += f"Please advise: extend deadline or cancel?\n{consequence}"
        return create_escalation(write, todo, OVERDUE, question, reason)

    pending = todo.status is TodoStatus.PENDING
    full = mission_repository.capacity(tx, write.mission).backlog >= policy.backlog_todo_limit
    if pending and policy.overdue_pending_policy is OverduePending.DEMOTE and not full:
        demoted = advance_todo(write, todo, TodoAction.DEMOTE, reason, overdue_at=tx.now())
        return _OverdueAction(demoted, "demoted", ask(demoted, "It was never started, so it was moved to the backlog."))
    flagged = update_todo(write, FLAG, todo, reason, overdue_at=tx.now())
    if not pending:
        _warn(write, flagged)
        return _OverdueAction(flagged, "warned", ask(flagged, "Its owner was warned."))
    if policy.overdue_pending_policy is OverduePending.CANCEL:
        asked = ask(flagged, "It was never started, so it is cancelled. Create it again if it is still needed.")
        cancelled = cancel_todo(write, flagged, f"{reason} It was never started.")
        # The cancellation has answered the question.
        return _OverdueAction(cancelled, "cancelled", asked and escalation_repository.find(tx, asked.id))
    consequence = "It was never started."
    if policy.overdue_pending_policy is OverduePending.DEMOTE:
        consequence += f" It stays pending because the backlog is full ({policy.backlog_todo_limit})."
    return _OverdueAction(flagged, "kept", ask(flagged, consequence))


def _warn(write: MissionWrite, todo: MissionTodo) -> None:
    pillar = mission_repository.pillar(write.tx, todo.pillar_id)
    assert pillar is not None, "a pillar with todos cannot be deleted"
    write.post(NoticeKind.DEADLINE_WARNING, prompts.overdue_note(todo), pillar.todo_conversation_id, todo_id=todo.id)


def _remind(write: MissionWrite, policy: TodoPolicy, now: datetime) -> tuple[Escalation, ...]:
    """Repeat the questions that no person has answered or acknowledged."""
    reminded = []
    for escalation in escalation_repository.unanswered(write.tx, write.mission.id):
        last = parse_timestamp(escalation.reminded_at or escalation.asked_at)
        due = now > last and now >= last + timedelta(hours=policy.reminder_hours)
        if escalation.status != EscalationStatus.OPEN or not due:
            continue
        count = escalation.reminders + 1
        changes = {"reminders": count, "reminded_at": write.tx.now()}
        reason, text = f"reminder {count}", f"Reminder {count}: {escalation.question}"
        reminded.append(advance_escalation(write, escalation, EscalationAction.REMIND, reason, **changes))
        write.post(NoticeKind.REMINDER, text)
    return tuple(reminded)


def _process_stale_backlog(
    write: MissionWrite, policy: TodoPolicy, now: datetime, report: OverdueReport
) -> OverdueReport:
    """Report stale backlog todos to the owners, or cancel them if the mission's policy says so."""
    tx, mission = write.tx, write.mission
    before = timestamp(now - timedelta(days=policy.stale_backlog_after_days))
    ids = escalation_repository.unchanged_backlog_ids(tx, event_stream(mission.id), mission.id, before)
    stale = [todo for id in sorted(ids) if (todo := todo_repository.find(tx, id))]
    if policy.stale_backlog_policy is not StaleBacklog.CANCEL:
        return report._replace(stale=tuple(stale))
    reason = f"It has not changed in the backlog for {policy.stale_backlog_after_days:g} days."
    pruned = tuple(cancel_todo(write, todo, reason) for todo in stale if not _was_cancelled(write, todo))
    if pruned:
        names = ", ".join(f"“{excerpt(todo.title, 100)}”" for todo in pruned[:_MAX_NAMED])
        more = f" and {len(pruned) - _MAX_NAMED} more" if len(pruned) > _MAX_NAMED else ""
        text = f"Cancelled in the backlog because they have not changed for a long time: {names}{more}."
        write.post(NoticeKind.NOTE, text)
    return report._replace(pruned=pruned)
