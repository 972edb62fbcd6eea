"""`/todos/ID`: a mission todo with history, marks, evidence, cost and execution chat; also the drawer of the board."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.json_text import json_or_text
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.todos import deadlines
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.runs.lifecycle import OPEN as OPEN_RUN
from punchlist.surfaces.web.pages.call_parts import shown_arguments, summary_of
from punchlist.surfaces.web.pages.chat import EditedCalls, shown_messages
from punchlist.surfaces.web.pages.formats import deadline_state
from punchlist.surfaces.web.pages.inbox_items import request_card
from punchlist.surfaces.web.pages.moves import moves_from
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.todo_choices import todo_choices
from punchlist.surfaces.web.pages.todo_fields import editable_values, fingerprint
from punchlist.surfaces.web.pages.todo_relations import relation_values
from punchlist.views.todo_detail import TodoDetail, read_detail
from punchlist.views.todo_evidence import EvidencePage, read_todo_evidence
from punchlist.views.todo_history import PAGE, read_history
from punchlist.views.todo_transcript import MAX_LIMIT, read_newest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from punchlist.conversations.model import ChatEntry
    from punchlist.missions.model import MissionTodo
    from punchlist.runs.model import Run

_MESSAGES: Final = 30


def todo(request: PageRequest) -> Page:
    values = read(request, request.parameters["todo"])
    mission = values["mission"]
    return Page(
        "todo.html",
        values["todo"].title,
        {"detail": values, "close_url": f"/missions/{mission.slug}/board", "chat": _rounds(request, values)},
        section=f"mission:{mission.slug}",
        mission=mission.slug,
    )


def _edited_calls(request: PageRequest, entries: Sequence[ChatEntry]) -> EditedCalls:
    conversations = {entry.message.conversation_id for entry in entries}
    approvals = request.services.approvals
    return {id: call for one in conversations for id, call in approvals.edited_calls(one).items()}


def _rounds(request: PageRequest, detail: dict[str, Any]) -> dict[str, Any]:
    """The work on this todo as a chat. The chat of its pillar's todos has that on others as well."""
    given = request.get("messages")
    most = int(given) if given.isdecimal() and len(given) < 5 else _MESSAGES
    rounds = read_newest(request.services.store, detail["todo"].id, limit=most)
    run = open_run(detail["runs"])
    more = rounds.earlier and most < MAX_LIMIT
    return {
        "messages": shown_messages(rounds.entries, _edited_calls(request, rounds.entries)),
        "queued": [{"id": run.id, "content": run.message, "created_at": run.changed_at}] if run and run.message else [],
        "awaits": "read at the next step",
        "run": run,
        "earlier": request.link(messages=str(most + _MESSAGES)) if more else None,
        "later": None,
    }


def open_run(runs: Sequence[Run]) -> Run | None:
    return next((run for run in runs if run.status in OPEN_RUN), None)


def history(request: PageRequest) -> Page:
    """The changes of a todo, a page at a time."""
    services = request.services
    found = services.mission_todos.find(None, request.parameters["todo"])
    after = request.get("after")
    entries = read_history(services.store, found, after=int(after) if after.isdecimal() and len(after) < 10 else 0)
    more = request.link(after=str(entries[-1].version)) if len(entries) == PAGE else None
    return Page("history.html", f"History of {found.title}", {"todo": found, "entries": entries, "more": more})


def read(request: PageRequest, todo_id: str) -> dict[str, Any]:
    """The values of the panel."""
    services, now = request.services, request.services.store.clock()
    detail = read_detail(services.store, services.mission_todos.find(None, todo_id).id)
    found = detail.todo
    cards = [request_card(services, item, now) for item in services.inbox.about_todo(found.id)]
    relations = relation_values(services, detail)
    return {
        "todo": found,
        "mission": detail.mission,
        "pillar": detail.pillar,
        "pillar_name": detail.pillar_name,
        "conversation_id": detail.conversation_id,
        "chat_url": f"/chats/{detail.conversation_id}",
        "deadline": _deadline(detail, now),
        "marks": marks(detail),
        "moves": [move for move in moves_from(found.status, detail.capacity, request.actor.role) if move.action]
        if found.status in OPEN
        else [],
        "editable": found.status in OPEN,
        "was": {name: fingerprint(text) for name, text in editable_values(found).items()},
        "requests": cards,
        "check": _check_text(found),
        "check_result": json.loads(found.check_result) if found.check_result else None,
        "usage": detail.usage,
        "runs": detail.runs,
        "evidence": shown_calls(detail.evidence),
        "more_evidence": f"/todos/{found.id}/evidence?before={detail.evidence.cursor}"
        if detail.evidence.cursor
        else None,
        "metrics": detail.metrics,
        "answered": detail.answered,
        "history": detail.history,
        "more_history": f"/todos/{found.id}/history" if len(detail.history) == PAGE else None,
        "extra": detail.parts,
        "relations": relations,
        "choices": todo_choices(services, detail, relations["others"]),
    }


def evidence(request: PageRequest) -> Page:
    """The tool calls of a todo, a page at a time, newest page first."""
    services = request.services
    found = services.mission_todos.find(None, request.parameters["todo"])
    page = read_todo_evidence(services.store, found.id, cursor=request.get("before") or None)
    values = {
        "todo": found,
        "calls": shown_calls(page),
        "earlier": request.link(before=page.cursor) if page.cursor else None,
    }
    return Page("evidence.html", f"Evidence of {found.title}", values)


def shown_calls(page: EvidencePage) -> list[dict[str, Any]]:
    """What the page shows of the calls."""
    shown = []
    for call, text in page.calls:
        arguments = json_or_text(text)
        texts = {"arguments": shown_arguments(call.tool, arguments), "about": summary_of(arguments)}
        shown.append({**camel_json(call, "tool", "status", "summary", "at"), "id": call.call_id, **texts})
    return shown


def marks(detail: TodoDetail) -> list[tuple[str, str, str]]:
    """Name, state and explanation of the four marks: claimed, evidenced, checked, accepted."""
    todo = detail.todo
    result = json.loads(todo.check_result) if todo.check_result else None
    checked = ("yes" if result["passed"] else "no") if result else ""
    has_check = todo.completion_check is not None
    # What was done so far is no evidence of a result without a report.
    claimed = bool(todo.worked_at or todo.outcome)
    return [
        ("Claimed", "yes" if claimed else "", "The worker reported a result."),
        ("Evidenced", "yes" if claimed and detail.evidenced else "", "At least one tool call was successful."),
        ("Checked", checked, "The check of the todo." if has_check else "The todo has no check."),
        ("Accepted", "yes" if todo.status is TodoStatus.COMPLETED else "", "The Lead or a person completed it."),
    ]


def _deadline(detail: TodoDetail, now: datetime) -> str:
    todo = detail.todo
    if todo.deadline is None:
        return ""
    due = deadlines.due_at(todo.deadline, cadence_of(detail.mission).timezone)
    return deadline_state(todo.deadline, due <= now, due, now) if todo.status in OPEN else "later"


def _check_text(todo: MissionTodo) -> str:
    if todo.completion_check is None:
        return ""
    check = json.loads(todo.completion_check)
    if "command" in check:
        return " ".join(check["command"])
    if "metric" in check:
        level = f"at most {check['atMost']}" if "atMost" in check else f"at least {check.get('atLeast')}"
        return f"{check['metric']}: {level}"
    if "file" in check:
        return (
            f"{check['file']} contains “{check['contains']}”"
            if check.get("contains")
            else f"{check['file']} is not empty"
        )
    return str(check.get("name", todo.completion_check))
