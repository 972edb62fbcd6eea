"""One action on several todos of a mission: each succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from punchlist.errors import InvalidInput, PunchlistError, StoreError
from punchlist.missions.model import MissionScope, TodoChange
from punchlist.missions.todos.tool_updates import apply_update, parse_update

if TYPE_CHECKING:
    from punchlist.missions.todos.service import MissionTodos

BULK_ACTIONS: Final = ("promote", "demote", "start", "cancel")
MAX_BULK: Final = 500


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """What happened to one todo: a change or an error."""

    todo_id: str
    change: TodoChange | None = None
    error: PunchlistError | None = None


def change_todos(
    todos: MissionTodos, scope: MissionScope, mission_slug: str, action: str, ids: Iterable[str], reason: str
) -> list[BulkOutcome]:
    """The outcomes in the order of the ids, each id once."""
    wanted = list(dict.fromkeys(ids))
    if action not in BULK_ACTIONS:
        raise InvalidInput(f"action: must be one of {', '.join(BULK_ACTIONS)}")
    if not wanted:
        raise InvalidInput("ids: name at least one todo")
    if len(wanted) > MAX_BULK:
        raise InvalidInput(f"ids: at most {MAX_BULK} todos at once")
    outcomes = []
    for id in wanted:
        values = {"missionSlug": mission_slug, "todoId": id, "reason": reason, "action": action}
        try:
            outcomes.append(BulkOutcome(id, change=apply_update(todos, scope, parse_update(values))))
        except StoreError:
            raise
        except PunchlistError as error:
            outcomes.append(BulkOutcome(id, error=error))
    return outcomes
