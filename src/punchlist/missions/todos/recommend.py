"""What an owner may not do itself becomes a recommendation to the Lead (M4)."""

from __future__ import annotations

from typing import NoReturn

from punchlist.conversations.model import NoticeKind
from punchlist.errors import NotAllowed
from punchlist.kernel.text import visible
from punchlist.missions.chats import block_quote
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.lifecycle import MISSION, TodoAction
from punchlist.missions.todos.transitions import lock_todo
from punchlist.storage.store import Store


def recommend(
    store: Store,
    scope: MissionScope,
    mission_slug: str,
    todo_id: str,
    action: str,
    reason: str,
    *,
    detail: str = "",
    step: TodoAction | None = None,
) -> NoReturn:
    """Post what an owner wants to the mission chat, then refuse it. `detail` follows the action; `step` is the step of
    the lifecycle, which must be possible."""
    with store.write() as tx:
        write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
        possible = step is None or step in MISSION.actions_from(todo.status)
        if possible:
            content = (
                f"The owner of {visible(pillar.name)} recommends to {action} “{visible(todo.title)}” ({todo.id}), "
                f"which is {todo.status}{f': {detail}' if detail else ''}.\n{block_quote(reason)}"
            )
            write.post(NoticeKind.RECOMMENDATION, content)
    posted = "It was posted to the mission chat as a recommendation."
    result = posted if possible else f"It is {todo.status}, so this was not possible anyway."
    raise NotAllowed(f"An owner may not {action} a mission todo; the Lead decides. {result}")
