"""Creates escalations and moves them along their lifecycle: row, event and chat message in the caller's transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.conversations.model import NoticeKind
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt
from punchlist.missions.changes import MissionWrite, event_stream
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import ESCALATION, EscalationAction
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.planning.cadence import time_zone

OVERDUE: Final = "overdue"
"""The deadline of the todo has passed."""
REVIEW: Final = "review"
"""The work on the todo does not finish."""
_MAX_TITLE_LENGTH: Final = 300
_HOW_TO_ANSWER: Final = "Answer in this chat, or with"


def create_escalation(
    write: MissionWrite, todo: MissionTodo, kind: str, question: str, reason: str
) -> Escalation | None:
    """Ask a person about a todo, in the mission chat; None when such a question is already open."""
    tx = write.tx
    if any(escalation.kind == kind for escalation in escalation_repository.unanswered_of_todo(tx, todo.id)):
        return None
    status = ESCALATION.advance(NEW, EscalationAction.ASK, write.scope.actor.role)
    id = new_id()
    escalation = Escalation(
        id=id,
        mission_id=write.mission.id,
        todo_id=todo.id,
        kind=kind,
        question=f"{question}\n{_how_to_answer(id, kind)}",
        status=status.value,
        asked_at=tx.now(),
    )
    escalation_repository.insert_escalation(tx, escalation)
    data = {name: value for name, value in escalation._asdict().items() if value is not None}
    write.append(EscalationAction.ASK, id, reason, data, to=status)
    write.post(NoticeKind.ESCALATION, escalation.question)
    return escalation


def advance_escalation(
    write: MissionWrite, escalation: Escalation, action: EscalationAction, reason: str, **changes: Any
) -> Escalation:
    data = {"todo_id": escalation.todo_id}
    update = escalation_repository.update_row
    return write.advance(ESCALATION, escalation, action, reason, update=update, data=data, changes=changes)


def status_since(write: MissionWrite, todo: MissionTodo) -> str:
    """`pending since 2026-02-21`: the status of a todo and its first day, in the mission's time zone."""
    mission = write.mission
    since = escalation_repository.in_status_since(write.tx, event_stream(mission.id), todo.id, todo.status.value)
    day = parse_timestamp(since or todo.created_at).astimezone(time_zone(cadence_of(mission).timezone)).date()
    return f"{todo.status} since {day.isoformat()}"


def title_sentence(todo: MissionTodo) -> str:
    """The title, closed with a full stop."""
    title = excerpt(todo.title, _MAX_TITLE_LENGTH)
    return title if title.endswith((".", "!", "?")) else f"{title}."


def question_text(escalation_question: str) -> str:
    """The question without its last line, which says how to answer it: for surfaces that say it in their own words."""
    text, _, last = escalation_question.rpartition("\n")
    return text if last.startswith(_HOW_TO_ANSWER) else escalation_question


def _how_to_answer(id: str, kind: str) -> str:
    keep = "let its owner go on" if kind == REVIEW else "leave the todo unchanged"
    return f"{_HOW_TO_ANSWER} `punchlist mission answer {id[-8:]} extend DATE`, `cancel`, or `keep` to {keep}."
