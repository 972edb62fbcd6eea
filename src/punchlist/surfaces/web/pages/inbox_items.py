"""Requests of the inbox, prepared for a page: titles, links and the choices of each kind, merged per todo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from punchlist.errors import NotFound
from punchlist.kernel.text import excerpt
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.views.inbox import InboxItem

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import MissionTodo
    from punchlist.runs.model import Run

_EXTENSION: Final = timedelta(days=7)
_MAX_ARGUMENTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class RequestCard:
    """A request as the page shows it."""

    kind: str
    id: str
    title: str
    question: str
    asked_at: str
    mission: str | None = None
    reason: str | None = None
    expires_at: str | None = None
    todo_id: str | None = None
    todo_url: str | None = None
    chat_url: str | None = None
    run_id: str | None = None
    always: Sequence[tuple[str, str]] = ()
    """The outcomes that approve more than this call, with their labels."""
    arguments: str = ""
    """Of an approval, as JSON; empty if they cannot be changed."""
    suggested: str = ""
    """The deadline that an escalation suggests."""
    acknowledged: bool = False


@dataclass(slots=True)
class RequestGroup:
    """The requests about one todo, or one request about none."""

    key: str
    title: str = ""
    status: str = "in_progress"
    place: str = ""
    url: str = ""
    items: list[RequestCard] = field(default_factory=list)


def read_groups(services: Services, now: datetime) -> list[RequestGroup]:
    """The open requests, oldest first."""
    return group_cards(services, read_cards(services, services.inbox.list(), now))


def group_cards(services: Services, cards: Iterable[RequestCard]) -> list[RequestGroup]:
    groups: dict[str, RequestGroup] = {}
    for card in cards:
        key = card.todo_id if card.mission and card.todo_id else card.id
        if key not in groups:
            groups[key] = RequestGroup(key)
            if key == card.todo_id and (todo := _todo(services, key)) is not None:
                groups[key] = RequestGroup(key, todo.title, todo.status.value, card.mission or "", f"/todos/{todo.id}")
        groups[key].items.append(card)
    return list(groups.values())


def read_cards(services: Services, items: Iterable[InboxItem], now: datetime) -> list[RequestCard]:
    items = list(items)
    runs: dict[str, Run] = {}
    if any(item.session for item in items):
        for each in reversed(services.runs.list(limit=500)):
            if each.todo_id is not None:
                runs[each.conversation_id] = each
    slugs = {mission.id: mission.slug for mission in services.missions.list(archived=True)} if runs else {}
    cards = []
    for item in items:
        run = runs.get(item.session or "")
        todo_id = item.todo_id if item.kind == "escalation" else run.todo_id if run else None
        mission = item.mission or (slugs.get(run.mission_id or "") if run else None)
        common = RequestCard(
            item.kind,
            item.id,
            _title(item),
            _question(item),
            item.asked_at,
            mission=mission,
            reason=item.reason,
            expires_at=item.expires_at,
            todo_id=todo_id,
            todo_url=f"/todos/{todo_id}" if todo_id else None,
            chat_url=f"/chats/{item.session}" if item.session else None,
            run_id=item.run_id,
        )
        cards.append(_with_choices(services, item, common, now))
    return cards


def _title(item: InboxItem) -> str:
    match item.kind:
        case "approval":
            return f"May {item.subject} run?"
        case "question":
            return item.question if len(item.question) <= 160 else item.subject
        case "escalation":
            return "The deadline has passed" if item.subject == "overdue" else "The work needs a decision"
    return f"The {item.subject} of {item.mission} failed"


def _question(item: InboxItem) -> str:
    """Without the line that names commands of the terminal: the page has buttons."""
    if item.kind != "escalation":
        return item.question
    return "\n".join(line for line in item.question.splitlines() if not line.startswith("Answer in this chat"))


def _with_choices(services: Services, item: InboxItem, card: RequestCard, now: datetime) -> RequestCard:
    from dataclasses import replace

    if item.kind == "approval":
        approval = services.approvals.find(item.id)
        labels = {
            ApprovalOutcome.PROCEED_ALWAYS_TOOL: f"every {item.subject} of this session",
            ApprovalOutcome.PROCEED_ALWAYS_PREFIX: "commands that begin like this",
            ApprovalOutcome.PROCEED_ALWAYS_SERVER: f"all tools of {approval.server}",
        }
        outcomes = approval.as_question.outcomes
        arguments = _pretty(services.approvals.call(item.id).arguments)
        return replace(
            card,
            always=[(outcome.value, label) for outcome, label in labels.items() if outcome in outcomes],
            arguments=arguments if len(arguments) <= _MAX_ARGUMENTS else "",
        )
    if item.kind == "escalation":
        escalation = services.escalations.find(item.id)
        suggested = (now + _EXTENSION).date().isoformat()
        return replace(card, suggested=suggested, acknowledged=escalation.status == "acknowledged")
    return card


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def _todo(services: Services, id: str) -> MissionTodo | None:
    try:
        return services.mission_todos.get(id)
    except NotFound:
        return None


def short(text: str, limit: int = 120) -> str:
    return excerpt(" ".join(text.split()), limit)
