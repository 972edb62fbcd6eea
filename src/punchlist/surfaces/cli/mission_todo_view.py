"""A mission's todos for the terminal: a list of them, and one with everything about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from punchlist.checklist.text_width import width
from punchlist.claims import repository as claim_records
from punchlist.claims.model import Claim
from punchlist.conversations.model import CallEvidence, Message
from punchlist.conversations.recent import RecentMessages
from punchlist.kernel.text import visible, visible_block
from punchlist.missions import repository as mission_repository
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.model import Escalation, Mission, MissionTodo
from punchlist.missions.todos.completion import check_result
from punchlist.missions.todos.deadlines import is_overdue
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.pagination import TodoPage
from punchlist.missions.todos.tools import todo_json
from punchlist.missions.usage import MissionUsageService, TodoUsage
from punchlist.runs.model import Run
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, format_run_usage, line_width
from punchlist.surfaces.cli.mission_board import ICONS
from punchlist.surfaces.services import Services

_ROOMY: Final = 72
"""From this many columns on, a todo takes one line of a list."""
_MESSAGES: Final = 5
_EVIDENCE: Final = 20
_HEADINGS: Final = {
    TodoStatus.IN_PROGRESS: "In progress",
    TodoStatus.PENDING: "Pending",
    TodoStatus.BACKLOG: "Backlog",
    TodoStatus.COMPLETED: "Ended",
    TodoStatus.CANCELLED: "Ended",
}
_HEADING: Final = re.compile(r"^\[TODO [^]\n]*\]\s*")
_CALL_ICONS: Final = {"success": "✓", "error": "✗", "cancelled": "✗"}


# --- a list -----------------------------------------------------------------------------------------------


def listing(mission: Mission, listed: TodoPage, now: datetime) -> Iterator[str]:
    cells, capacity = line_width(), listed.capacity
    yield fit_line(visible(mission.name), cells)
    yield (
        f"active {capacity.active}/{capacity.active_limit}, backlog {capacity.backlog}/{capacity.backlog_limit}"
        f"{'  archived' if mission.status != 'active' else ''}"
    )
    if not listed.items:
        yield "\nNo todos."
    heading = ""
    for todo in listed.items:
        if _HEADINGS[todo.status] != heading:
            heading = _HEADINGS[todo.status]
            yield f"\n{heading}"
        yield from _entry(mission, listed, todo, now, cells)
    if listed.cursor:
        yield f"\nThere are more: --cursor {listed.cursor}"


def _entry(mission: Mission, listed: TodoPage, todo: MissionTodo, now: datetime, cells: int) -> Iterator[str]:
    asked = ["you are asked about it"] if todo.id in listed.escalated else []
    pillar = visible(listed.pillars.get(todo.pillar_id, ""))
    facts = "  ".join([*_dates(mission, todo, now), todo.priority.value, *asked, pillar])
    head, title = f"{ICONS[todo.status]} {todo.id[-8:]}  ", visible(todo.title)
    room = cells - width(head) - width(facts) - 2
    if cells >= _ROOMY and width(title) <= room:
        yield f"{head}{title}  {facts}"
    else:
        # What is urgent about it is not what is cut off.
        yield f"{head}{fit_line(title, cells - width(head))}"
        yield f"  {fit_line(facts, cells - 2)}"


def _dates(mission: Mission, todo: MissionTodo, now: datetime) -> list[str]:
    if todo.ended_at is not None:
        return [f"{todo.status} {visible(todo.ended_at)[:10]}"]
    if todo.deadline is None:
        return []
    return [f"due {visible(todo.deadline)}{' OVERDUE' if _late(mission, todo, now) else ''}"]


def _late(mission: Mission, todo: MissionTodo, now: datetime) -> bool:
    """Also when nobody has looked since its deadline passed."""
    if todo.status not in OPEN:
        return False
    return todo.overdue_at is not None or is_overdue(todo.deadline, cadence_of(mission).timezone, now)


# --- one --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TodoDetail:
    mission: Mission
    pillar: str
    chat: str
    todo: MissionTodo
    runs: Sequence[Run]
    account: TodoUsage
    asked: Sequence[Escalation]
    claim: Claim | None
    messages: Sequence[Message]

    def as_json(self) -> dict[str, Any]:
        from punchlist.surfaces.conversation_json import message_json

        claim = self.claim
        return {
            **todo_json(self.todo, self.pillar, escalated=bool(self.asked)),
            "missionSlug": self.mission.slug,
            "conversationId": self.chat,
            "claim": claim and {"holder": claim.holder, "fence": claim.fence, "until": claim.lease_until},
            "questions": [{"id": one.id, "status": one.status, "question": one.question} for one in self.asked],
            "runs": [run.as_json() for run in self.runs],
            "costs": self.account.as_json(),
            "messages": [message_json(message) for message in self.messages],
        }


def look(services: Services, mission: Mission, todo: MissionTodo) -> TodoDetail:
    with services.store.read() as tx:
        # One that is archived, too.
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert pillar is not None
        claim = claim_records.find(tx, todo.id)
        live = claim is not None and claim.holder is not None and tx.now() < claim.lease_until
    asked = [one for one in services.escalations.list(mission.slug) if one.todo_id == todo.id]
    return TodoDetail(
        mission,
        pillar.slug,
        pillar.todo_conversation_id,
        todo,
        services.runs.for_todo(todo.id),
        MissionUsageService(services.store).todo(todo.id),
        asked,
        claim if live else None,
        RecentMessages(services.store).mentioning(pillar.todo_conversation_id, todo.id, _MESSAGES),
    )


def lines(page: TodoDetail, now: datetime) -> Iterator[str]:
    todo, cells = page.todo, line_width()
    yield f"{ICONS[todo.status]} {visible(todo.title)}"
    for name, value in _facts(page, now):
        yield f"  {name:<9} {value}"
    blocks = {
        "Description": todo.description,
        "Why": todo.justification,
        "Done when": todo.completion_criteria,
        "Outcome": todo.outcome,
        "Completed all the same": todo.override_reason,
    }
    for heading, text in blocks.items():
        if text:
            yield f"\n{heading}"
            yield from (f"  {line}".rstrip() for line in visible_block(text).splitlines())
    for one in page.asked:
        yield f"\nYou are asked ({one.status}): punchlist mission answer {one.id[-8:]} extend|cancel|keep"
        yield from (f"  │ {line}" for line in visible_block(one.question).splitlines())
    yield from _work(page, cells)


def _facts(page: TodoDetail, now: datetime) -> Iterator[tuple[str, str]]:
    todo, mission = page.todo, page.mission
    others = ", ".join(visible(slug) for slug in json.loads(todo.also_affects))
    yield "id", todo.id
    yield "pillar", f"{mission.slug}/{page.pillar}{f', also affects {others}' if others else ''}"
    since = todo.ended_at or todo.started_at
    yield "status", f"{todo.status}{f' since {format_time(since)}' if since else ''}, {todo.priority} priority"
    if todo.deadline is not None:
        yield "deadline", f"{visible(todo.deadline)}{', OVERDUE' if _late(mission, todo, now) else ''}"
    if todo.assigned_agent is not None:
        yield "agent", visible(todo.assigned_agent)
    if page.claim is not None:
        yield "claimed", f"by {visible(page.claim.holder)} until {format_time(page.claim.lease_until)}"
    if todo.completion_check is not None:
        yield "check", visible(_check(todo))
    yield "created", format_time(todo.created_at)
    yield "chat", visible(page.chat)


def _check(todo: MissionTodo) -> str:
    match json.loads(todo.completion_check or "{}"):
        case {"name": name}:
            said = str(name)
        case {"metric": metric, "atMost": level}:
            said = f"{metric} at most {level}"
        case {"metric": metric, "atLeast": level}:
            said = f"{metric} at least {level}"
        case {"command": [*words]}:
            said = " ".join(map(str, words))
        case other:
            said = str(other)
    result = check_result(todo)
    if result is None:
        return f"{said} (not run yet)"
    return f"{said} ({'passed' if result.get('passed') else 'did not pass'} {format_time(str(result.get('at')))})"


def _work(page: TodoDetail, cells: int) -> Iterator[str]:
    if page.runs:
        yield "\nRuns"
        for run in page.runs:
            why = f"  {visible(run.why)}" if run.why else ""
            yield fit_line(f"  {run.id[-8:]}  {run.kind}  {run.status}  {format_time(run.created_at)}{why}", cells)
        yield f"  {format_run_usage(page.account.usage)}"
    evidence = page.account.evidence
    if evidence:
        yield "\nEvidence"
        if len(evidence) > _EVIDENCE:
            yield f"  … {len(evidence) - _EVIDENCE} earlier calls; --json has all"
        for one in evidence[-_EVIDENCE:]:
            yield fit_line(f"  {_shown(one)}", cells)
            if one.output_file:
                yield f"    all of it: {visible(one.output_file)}"
    if page.messages:
        yield "\nSaid about it"
        for message in page.messages:
            yield fit_line(f"  {format_time(message.created_at)}  {message.kind}: {visible(_text(message))}", cells)


def _text(message: Message) -> str:
    """On a line, without the heading that says which todo it is about."""
    return " ".join(_HEADING.sub("", message.content).split())


def _shown(one: CallEvidence) -> str:
    return f"{_CALL_ICONS.get(one.status, '…')} {visible(one.tool)} ({visible(one.agent)})  {visible(one.summary)}"
