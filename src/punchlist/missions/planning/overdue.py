"""Looking after a mission's deadlines, in one transaction (M13, M14).

What has passed its deadline is flagged once: then its worker is warned, or it gives up a slot that it was never
started in, and a person is asked. What was flagged is left alone from then on, whatever the person or the Lead makes
of it, until it has another deadline. A second look at the same moment therefore does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from punchlist.conversations.model import Scope
from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import changes as mission_changes
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config.policy import OverduePending, StaleBacklog, TodoPolicy, cadence_of, policy_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.transitions import (
    OVERDUE,
    advance_escalation,
    create_escalation,
    status_since,
    title_sentence,
)
from punchlist.missions.model import Escalation, Mission, MissionTodo
from punchlist.missions.planning import prompts
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.deadlines import OverdueReport, due_at
from punchlist.missions.todos.lifecycle import (
    ACTIVE,
    MISSION,
    EscalationAction,
    EscalationStatus,
    TodoAction,
    TodoStatus,
)
from punchlist.missions.todos.transitions import cancel_todo, update_todo
from punchlist.storage.store import Store, Transaction

FLAG: Final = "overdue"
"""The event that says that a todo was found to be overdue."""
_MAX_NAMED: Final = 20


class _OverdueAction(NamedTuple):
    """What has become of a todo that was found to be overdue."""

    todo: MissionTodo
    what: str
    """demoted, cancelled, warned or kept."""
    asked: Escalation | None


class OverdueService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def process_mission(self, scope: Scope, mission_id: str) -> OverdueReport:
        """Look after one mission, as the system. Nothing is done in one that is archived."""
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, mission_id)
            if mission is None:
                raise NotFound(f"There is no mission with id {mission_id!r}.")
            if mission.status != "active":
                return OverdueReport()
            policy, now = policy_of(mission), parse_timestamp(tx.now())
            # Before new ones are asked: those are no day old.
            reminded = _remind(tx, scope, mission, policy, now)
            swept = _process_deadlines(tx, scope, mission, policy, now)
            return _process_stale_backlog(tx, scope, mission, policy, now, swept._replace(reminded=reminded))


def _process_deadlines(
    tx: Transaction, scope: Scope, mission: Mission, policy: TodoPolicy, now: datetime
) -> OverdueReport:
    zone = cadence_of(mission).timezone
    ends = {
        todo: due_at(todo.deadline, zone)
        for todo in todo_repository.open_in_mission(tx, mission.id)
        if todo.status in ACTIVE and todo.deadline is not None
    }
    overdue, handled = [], []
    for todo in sorted((todo for todo, end in ends.items() if end <= now), key=lambda todo: (ends[todo], todo.id)):
        if todo.overdue_at is not None:
            overdue.append(todo)
        else:
            handled.append(_handle(tx, scope, mission, policy, todo))
            overdue.append(handled[-1].todo)
    return OverdueReport(
        overdue=tuple(overdue),
        demoted=_with_outcome(handled, "demoted"),
        cancelled=_with_outcome(handled, "cancelled"),
        warned=_with_outcome(handled, "warned"),
        escalated=tuple(one.asked for one in handled if one.asked),
    )


def _with_outcome(handled: Sequence[_OverdueAction], what: str) -> tuple[MissionTodo, ...]:
    return tuple(one.todo for one in handled if one.what == what)


def _handle(tx: Transaction, scope: Scope, mission: Mission, policy: TodoPolicy, todo: MissionTodo) -> _OverdueAction:
    """Flag it, do what the mission's policy says, and ask a person."""
    was = status_since(tx, mission, todo)
    reason = f"It was due {todo.deadline}."
    if todo.status is TodoStatus.IN_PROGRESS:
        flagged = _flag(tx, scope, mission, todo, reason)
        _warn(tx, scope, flagged)
        return _OverdueAction(
            flagged, "warned", _ask(tx, scope, mission, flagged, was, "Whoever works on it was warned.")
        )
    if policy.overdue_pending_policy is OverduePending.CANCEL:
        flagged = _flag(tx, scope, mission, todo, reason)
        asked = _ask(
            tx, scope, mission, flagged, was, "It was never started, so it is cancelled. Make it anew if needed."
        )
        ended = cancel_todo(tx, scope, mission, flagged, f"{reason} It was never started.")
        # With its todo, the question has come to an end.
        return _OverdueAction(ended, "cancelled", asked and escalation_repository.find(tx, asked.id))
    if policy.overdue_pending_policy is OverduePending.KEEP:
        flagged = _flag(tx, scope, mission, todo, reason)
        return _OverdueAction(flagged, "kept", _ask(tx, scope, mission, flagged, was, "It was never started."))
    if mission_repository.capacity(tx, mission).backlog >= policy.backlog_todo_limit:
        flagged = _flag(tx, scope, mission, todo, reason)
        full = f"It was never started. It stays pending, since the backlog is full ({policy.backlog_todo_limit})."
        return _OverdueAction(flagged, "kept", _ask(tx, scope, mission, flagged, was, full))
    status = MISSION.advance(todo.status, TodoAction.DEMOTE, scope.actor.role)
    demoted = update_todo(tx, scope, mission, TodoAction.DEMOTE, todo, reason, status=status, overdue_at=tx.now())
    moved = "It was never started, so it was moved to the backlog."
    return _OverdueAction(demoted, "demoted", _ask(tx, scope, mission, demoted, was, moved))


