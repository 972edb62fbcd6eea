"""The state of a session as its hooks see it: its lists, and what its latest events say about the host agent.

There are no stored counters: they are derived from the event log, so that neither a crash nor a second process loses
count (adr/0011).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from punchlist.agent.list_state import ListState
from punchlist.agent.message_kinds import CONTINUATION, REMINDER
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.checklist.repository import checklist_stream
from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.model import Message, StoredTurn
from punchlist.kernel.events import Event, Role
from punchlist.kernel.processes import is_running
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.plan.model import TurnTodo, plan_stream
from punchlist.verification.model import Verification
from punchlist.verification.output import failure_key

NEW_PROMPT: Final = "a new prompt"
"""The reason for which a prompt begins a turn and ends the previous one."""
SESSION_STARTED: Final = "host_session"
"""The kind of the message that records the start of a host session."""

# Keys of event data.
FINGERPRINT_KEY: Final = "mark"
WORK_KEY: Final = "work"
"""Set on a continuation: how many different calls had succeeded since the last prompt."""
EARLIER_LIST_KEY: Final = "aside"
"""Set on a continuation to a list that an earlier session left."""
PROMPT_KEY: Final = "prompt"
"""Set on the first prompt of a turn that a person began before."""
GOAL_KEY: Final = "goal"
"""Set on a continuation for the goal of the session: which failures it was about."""
CONFIRMATION: Final = "confirmation"
"""The goal's checks pass, and the agent is asked to confirm the criteria."""
VERDICT_KEY: Final = "verdict"
"""A judge found that something is missing."""
REVISION_KEY: Final = "revision"
SESSION_KEY: Final = "host_session"
_LIST_STREAMS: Final = (checklist_stream(""), plan_stream(""))


@dataclass(frozen=True, slots=True)
class SessionHistory:
    continuations: tuple[tuple[str, int], ...] = ()
    """The lists' fingerprint and the work at each continuation since the last prompt, newest first."""
    reminded: str | None = None
    """The fingerprint at the last reminder since the last prompt."""
    ended_by_person: str | None = None
    """The reason for which a person ended the turn since the last prompt."""
    initial_revision: int | None = None
    """The checklist's revision when the host session started; None if it was resumed."""
    continuations_in_session: int = 0
    skipped: frozenset[str] = frozenset()
    """Fingerprints at which sessions were pointed to an earlier session's list."""
    turn_of_person: str | None = None
    """The newest turn that a person began."""
    completions: tuple[tuple[str, str], ...] = ()
    """When which item of the checklist was completed: the time and its id."""
    starts: tuple[tuple[str, str], ...] = ()
    """When which item of the checklist was started: the time and its id."""
    added_completed: tuple[tuple[str, str], ...] = ()
    """When which item was added that was completed already: the time and its id."""
    added: tuple[tuple[str, str], ...] = ()
    """When which item of the checklist was added: the time and its id."""
    goal_keys: tuple[str, ...] = ()
    """The failures for which the agent was sent back to its goal since the last prompt, newest first."""
    told: tuple[Event, ...] = ()
    """The changes of the lists before the hooks last told the agent what people changed (X9); empty if `untold` is."""
    untold: tuple[Event, ...] = ()
    """The changes of the lists since; empty if none is by a person."""

    def unchanged(self, fingerprint: str) -> int:
        """The number of latest continuations in a row with this fingerprint of the lists."""
        return _leading(seen == fingerprint for seen, _ in self.continuations)

    def fruitless(self, fingerprint: str, work: int) -> int:
        """The number of latest continuations in a row that brought neither a change of the lists nor new work (C5)."""
        return _leading(seen == (fingerprint, work) for seen in self.continuations)


def _leading(conditions: Iterable[bool]) -> int:
    """How many of the first conditions hold in a row."""
    return sum(1 for _ in takewhile(bool, conditions))


