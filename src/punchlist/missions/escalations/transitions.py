"""What every change of an escalation has in common, inside its transaction: row, event, and what is posted.

The caller has locked the mission, which makes it the only writer of its stream.
"""

from __future__ import annotations

from typing import Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt
from punchlist.missions import changes as mission_changes
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations import repository as records
from punchlist.missions.model import Escalation, Mission, MissionTodo
from punchlist.missions.planning import cadence
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import ESCALATION, EscalationAction, EscalationStatus
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

OVERDUE: Final = "overdue"
"""About a deadline that has passed."""
REVIEW: Final = "review"
"""About work that does not come to an end."""
_TITLE: Final = 300


def create_escalation(
    tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, kind: str, said: str, reason: str
) -> Escalation | None:
    """Ask a person about a todo, in the mission chat; None when that is being asked already."""
    if any(asked.kind == kind for asked in todo_repository.asked(tx, todo.id)):
        return None
    status = ESCALATION.advance(NEW, EscalationAction.ASK, scope.actor.role)
    id = new_id()
    made = Escalation(
        id=id,
        mission_id=mission.id,
        todo_id=todo.id,
        kind=kind,
        question=f"{said}\n{_how_to_answer(id)}",
        status=status.value,
        asked_at=tx.now(),
        reminded_at=None,
        reminders=0,
        answer=None,
        answered_by=None,
        answered_at=None,
    )
    records.insert_escalation(tx, made)
    told = {name: value for name, value in made._asdict().items() if value is not None}
    event_log.append(
        tx, mission_changes.mission_event(scope, mission, EscalationAction.ASK, made.id, reason, told, to=status)
    )
    chat_service.post(tx, scope, mission.conversation_id, chat_service.ESCALATION, made.question)
    return made


def advance_escalation(
    tx: Transaction,
    scope: Scope,
    mission: Mission,
    asked: Escalation,
    action: EscalationAction,
    reason: str,
    **changes: Any,
) -> Escalation:
    """Take an escalation, as it was just read, one step along."""
    status = ESCALATION.advance(EscalationStatus(asked.status), action, scope.actor.role)
    after = asked._replace(status=status.value, **changes)
    if not records.update_row(tx, asked, after):
        raise Conflict(f"Escalation {asked.id} was changed by somebody else at the same moment. Look again and retry.")
    told = {"status": status.value, **changes, "todo_id": asked.todo_id}
    event = mission_changes.mission_event(
        scope, mission, action, asked.id, reason, told, came_from=asked.status, to=status
    )
    event_log.append(tx, event)
    return after


def status_since(tx: Transaction, mission: Mission, todo: MissionTodo) -> str:
    """`pending since 2026-02-21`: the state of a todo, and the day since when it is in it, where the mission is."""
    since = (
        records.in_state_since(tx, mission_changes.event_stream(mission.id), todo.id, todo.status) or todo.created_at
    )
    place = cadence.time_zone(cadence_of(mission).timezone)
    return f"{todo.status} since {parse_timestamp(since).astimezone(place).date().isoformat()}"


def title_sentence(todo: MissionTodo) -> str:
    """With a full stop, in a sentence of ours."""
    said = excerpt(todo.title, _TITLE)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _how_to_answer(id: str) -> str:
    return (
        f"Answer in this chat, or with `punchlist mission answer {id[-8:]} extend DATE`, or `cancel`, or `keep` to "
        "leave it as it is."
    )
