"""What an owner may not do itself becomes a recommendation to the Lead (M4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from punchlist.errors import NotAllowed
from punchlist.missions.model import MissionScope
from punchlist.missions.recommendations.transitions import add_recommendation
from punchlist.missions.todos.lifecycle import MISSION, TodoAction
from punchlist.missions.todos.todo_drafts import parse_new_deadline
from punchlist.missions.todos.transitions import lock_todo
from punchlist.storage.store import Store


def recommend(
    store: Store,
    scope: MissionScope,
    mission_slug: str,
    todo_id: str,
    kind: str,
    reason: str,
    arguments: Mapping[str, Any],
) -> NoReturn:
    """Store what an owner wants as a recommendation, then refuse it. `arguments` are those of the action, as JSON."""
    with store.write() as tx:
        write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
        step = _STEPS.get(kind)
        possible = step is None or step in MISSION.actions_from(todo.status)
        payload = dict(arguments)
        if possible and kind == TodoAction.EXTEND:
            payload["deadline"] = parse_new_deadline(write, payload["deadline"])
        added = add_recommendation(write, pillar, todo, kind, payload, reason) if possible else None
    result = f"It is {todo.status}, so this was not possible anyway."
    if added is not None:
        result = f"It was posted to the mission chat as a recommendation (number {added.number})."
    raise NotAllowed(f"An owner may not {kind} a mission todo; the Lead decides. {result}")


_STEPS: dict[str, TodoAction] = {action.value: action for action in TodoAction} | {"label": TodoAction.EDIT}
"""The steps of the lifecycle, which depend on the status of the todo."""
