"""Creates and decides recommendations: row, event and chat message in the caller's transaction.

An action that a role may not take becomes a recommendation like this, where the mission is locked and the caller knows
that the action is possible:

    write = lock_mission(tx, scope, mission_slug)
    added = add_recommendation(write, pillar, todo, EDIT, {"title": "New title"}, reason)

`kind` is the name of the action. `payload` holds its arguments as JSON, so that accepting the recommendation can
perform the action: see `PERFORMERS` in `service.py`. Repeating an open recommendation returns the existing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from punchlist.conversations.model import NoticeKind
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import SYSTEM, canonical_json
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt, visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite
from punchlist.missions.chats import block_quote
from punchlist.missions.model import MissionTodo, Pillar
from punchlist.missions.recommendations import repository as recommendation_repository
from punchlist.missions.recommendations.model import (
    EDIT,
    MAX_OPEN,
    NOTE,
    RECOMMENDATION,
    Recommendation,
    RecommendationAction,
)
from punchlist.missions.todos.lifecycle import LEADS, MISSION

_TODO_ACTIONS: Final = {action.value: action for action in MISSION.allowed}
_MAX_DECISION_LENGTH: Final = 500


def add_recommendation(
    write: MissionWrite,
    pillar: Pillar | None,
    todo: MissionTodo | None,
    kind: str,
    payload: Mapping[str, Any],
    text: str,
) -> Recommendation:
    """Store a recommendation of the caller and post it to the mission chat; the open one if it is repeated."""
    status = RECOMMENDATION.advance(NEW, RecommendationAction.RECOMMEND, write.scope.actor.role)
    tx, mission, arguments = write.tx, write.mission, canonical_json(dict(payload))
    waiting = recommendation_repository.open_in_mission(tx, mission.id)
    todo_id = todo.id if todo is not None else None
    for earlier in waiting:
        same_text = kind != NOTE or earlier.content == text
        if (earlier.todo_id, earlier.kind, earlier.payload) == (todo_id, kind, arguments) and same_text:
            return earlier
    if len(waiting) >= MAX_OPEN:
        raise IllegalTransition(
            f"{MAX_OPEN} recommendations of mission {mission.slug!r} wait for a decision, the limit. "
            "The Lead or a person decides on them first."
        )
    recommendation = Recommendation(
        id=new_id(),
        mission_id=mission.id,
        number=(recommendation_repository.last_number(tx, mission.id) or 0) + 1,
        pillar_id=pillar.id if pillar is not None else None,
        todo_id=todo_id,
        kind=kind,
        payload=arguments,
        content=text,
        status=status.value,
        created_by=str(write.scope.actor),
        created_at=tx.now(),
    )
    recommendation_repository.insert_recommendation(tx, recommendation)
    data = {name: value for name, value in recommendation._asdict().items() if value is not None}
    write.append(RecommendationAction.RECOMMEND, recommendation.id, excerpt(text, 500), data, to=status)
    who = f"The owner of {visible(pillar.name)}" if pillar is not None else visible(write.scope.actor.known_name)
    what = action_text(recommendation, todo)
    sentence = f"{who} recommends to {what}." if what else f"{who} recommends:"
    write.post(NoticeKind.RECOMMENDATION, f"[recommendation {recommendation.number}] {sentence}\n{block_quote(text)}")
    return recommendation


def action_text(recommendation: Recommendation, todo: MissionTodo | None) -> str:
    """`reprioritize “Profile the build” (id, pending) with priority critical`; a note has no action."""
    if recommendation.kind == NOTE:
        return ""
    values = [f"{name} {excerpt(str(value), 100)}" for name, value in recommendation.arguments.items()]
    about = f" “{visible(todo.title)}” ({todo.id}), which is {todo.status}" if todo is not None else ""
    return f"{visible(recommendation.kind)}{about}{', with ' + ', '.join(values) if values else ''}"


def decide(
    write: MissionWrite, recommendation: Recommendation, action: RecommendationAction, reason: str
) -> Recommendation:
    """Accept or decline, and tell the pillar. The action itself is the caller's."""
    changes = {"decided_by": str(write.scope.actor), "decided_at": write.tx.now(), "decision": reason}
    update, data = recommendation_repository.update_row, {"number": recommendation.number}
    decided = write.advance(RECOMMENDATION, recommendation, action, reason, update=update, data=data, changes=changes)
    pillar = mission_repository.pillar(write.tx, decided.pillar_id) if decided.pillar_id is not None else None
    if pillar is not None:
        text = f"Recommendation {decided.number} ({visible(decided.kind)}) was {decided.status}.\n{block_quote(reason)}"
        write.post(NoticeKind.NOTE, text, pillar.conversation_id)
    return decided


def settle_recommendations(write: MissionWrite, todo: MissionTodo, action: str, reason: str) -> None:
    """Decide the open recommendations about a todo that a change has carried out or made impossible."""
    found = recommendation_repository.open_for_todo(write.tx, write.mission.id, todo.id)
    if not found:
        return
    permitted = write if write.scope.actor.role in LEADS else replace(write, scope=replace(write.scope, actor=SYSTEM))
    for recommendation in found:
        if recommendation.kind == action:
            wanted = recommendation.arguments
            done = all(str(getattr(todo, name, None)) == str(value) for name, value in wanted.items())
            if action == EDIT and not done:
                # Another edit decides nothing about this one.
                continue
            how = RecommendationAction.ACCEPT if done else RecommendationAction.DECLINE
            decide(permitted, recommendation, how, excerpt(reason, _MAX_DECISION_LENGTH))
        elif not _is_possible(recommendation, todo):
            text = f"The todo is {todo.status} now: {reason}"
            decide(permitted, recommendation, RecommendationAction.DECLINE, excerpt(text, _MAX_DECISION_LENGTH))


def _is_possible(recommendation: Recommendation, todo: MissionTodo) -> bool:
    if todo.ended_at is not None:
        return False
    action = _TODO_ACTIONS.get(recommendation.kind)
    return action is None or action in MISSION.actions_from(todo.status)
