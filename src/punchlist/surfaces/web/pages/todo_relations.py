"""What a todo has to do with others: links, the todo it is a part of, and a swap between the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.link_rules import NAMES
from punchlist.missions.todos.queries import archive_limit
from punchlist.missions.todos.tool_updates import apply_update, parse_update
from punchlist.surfaces.web.pages.page import PageRequest, Redirect

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.views.todo_detail import TodoDetail

LINK_LABELS: Final = {
    "blocks": "blocks",
    "blockedBy": "is blocked by",
    "duplicates": "duplicates",
    "duplicatedBy": "is duplicated by",
    "followsFrom": "follows from",
    "followedBy": "is followed by",
}
_MAX_OTHERS: Final = 300
_SWAPS: Final = {TodoStatus.PENDING: TodoStatus.BACKLOG, TodoStatus.BACKLOG: TodoStatus.PENDING}


def relation_values(services: Services, detail: TodoDetail) -> dict[str, Any]:
    """What the forms offer."""
    todo, mission = detail.todo, detail.mission
    with services.store.read() as tx:
        ended = max(todo.ended_at or "", todo.unarchived_at or "")
        archived = todo.ended_at is not None and ended < archive_limit(tx, mission)
    values: dict[str, Any] = {"archived": archived, "names": LINK_LABELS, "others": [], "swaps": False}
    if todo.status in OPEN and mission.status == "active":
        page = services.mission_todos.list(mission.slug, status=OPEN, limit=_MAX_OTHERS)
        values["others"] = [each for each in page.items if each.id != todo.id]
        values["swaps"] = any(each.status is _SWAPS.get(todo.status) for each in values["others"])
    return values


def relate(request: PageRequest) -> Redirect:
    """`do` is the name of a link, or unlink, part-of, not-part, swap or unarchive."""
    services, do, other = request.services, request.posted("do"), request.posted("other")
    todo = services.mission_todos.find(None, request.parameters["todo"])
    mission = next((each for each in services.missions.list(archived=True) if each.id == todo.mission_id), None)
    if mission is None:
        raise NotFound("Its mission does not exist.")
    values, message = _update(do, other, request.posted("link"))
    given = {"missionSlug": mission.slug, "todoId": todo.id, "reason": request.posted("reason"), **values}
    change = apply_update(services.mission_todos, request.scope(), parse_update(given))
    return Redirect(f"/todos/{todo.id}", change.warning or message, warning=change.warning is not None)


def _update(do: str, other: str, link: str) -> tuple[dict[str, Any], str]:
    if do in NAMES:
        return {"action": "link", "link": do, "otherId": other}, "The link is added."
    match do:
        case "unlink":
            return {"action": "unlink", "link": link, "otherId": other}, "The link is removed."
        case "part-of":
            return {"action": "edit", "parentId": other}, "It is a sub-item now."
        case "not-part":
            return {"action": "edit", "clear": ["parentId"]}, "It is no sub-item any more."
        case "swap":
            return {"action": "swap", "otherId": other}, "The two have changed places."
        case "unarchive":
            return {"action": "unarchive"}, "It is on the board again."
    raise InvalidInput("do: choose how it relates to the other todo")
