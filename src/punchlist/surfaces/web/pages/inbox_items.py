"""Requests of the inbox, prepared for a page: titles, links and the choices of each kind, merged per todo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from punchlist.errors import NotFound
from punchlist.kernel.text import excerpt
from punchlist.missions.escalations.transitions import REVIEW
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.validation import failed_check_text, passed_since_work
from punchlist.views.inbox_model import InboxItem, RequestKind

if TYPE_CHECKING:
    from punchlist.app import Services

EXTENSION: Final = timedelta(days=7)
"""The extension that an escalation suggests."""
_NO_WORKER: Final = "Nothing is planned or done meanwhile. Start a worker with `punchlist worker`."
_MAX_ARGUMENTS: Final = 20_000
_MAX_TITLE: Final = 160
_LEFT_OUT: Final = ("Answer in this chat", "Please advise:")
"""How the lines of an escalation begin that list the possible answers; the page has buttons."""
_APPROVALS: Final = {
    "run_command": "May this command run?",
    "write_file": "May this file be written?",
    "edit_file": "May this file be changed?",
}


@dataclass(frozen=True, slots=True)
class RequestCard:
    """A request as the page shows it."""

    item: InboxItem
    title: str
    question: str
    arguments: str = ""
    """Of an approval, as JSON; empty if they cannot be changed."""
    suggested: str = ""
    """The deadline that an escalation suggests."""
    can_accept: bool = False
    """Whether the work on a todo waits for a decision, which may be its completion."""
    overdue: bool = False
    """Whether the deadline of the todo has passed."""
    unchecked: str = ""
    """Why the todo can be completed only without its check; empty if it can be completed."""

    @property
    def id(self) -> str:
        return self.item.id

    @property
    def kind(self) -> str:
        return self.item.kind.value

    @property
    def acknowledged(self) -> bool:
        return self.item.reason == "acknowledged"

    @property
    def always(self) -> Mapping[str, str]:
        return self.item.always


@dataclass(slots=True)
class RequestGroup:
    """The requests about one todo of a mission, or one other request."""

    key: str
    title: str = ""
    place: str = ""
    url: str = ""
    cards: list[RequestCard] = field(default_factory=list)


def group_requests(services: Services, items: Iterable[InboxItem], now: datetime) -> list[RequestGroup]:
    """In the order of their oldest requests."""
    groups: dict[str, RequestGroup] = {}
    for item in items:
        key = item.todo_id or item.id
        if key not in groups:
            about = (item.todo_title or "", item.mission or "", f"/todos/{item.todo_id}") if item.todo_id else ()
            groups[key] = RequestGroup(key, *about)
        groups[key].cards.append(request_card(services, item, now))
    return list(groups.values())


def request_card(services: Services, item: InboxItem, now: datetime) -> RequestCard:
    arguments = ""
    if item.kind is RequestKind.APPROVAL:
        arguments = _arguments(services, item.id)
    elif item.kind is RequestKind.ESCALATION:
        return _escalation_card(services, item, now)
    return RequestCard(item, _title(item), _question(item), arguments)


def _escalation_card(services: Services, item: InboxItem, now: datetime) -> RequestCard:
    suggested = (now + EXTENSION).date().isoformat()
    todo = services.mission_todos.get(item.todo_id or "")
    can_accept = item.subject == REVIEW and todo.status is TodoStatus.IN_PROGRESS
    unchecked = "" if passed_since_work(todo) else failed_check_text(todo) or "Its check has not passed since the work."
    overdue = todo.overdue_at is not None
    return RequestCard(item, _title(item), _question(item), "", suggested, can_accept, overdue, unchecked)


def _title(item: InboxItem) -> str:
    match item.kind:
        case RequestKind.APPROVAL:
            return _APPROVALS.get(item.subject, f"May {item.subject} run?")
        case RequestKind.QUESTION:
            return item.question if len(item.question) <= _MAX_TITLE else item.subject
        case RequestKind.EVENT:
            return f"Has this happened: {item.question}?"
        case RequestKind.TIME:
            return "The time that a todo waited for has passed"
        case RequestKind.ESCALATION:
            return "The deadline has passed" if item.subject == "overdue" else "The work needs a decision"
        case RequestKind.FAILURE:
            return f"The {item.subject} of {item.mission} failed"
        case RequestKind.BUDGET:
            return "A budget is used up"
        case RequestKind.WORKER:
            return "Work waits, and no worker runs"


def _question(item: InboxItem) -> str:
    if item.kind is RequestKind.WORKER:
        # Its time is above the question.
        return _NO_WORKER
    lines = [line for line in item.question.splitlines() if not line.startswith(_LEFT_OUT)]
    if item.kind is RequestKind.ESCALATION and lines:
        # The first line begins with the title, which is above the question.
        status = lines[0].rpartition("Status: ")[2]
        lines[0] = f"{status[:1].upper()}{status[1:]}".replace("_", " ")
    return "\n".join(lines)


def _arguments(services: Services, call_id: str) -> str:
    try:
        text = services.approvals.call(call_id).arguments
        shown = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (NotFound, ValueError, RecursionError):
        return ""
    return shown if len(shown) <= _MAX_ARGUMENTS else ""


def short(text: str, limit: int = 120) -> str:
    return excerpt(" ".join(text.split()), limit)