def read_history(events: Sequence[Event], session: str | None) -> SessionHistory:
    """Read events from the newest backwards to the last prompt and to the start of the host session.

    Older events count only for `skipped`.
    """
    continuations: list[tuple[str, int]] = []
    reminded: str | None = None
    ended_by_person: str | None = None
    initial_revision: int | None = None
    turn_of_person: str | None = None
    skipped = set[str]()
    in_session = 0
    prompt_seen = start_seen = False
    for event in reversed(events):
        data = event.payload()
        kind = _message_kind(data)
        if EARLIER_LIST_KEY in data:
            skipped.add(data[FINGERPRINT_KEY])
        if prompt_seen and start_seen:
            continue
        if kind == CONTINUATION and FINGERPRINT_KEY in data:
            continuations += [] if prompt_seen else [(data[FINGERPRINT_KEY], data.get(WORK_KEY, 0))]
            in_session += not start_seen
        elif kind == REMINDER and FINGERPRINT_KEY in data:
            reminded = reminded if prompt_seen or reminded else data[FINGERPRINT_KEY]
        elif kind == SESSION_STARTED and data.get(SESSION_KEY) == session and not start_seen:
            start_seen, initial_revision = True, data.get(REVISION_KEY)
        elif _is_prompt(event, data):
            prompt_seen = True
        elif event.action == TurnAction.BEGIN and is_by_person(event):
            turn_of_person = turn_of_person or event.subject
        elif event.action == TurnAction.END and is_by_person(event) and not prompt_seen:
            ended_by_person = ended_by_person or event.reason
    return SessionHistory(
        tuple(continuations),
        reminded,
        ended_by_person,
        initial_revision,
        in_session if start_seen else 0,
        frozenset(skipped),
        turn_of_person,
        tuple(_steps_to(events, ChecklistStatus.COMPLETED)),
        tuple(_steps_to(events, ChecklistStatus.IN_PROGRESS, also_new=True)),
        tuple(_steps_to(events, ChecklistStatus.COMPLETED, only_new=True)),
        tuple(step for status in ChecklistStatus for step in _steps_to(events, status, only_new=True)),
        tuple(_goal_keys(events)),
        *_untold_changes(events),
    )


def _is_prompt(event: Event, data: dict[str, Any]) -> bool:
    return PROMPT_KEY in data or (event.action == TurnAction.BEGIN and event.reason == NEW_PROMPT)


