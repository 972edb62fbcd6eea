"""Home: what needs a person, what is at work, and what has ended, in one call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from punchlist.agent.resume import original_request
from punchlist.checklist.repository import find_checklist
from punchlist.conversations.model import StoredTurn
from punchlist.conversations.repository import find_turn
from punchlist.conversations.status_repository import find_status
from punchlist.host_sessions import HostSessions
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.todos import repository as mission_todos
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run
from punchlist.storage.store import Transaction
from punchlist.views import conversation_list_repository, repository
from punchlist.views.conversations import ListProgress, list_progress, turn_state
from punchlist.views.inbox_model import InboxItem, InboxPage, RequestKind

if TYPE_CHECKING:
    from punchlist.app import Services

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
MAX_RUNS: Final = 200
MAX_LISTS: Final = 20
"""The newest checklists without an agent, of which those with open items are shown."""
WorkKind = Literal["turn", "run", "agent", "list"]


@dataclass(frozen=True, slots=True)
class WorkLine:
    """A turn, a run of a mission, a third-party agent, or a list that no agent has worked on yet."""

    kind: WorkKind
    id: str
    """Of the turn or run; the session of a third-party agent or of a list."""
    conversation_id: str
    title: str
    """The beginning of the request; empty if there is none."""
    agent: str
    state: str
    """`working`, `waiting`, `interrupted` or `ended`; of a run its status; of a list `open`."""
    items: ListProgress
    started_at: str | None
    """Of a third-party agent, when its turn began; None before its first prompt."""
    mission: str | None = None
    """The slug of the mission of a run."""
    continuations: int | None = None
    continuation_limit: int | None = None
    """None if continuation is off or unknown (C15)."""
    tokens: int | None = None
    ended_at: str | None = None
    reason: str | None = None
    """Why a turn ended."""
    turns: int | None = None
    """Of an ended turn: how many turns of the conversation have ended."""


@dataclass(frozen=True, slots=True)
class HomeView:
    inbox: InboxPage
    """What needs a person, oldest first, and the counts of all of it."""
    working: Sequence[WorkLine]
    done: Sequence[WorkLine]
    """The last ended turn of each conversation, newest first."""

    @property
    def needs_you(self) -> Sequence[InboxItem]:
        return self.inbox.items

    @property
    def needs_you_total(self) -> int:
        return sum(self.inbox.counts.values())


def read_home(services: Services, *, limit: int = DEFAULT_LIMIT) -> HomeView:
    """The three groups, each with at most `limit` rows."""
    limit = max(1, min(limit, MAX_LIMIT))
    page = services.inbox.page(limit=limit)
    hosts = HostSessions(services.settings, os.environ).running()
    with services.store.read() as tx:
        turns = [
            turn for turn in repository.open_turns(tx) if turn.owner or turn.agent_id in services.agents.definitions
        ]
        # A turn that waits for a person is in the inbox.
        asks = {item.session for item in page.items}
        approves = {item.session for item in page.items if item.kind is RequestKind.APPROVAL}
        shown = [
            turn
            for turn in turns
            if turn.conversation_id not in approves
            and (turn.conversation_id not in asks or turn_state(turn) != "waiting")
        ]
        working = list(_working(services, tx, hosts, shown, asks))
        ended = repository.newest_ended_turns(tx, limit)
        done = [_turn_line(tx, turn) for turn in sorted(ended, key=lambda turn: turn.ended_at or "", reverse=True)]
        working += _untouched_lists(tx, {*asks, *(line.conversation_id for line in [*working, *done])})
    return HomeView(page, working[:limit], done)


def _working(
    services: Services, tx: Transaction, hosts: dict[str, str], turns: Sequence[StoredTurn], asks: set[str | None]
) -> Iterator[WorkLine]:
    runs = run_repository.open_runs(tx, 1, "", MAX_RUNS)
    of_runs = {run.turn_id for run in runs}
    for run in runs:
        if run.status is not RunStatus.WAITING or run.conversation_id not in asks:
            yield _run_line(tx, run)
    for turn in turns:
        if turn.id not in of_runs:
            yield _turn_line(tx, turn)
    shown = {turn.conversation_id for turn in turns}
    for session, agent in hosts.items():
        if session not in shown:
            yield _host_line(services, tx, session, agent)


def _host_line(services: Services, tx: Transaction, session: str, agent: str) -> WorkLine:
    """A third-party agent that runs, as far as its hooks have told."""
    last = repository.last_turn(tx, session)
    turn = last if last is not None and last.agent_id not in services.agents.definitions else None
    definition = services.agents.get("supervisor")
    return WorkLine(
        "agent",
        session,
        session,
        _request(tx, turn) if turn is not None else _title(tx, session),
        agent,
        "working",
        # Not the plan of an agent of Punchlist that has worked in the same session.
        list_progress(tx, session, turn),
        turn.started_at if turn is not None else None,
        continuations=(repository.continuations_of_turn(tx, turn_id=turn.id) or 0) if turn is not None else 0,
        continuation_limit=definition.limits.continuations if definition.todo_driven else None,
    )


def _untouched_lists(tx: Transaction, shown: set[str | None]) -> Iterator[WorkLine]:
    """Lists with open items that a person wrote and no agent has worked on."""
    for id, changed_at in repository.checklists_without_turn(tx, most=MAX_LISTS):
        items = list_progress(tx, id, None)
        if items.open and id not in shown:
            yield WorkLine("list", id, id, _title(tx, id) or _first_open(tx, id), "", "open", items, changed_at)


def _first_open(tx: Transaction, conversation_id: str) -> str:
    return next((item.content for item in find_checklist(tx, conversation_id).items if item.is_open), "")


def _run_line(tx: Transaction, run: Run) -> WorkLine:
    mission = mission_repository.mission(tx, run.mission_id) if run.mission_id is not None else None
    turn = find_turn(tx, run.turn_id) if run.turn_id is not None else None
    status = find_status(tx, run.turn_id) if run.turn_id is not None else None
    tokens = status.input_tokens + status.output_tokens if status else run.input_tokens + run.output_tokens
    return WorkLine(
        "run",
        run.id,
        run.conversation_id,
        f"{run.kind}: {run_title(tx, run)}",
        run.agent,
        run.status.value,
        list_progress(tx, run.conversation_id, turn),
        run.started_at,
        mission.slug if mission is not None else None,
        status.continuations if status else None,
        status.continuation_limit if status else None,
        tokens,
    )


def run_title(tx: Transaction, run: Run) -> str:
    """What a run is about: its todo, else its conversation."""
    todo = mission_todos.find(tx, id=run.todo_id) if run.todo_id is not None else None
    return todo.title if todo is not None else _title(tx, run.conversation_id)


def _turn_line(tx: Transaction, turn: StoredTurn) -> WorkLine:
    status = find_status(tx, turn.id)
    return WorkLine(
        "turn",
        turn.id,
        turn.conversation_id,
        _request(tx, turn),
        turn.agent_id,
        turn_state(turn),
        list_progress(tx, turn.conversation_id, turn),
        turn.started_at,
        None,
        status.continuations if status else None,
        status.continuation_limit if status else None,
        status.input_tokens + status.output_tokens if status else None,
        turn.ended_at,
        turn.end_reason,
        None if turn.open else repository.count_ended_turns(tx, conversation_id=turn.conversation_id),
    )


def _request(tx: Transaction, turn: StoredTurn) -> str:
    request = repository.request_of_turn(tx, turn.id)
    return _first_line(request) if request else _title(tx, turn.conversation_id)


def _title(tx: Transaction, conversation_id: str) -> str:
    found = conversation_list_repository.conversation_activity(tx, conversation_id)
    title = found.title if found is not None else ""
    return _first_line(title or conversation_list_repository.first_request(tx, conversation_id) or "")


def _first_line(request: str) -> str:
    return excerpt(" ".join(original_request(request).split()), 200)
