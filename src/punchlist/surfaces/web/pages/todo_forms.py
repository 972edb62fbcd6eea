"""Forms that create and change mission todos."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.todos import tool_arguments
from punchlist.missions.todos.bulk import change_todos
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.missions.todos.tool_updates import UpdateRequest, apply_update, parse_update
from punchlist.surfaces.web.pages.chat import queue_message
from punchlist.surfaces.web.pages.check_fields import posted_check
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.surfaces.web.pages.todo import open_run
from punchlist.surfaces.web.pages.todo_choices import new_todo_choices
from punchlist.surfaces.web.pages.todo_fields import edited_values, label_of, split_labels
from punchlist.views.health import has_worker
from punchlist.views.todo_detail import read_detail

if TYPE_CHECKING:
    from punchlist.missions.model import Mission, MissionTodo, TodoChange

_DONE: Final = {"promote": "promoted", "demote": "moved to the backlog", "start": "started", "cancel": "cancelled"}


def new_todo(request: PageRequest) -> Page:
    mission = request.services.missions.get(request.parameters["mission"])
    values = {
        "mission": mission,
        "pillars": [state.pillar for state in request.services.missions.pillars(mission)],
        "priorities": [priority.value for priority in TodoPriority],
        "templates": mission.config["templates"],
        "capacity": request.services.mission_todos.capacity(mission.slug),
        "given": {name: request.get(name) for name in ("pillar", "title")},
        "choices": new_todo_choices(request.services, mission),
    }
    return Page("new_todo.html", "New todo", values, section=f"mission:{mission.slug}", mission=mission.slug)


def create_todo(request: PageRequest) -> Redirect:
    slug = request.parameters["mission"]
    names = ("title", "description", "justification", "completionCriteria", "deadline", "priority", "template")
    values: dict[str, Any] = {name: request.posted(name) or None for name in names}
    values |= {
        "missionSlug": slug,
        "pillarSlug": request.posted("pillar"),
        "targetStatus": "backlog" if request.posted("backlog") else None,
        "labels": split_labels(request.posted("labels")),
        "alsoAffects": list(request.form.get("alsoAffects", ())),
        "parentId": request.posted("parentId") or None,
        "check": posted_check(request),
    }
    mission, new = tool_arguments.parse_create(values)
    created = request.services.mission_todos.create(request.scope(), mission, new, reason="created on the page")
    message = created.warning or f"Created “{visible(created.todo.title)}” ({_words(created.todo)})."
    return Redirect(f"/missions/{slug}/board?todo={created.todo.id}", message, warning=created.warning is not None)


def change_todo(request: PageRequest) -> Redirect:
    """Promote, demote, start, cancel or complete one todo."""
    services, action = request.services, request.parameters["action"]
    todo, mission = _find(request)
    change = _apply(request, mission, todo.id, action, request.posted("reason"))
    started = ""
    if action == "start" and change.run_id is not None and not has_worker(services.store):
        started = " It begins when a worker runs: punchlist worker."
    message = change.warning or f"“{excerpt(todo.title)}” is {_words(change.todo)}.{started}"
    return Redirect(request.posted("next") or f"/todos/{todo.id}", message, warning=change.warning is not None)


def edit_todo(request: PageRequest) -> Redirect:
    """Change the fields that differ from the stored ones, in one transaction."""
    todo, mission = _find(request)
    fields = edited_values(request, todo)
    if not fields:
        return Redirect(f"/todos/{todo.id}", "Nothing was changed.")
    change = request.services.mission_todos.edit(
        request.scope(), mission.slug, todo.id, fields, request.posted("reason"), expected_version=todo.version
    )
    changed = ", ".join(label_of(column) for column in fields)
    return Redirect(f"/todos/{todo.id}", change.warning or f"Changed: {changed}.", warning=change.warning is not None)


def comment(request: PageRequest) -> Redirect:
    todo, mission = _find(request)
    request.services.mission_todos.comment(request.scope(), mission.slug, todo.id, request.posted("text"))
    return Redirect(f"/todos/{todo.id}", "")


def message(request: PageRequest) -> Redirect:
    """To the agent at work on this todo; without one, to the chat of its pillar's todos."""
    services, (todo, _) = request.services, _find(request)
    if run := open_run(services.runs.for_todo(todo.id)):
        services.runs.redirect(request.scope(), run.id, request.posted("text"))
        return Redirect(f"/todos/{todo.id}", "")
    chat = services.conversations.get(read_detail(services.store, todo.id).conversation_id)
    queue_message(request, chat, f"About “{visible(todo.title)}” (todo {todo.id}):\n\n{request.posted('text')}")
    return Redirect(f"/chats/{chat.id}", "No agent works on this todo now. The owner of its pillar answers here.")


def change_many(request: PageRequest) -> Redirect:
    """The same action on several todos, each in its own transaction; those that failed are named."""
    slug, action = request.parameters["mission"], request.posted("action")
    ids = request.form.get("todo", ())
    if action not in _DONE:
        raise InvalidInput("action: choose what to do with the selected todos")
    if not ids:
        raise InvalidInput("todo: select at least one todo")
    outcomes = change_todos(
        request.services.mission_todos, request.scope(), slug, action, ids, request.posted("reason")
    )
    failed = [f"{_title(request, each.todo_id)}: {each.error}" for each in outcomes if each.error]
    lines = [f"{len(outcomes) - len(failed)} of {len(outcomes)} todos {_DONE[action]}."]
    for text, count in Counter(failed).items():
        lines.append(f"Not changed: {text}" + (f" ({count})" if count > 1 else ""))
    return Redirect(f"/missions/{slug}/board", "\n".join(lines[:12]), warning=bool(failed))


def _apply(request: PageRequest, mission: Mission, todo_id: str, action: str, reason: str) -> TodoChange:
    todos, scope = request.services.mission_todos, request.scope()
    if action != "complete":
        return apply_update(todos, scope, _update(mission, todo_id, reason, {"action": action}))
    values = {
        "missionSlug": mission.slug,
        "todoId": todo_id,
        "outcome": request.posted("outcome") or reason,
        "metricsImpacted": list(request.form.get("metric", ())) or None,
        "overrideReason": request.posted("override") or None,
    }
    completion = tool_arguments.parse_completion(values)
    if completion["override_reason"] is None and (due := todos.todo_needing_check(scope, mission.slug, todo_id)):
        request.services.checks.run(scope, due)
    return todos.complete(scope, **completion)


def _update(mission: Mission, todo_id: str, reason: str, values: dict[str, Any]) -> UpdateRequest:
    return parse_update({"missionSlug": mission.slug, "todoId": todo_id, "reason": reason, **values})


def _find(request: PageRequest) -> tuple[MissionTodo, Mission]:
    services = request.services
    todo = services.mission_todos.find(None, request.parameters["todo"])
    mission = next(each for each in services.missions.list(archived=True) if each.id == todo.mission_id)
    return todo, mission


def _title(request: PageRequest, id: str) -> str:
    try:
        return excerpt(request.services.mission_todos.get(id).title)
    except PunchlistError:
        return excerpt(id)


def _words(todo: MissionTodo) -> str:
    return todo.status.value.replace("_", " ")
