"""Creates escalations and moves them along their lifecycle: row, event and chat message in the caller's transaction.

The caller has locked the mission, which makes it the only writer of the mission's stream.
"""

from __future__ import annotations

from typing import Any, Final

from punchlist.conversations.model import NoticeKind, Scope
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt
from punchlist.missions.changes import event_stream, mission_event
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import ESCALATION, EscalationAction
from punchlist.missions.model import Escalation, Mission, MissionTodo
from punchlist.missions.planning.cadence import time_zone
from punchlist.storage import event_log
from punchlist.storage.store import Transaction
from punchlist.storage.transitions import transition

OVERDUE: Final = "overdue"
"""The deadline of the todo has passed."""
REVIEW: Final = "review"
"""The work on the todo does not finish."""
_MAX_TITLE_LENGTH: Final = 300


def create_escalation(
    tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, kind: str, question: str, reason: str
) -> Escalation | None:
    """Ask a person about a todo, in the mission chat; None when such a question is already open."""
    if any(escalation.kind == kind for escalation in escalation_repository.unanswered_of_todo(tx, todo.id)):
        return None
    status = ESCALATION.advance(NEW, EscalationAction.ASK, scope.actor.role)
    id = new_id()
    escalation = Escalation(
        id=id,
        mission_id=mission.id,
        todo_id=todo.id,
        kind=kind,
        question=f"{question}\n{_how_to_answer(id)}",
        status=status.value,
        asked_at=tx.now(),
    )
    escalation_repository.insert_escalation(tx, escalation)
    data = {name: value for name, value in escalation._asdict().items() if value is not None}
    event_log.append(tx, mission_event(scope, mission, EscalationAction.ASK, id, reason, data, to=status))
    chat_service.post(tx, scope, mission.conversation_id, NoticeKind.ESCALATION, escalation.question)
    return escalation


def advance_escalation(
    tx: Transaction,
    scope: Scope,
    mission: Mission,
    escalation: Escalation,
    action: EscalationAction,
    reason: str,
    **changes: Any,
) -> Escalation:
    return transition(
        tx,
        ESCALATION,
        action,
        scope.actor.role,
        lock=lambda _: escalation,
        update=escalation_repository.update_row,
        event=lambda before, after, data: mission_event(
            scope,
            mission,
            action,
            before.id,
            reason,
            {**data, "todo_id": before.todo_id},
            from_status=before.status,
            to=after.status,
        ),
        changes=changes,
    )


def status_since(tx: Transaction, mission: Mission, todo: MissionTodo) -> str:
    """`pending since 2026-02-21`: the status of a todo and its first day, in the mission's time zone."""
    since = escalation_repository.in_status_since(tx, event_stream(mission.id), todo.id, todo.status)
    day = parse_timestamp(since or todo.created_at).astimezone(time_zone(cadence_of(mission).timezone)).date()
    return f"{todo.status} since {day.isoformat()}"


def title_sentence(todo: MissionTodo) -> str:
    """The title, closed with a full stop."""
    title = excerpt(todo.title, _MAX_TITLE_LENGTH)
    return title if title.endswith((".", "!", "?")) else f"{title}."


def _how_to_answer(id: str) -> str:
    return (
        f"Answer in this chat, or with `punchlist mission answer {id[-8:]} extend DATE`, `cancel`, or `keep` to leave "
        "the todo unchanged."
    )