def _flag(tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, reason: str) -> MissionTodo:
    return update_todo(tx, scope, mission, FLAG, todo, reason, overdue_at=tx.now())


def _warn(tx: Transaction, scope: Scope, todo: MissionTodo) -> None:
    pillar = mission_repository.pillar(tx, todo.pillar_id)
    assert pillar is not None, "the database keeps a pillar as long as it has todos"
    chat_service.post(tx, scope, pillar.todo_conversation_id, chat_service.DEADLINE_WARNING, prompts.overdue_note(todo))


def _ask(tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, was: str, done: str) -> Escalation | None:
    said = f"TODO overdue: {title_sentence(todo)} Status: {was}.\nPlease advise: extend deadline or cancel?\n{done}"
    return create_escalation(tx, scope, mission, todo, OVERDUE, said, f"It was due {todo.deadline}.")


def _remind(
    tx: Transaction, scope: Scope, mission: Mission, policy: TodoPolicy, now: datetime
) -> tuple[Escalation, ...]:
    """Ask again what nobody has answered, nor said that they have seen it."""
    reminded = []
    for asked in escalation_repository.unanswered(tx, mission.id):
        last = parse_timestamp(asked.reminded_at or asked.asked_at)
        if asked.status != EscalationStatus.OPEN or now < last + timedelta(hours=policy.reminder_hours) or now <= last:
            continue
        count = asked.reminders + 1
        again = {"reminders": count, "reminded_at": tx.now()}
        reminded.append(
            advance_escalation(tx, scope, mission, asked, EscalationAction.REMIND, f"reminder {count}", **again)
        )
        chat_service.post(
            tx, scope, mission.conversation_id, chat_service.REMINDER, f"Reminder {count}: {asked.question}"
        )
    return tuple(reminded)


def _process_stale_backlog(
    tx: Transaction, scope: Scope, mission: Mission, policy: TodoPolicy, now: datetime, swept: OverdueReport
) -> OverdueReport:
    """What nobody has touched for long is put before the owner, or cancelled if the mission says so."""
    before = timestamp(now - timedelta(days=policy.stale_backlog_after_days))
    ids = escalation_repository.unchanged_backlog_ids(tx, mission_changes.event_stream(mission.id), mission.id, before)
    found = [todo for id in sorted(ids) if (todo := todo_repository.find(tx, id))]
    if policy.stale_backlog_policy is not StaleBacklog.CANCEL:
        return swept._replace(stale=tuple(found))
    reason = f"Nobody has touched it in the backlog for {policy.stale_backlog_after_days:g} days."
    pruned = tuple(cancel_todo(tx, scope, mission, todo, reason) for todo in found)
    if pruned:
        names = ", ".join(f"“{excerpt(todo.title, 100)}”" for todo in pruned[:_MAX_NAMED])
        more = f" and {len(pruned) - _MAX_NAMED} more" if len(pruned) > _MAX_NAMED else ""
        said = f"Cancelled in the backlog, since nobody has touched them for long: {names}{more}."
        chat_service.post(tx, scope, mission.conversation_id, chat_service.NOTE, said)
    return swept._replace(pruned=pruned)
