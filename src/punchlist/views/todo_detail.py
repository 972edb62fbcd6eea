"""A mission todo in detail: fields, history, rounds of work, evidence, questions and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.claims import repository as claim_repository
from punchlist.claims.model import Claim
from punchlist.conversations.model import Message
from punchlist.conversations.service import Conversations
from punchlist.errors import NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import Capacity, Escalation, Metric, Mission, MissionTodo, TodoComment, TodoFile
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.links import LinkedTodo, linked_todos
from punchlist.missions.todos.pagination import SubItems
from punchlist.missions.todos.tools import todo_json
from punchlist.missions.usage import RunUsage, usage_of_todo
from punchlist.runs.model import Run
from punchlist.runs.service import Runs
from punchlist.storage.store import Store, Transaction
from punchlist.views import mission_repository as view_repository
from punchlist.views.mission_repository import MAX_REQUESTS, AgentRequest
from punchlist.views.todo_evidence import EvidencePage, evidence_page, without_reviews
from punchlist.views.todo_history import HistoryEntry, read_history

_MAX_MESSAGES: Final = 5
_MESSAGE_FIELDS: Final = ("id", "turn_id", "position", "role", "kind", "content", "created_at", "posted_by", "todo_id")


@dataclass(frozen=True, slots=True)
class TodoParts:
    """What belongs to a todo besides its fields."""

    parent: MissionTodo | None = None
    children: Sequence[MissionTodo] = ()
    links: Sequence[LinkedTodo] = ()
    """In both directions."""
    comments: Sequence[TodoComment] = ()
    files: Sequence[TodoFile] = ()

    @property
    def progress(self) -> SubItems:
        counts = SubItems()
        for child in self.children:
            counts = counts.add(child.status, 1)
        return counts

    def as_json(self) -> dict[str, Any]:
        """Empty parts are left out."""
        parts: dict[str, Any] = {
            "parent": self.parent and _reference(self.parent),
            "subItems": self.progress.as_json() if self.children else None,
            "children": [_reference(child) for child in self.children],
            "links": [{"kind": link.name, **_reference(link.todo)} for link in self.links],
            "comments": [camel_json(each, "id", "author", "content", "created_at") for each in self.comments],
            "files": [camel_json(each, "name", "content", "created_by", "created_at") for each in self.files],
        }
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class TodoDetail:
    mission: Mission
    capacity: Capacity
    """Of the mission."""
    metrics: Sequence[Metric]
    """The active metrics of the mission."""
    pillar: str
    """Its slug."""
    pillar_name: str
    conversation_id: str
    todo: MissionTodo
    runs: Sequence[Run]
    usage: RunUsage
    evidence: EvidencePage
    """The newest tool calls; `read_todo_evidence` has the others."""
    evidenced: bool
    """Whether a tool call was successful."""
    requests: Sequence[AgentRequest]
    """Approvals and questions that the work waits for."""
    escalations: Sequence[Escalation]
    """Unanswered ones."""
    answered: Sequence[Escalation]
    claim: Claim | None
    messages: Sequence[Message]
    """The newest messages about the todo outside turns."""
    history: Sequence[HistoryEntry]
    """The first page of the changes, oldest first; `read_history` has the others."""
    parts: TodoParts


def read_detail(store: Store, todo_id: str) -> TodoDetail:
    with store.read() as tx:
        todo = todo_repository.find(tx, todo_id)
        if todo is None:
            raise NotFound(f"There is no mission todo {excerpt(todo_id)!r}.")
        mission = mission_repository.mission(tx, todo.mission_id)
        # Not from the mission's pillars, which exclude archived ones.
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert mission is not None
        assert pillar is not None
        claim = claim_repository.find(tx, todo.id)
        held = claim is not None and claim.holder is not None and tx.now() < claim.lease_until
        escalations = view_repository.escalations_of_todo(tx, todo.id)
        of_todo = {"mission_id": todo.mission_id, "todo_id": todo.id}
        requests = view_repository.agent_requests(tx, **of_todo, most=MAX_REQUESTS)
        parts = read_parts(tx, todo)
        capacity = mission_repository.capacity(tx, mission)
        metrics = [metric for metric in mission_repository.metrics_of(tx, mission.id) if metric.status == "active"]
        work = without_reviews(mission_repository.work_of_todo(tx, todo.id))
        usage, evidence = usage_of_todo(tx, todo.id, work), evidence_page(tx, work)
    return TodoDetail(
        mission,
        capacity,
        metrics,
        pillar.slug,
        pillar.name,
        pillar.todo_conversation_id,
        todo,
        Runs(store).for_todo(todo.id),
        usage,
        evidence,
        any(turn.succeeded for turn in work),
        requests,
        [each for each in escalations if each.status != "answered"],
        [each for each in escalations if each.status == "answered"],
        claim if held else None,
        Conversations(store).about_todo(todo.id, limit=_MAX_MESSAGES),
        read_history(store, todo),
        parts,
    )


def read_parts(tx: Transaction, todo: MissionTodo) -> TodoParts:
    return TodoParts(
        todo_repository.find(tx, todo.parent_id) if todo.parent_id is not None else None,
        todo_repository.children(tx, mission_id=todo.mission_id, parent_id=todo.id),
        linked_todos(tx, todo.id),
        todo_repository.comments_of(tx, todo.id),
        todo_repository.files_of(tx, todo.id),
    )


def _reference(todo: MissionTodo) -> dict[str, Any]:
    return {"id": todo.id, "title": todo.title, "status": todo.status.value}


def detail_json(detail: TodoDetail) -> dict[str, Any]:
    claim = detail.claim
    return {
        **todo_json(detail.todo, detail.pillar, escalated=bool(detail.escalations)),
        **detail.parts.as_json(),
        "missionSlug": detail.mission.slug,
        "conversationId": detail.conversation_id,
        "claim": claim and {"holder": claim.holder, "fence": claim.fence, "until": claim.lease_until},
        "questions": [
            *map(_escalation_json, (*detail.answered, *detail.escalations)),
            *map(request_json, detail.requests),
        ],
        "runs": [run.as_json() for run in detail.runs],
        "costs": {**detail.usage.as_json(), **_evidence_json(detail.evidence)},
        "history": history_json(detail),
        "messages": [camel_json(message, *_MESSAGE_FIELDS) for message in detail.messages],
    }


def _evidence_json(page: EvidencePage) -> dict[str, Any]:
    more = {"evidenceCursor": page.cursor} if page.cursor else {}
    return {"evidence": [each.as_json() for each in page.calls], **more}


def _escalation_json(one: Escalation) -> dict[str, Any]:
    return {"kind": "escalation", "id": one.id, "status": one.status, "question": one.question, "answer": one.answer}


def request_json(request: AgentRequest) -> dict[str, Any]:
    asked = camel_json(request, "kind", "id", "run_id", "todo_id", "agent", "asked_at")
    return {**asked, "status": "open", "question": request.text, "answer": None}


def history_json(detail: TodoDetail) -> list[dict[str, Any]]:
    return [entry.as_json() for entry in detail.history]