def _untold_changes(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """The changes of the lists, divided where a hook last answered with text; empty if no person changed one since.

    Changes from before the first agent are its lists, not changes of them.
    """
    untold: list[Event] = []
    for index in reversed(range(len(events))):
        if _is_of_list(events[index]):
            untold.append(events[index])
        elif _is_answered(events[index]):
            break
    else:
        index = 0
    if not any(is_by_person(event) for event in untold) or not any(is_by_agent(event) for event in events):
        return (), ()
    return tuple(event for event in events[:index] if _is_of_list(event)), tuple(reversed(untold))


def _is_of_list(event: Event) -> bool:
    return event.stream.startswith(_LIST_STREAMS)


def _is_answered(event: Event) -> bool:
    """The event of a hook that told the agent what people changed, or of a new session, which has no older list."""
    data = event.payload()
    kind = _message_kind(data)
    return _is_prompt(event, data) or kind == SESSION_STARTED or (kind == CONTINUATION and FINGERPRINT_KEY in data)


def _goal_keys(events: Sequence[Event]) -> Iterator[str]:
    for event in reversed(events):
        data = event.payload()
        if _is_prompt(event, data):
            return
        if GOAL_KEY in data:
            yield data[GOAL_KEY]


def _steps_to(
    events: Sequence[Event], status: ChecklistStatus, *, also_new: bool = False, only_new: bool = False
) -> Iterator[tuple[str, str]]:
    """The time and the item of each step to a status; by default without items that were added with it."""
    for event in events:
        steps = event.payload().get("steps")
        for step in steps if isinstance(steps, list) else ():
            before, is_new = step["from_status"], step["from_status"] is None
            if step["to_status"] == status != before and (also_new or is_new is only_new):
                yield event.at, step["id"]


def is_by_person(event: Event) -> bool:
    return event.actor.startswith(f"{Role.PERSON}:")


def is_by_agent(event: Event) -> bool:
    return not event.actor.startswith((f"{Role.PERSON}:", f"{Role.SYSTEM}:"))


def _message_kind(data: dict[str, Any]) -> str | None:
    message = data.get("message")
    return message.get("kind") if isinstance(message, dict) else None


@dataclass(frozen=True, slots=True)
class UncheckedItem:
    id: str
    title: str
    verification: Verification
    turn_id: str | None = None
    """The turn of a plan todo; None for an item of the checklist."""


@dataclass(frozen=True, slots=True)
class SessionState:
    turn: StoredTurn | None
    messages: tuple[Message, ...]
    request: Message | None
    """The user's last message in the turn."""
    lists: ListState
    checklist: Checklist
    todos: tuple[TurnTodo, ...]
    """The plan of the turn."""
    history: SessionHistory
    planned_by_person: bool
    """A person created the whole plan since the user's last message."""
    work: int = 0
    """How many different calls of the agent succeeded since the user's last message, as far as they are reported."""
    prompted_at: str = ""
    """When the user's last message was reported."""
    changed_at: str = ""
    """When a call last can have changed something, and checks were not tried again since."""

    @property
    def fingerprint(self) -> str:
        """Changes with what the lists contain, not with every write: an item that is completed and opened again
        because its check fails as before is no progress (C5)."""
        plan = [
            (todo.id, todo.title, todo.status, todo.outcome, todo.verification and failure_key(todo.verified()))
            for todo in self.todos
        ]
        items = [(item.id, item.content, item.status, failure_key(item.verification)) for item in self.checklist.items]
        return hashlib.sha256(repr((plan, items)).encode(errors="surrogateescape")).hexdigest()[:32]

    @property
    def unchecked(self) -> list[UncheckedItem]:
        """Completed items whose check has not been run since they were completed, or since the last change."""
        since, changed_at = self.prompted_at, self.changed_at
        return [
            *unchecked_todos(self.todos, since, changed_at),
            *unchecked_items(self.checklist.items, since, changed_at),
        ]

    @property
    def failed(self) -> list[UncheckedItem]:
        """Open items whose check has failed."""
        todos = [todo for todo in self.todos if todo.status in OPEN and todo.verification is not None]
        found = [UncheckedItem(todo.id, todo.title, todo.verified(), todo.turn_id) for todo in todos]
        items = [item for item in self.checklist.items if item.is_open]
        found += [UncheckedItem(item.id, item.content, item.verification) for item in items]
        return [item for item in found if item.verification.has_failed]

    @property
    def continuations(self) -> list[Message]:
        """Since the user's last message."""
        last = self.request.position if self.request else 0
        return [message for message in self.messages if message.kind == CONTINUATION and message.position > last]

    @property
    def fruitless_continuations(self) -> int:
        """The continuations since the user's last message, less one for each item completed since the first (C4)."""
        continuations = self.continuations
        if not continuations:
            return 0
        since = continuations[0].created_at
        todos = {
            todo.id for todo in self.todos if todo.status is PlanStatus.COMPLETED and (todo.completed_at or "") >= since
        }
        # A completed item may have left the list since.
        still_open = {item.id for item in self.checklist.items if item.is_open}
        items = {id for at, id in self.history.completions if at >= since and id not in still_open}
        return max(0, len(continuations) - len(todos) - len(items))

    @property
    def has_open_plan(self) -> bool:
        listed = {item.id for item in self.checklist.items}
        return any(item.id not in listed for item in self.lists.open)

    @property
    def is_earlier_list(self) -> bool:
        """Everything open existed before the host session started."""
        return self.history.initial_revision == self.checklist.revision and not self.has_open_plan

    @property
    def is_untouched(self) -> bool:
        """The agent has not changed its checklist since the user's last message, and has no plan."""
        changed_at = self.checklist.updated_at
        if self.request is None or changed_at is None or self.has_open_plan:
            return False
        return changed_at < self.request.created_at

    @property
    def is_prepared(self) -> bool:
        """A person planned the turn, and this is the user's first message about it."""
        begun_by_person = self.history.turn_of_person == (self.turn.id if self.turn else "")
        if begun_by_person and not self.continuations and not self.request:
            return True
        return self.has_open_plan and self.planned_by_person

    @property
    def is_owned_by_own_agent(self) -> bool:
        owner = self.turn.owner if self.turn else None
        return owner is not None and is_running(owner) is not False


def unchecked_todos(todos: Sequence[TurnTodo], since: str = "", changed_at: str = "") -> Iterator[UncheckedItem]:
    for todo in todos:
        # Most todos have no verification to decode.
        if todo.status is PlanStatus.COMPLETED and todo.verification is not None:
            verification = todo.verified()
            if verification.needs_check or verification.is_outdated(since, changed_at):
                yield UncheckedItem(todo.id, todo.title, verification, todo.turn_id)


def unchecked_items(items: Sequence[ChecklistItem], since: str = "", changed_at: str = "") -> Iterator[UncheckedItem]:
    for item in items:
        verification = item.verification
        if item.status is ChecklistStatus.COMPLETED and (
            verification.needs_check or verification.is_outdated(since, changed_at)
        ):
            yield UncheckedItem(item.id, item.content, item.verification)
