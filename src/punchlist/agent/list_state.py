"""The lists of a turn as the loop sees them: what is open, and whether anything has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.checklist import render
from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import turn_stream
from punchlist.errors import StoreDamaged
from punchlist.kernel.text import one_line, visible, without_tags
from punchlist.kernel.token_estimate import clipped, weighted_length
from punchlist.plan import repository as plan_repository
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.plan.model import PlanSnapshot, TurnTodo, plan_stream
from punchlist.plan.person_changes import CHANGE_KIND
from punchlist.storage.store import Store, Transaction
from punchlist.verification.model import Verification

MAX_SHOWN = 30
"""Plan tasks shown to the model; `list_todo` returns the rest."""
MAX_CONTEXT_LENGTH = 2_000
"""Characters of the current item's context, and of its criteria."""
MAX_REPORT_LENGTH = 200
"""Characters of a worker's report, of a check and of its output shown with their item."""
MAX_TOLD = 5
"""Changes by people that the agent is told in each request."""
MAX_STATE_LENGTH = 23_600
"""Weighted length of the lists with the extra state: with a warning, that of a request is under 6,000 tokens."""
_LEFT_OUT = "… [left out: too long. list_todo has all items.]"


class ListItem(NamedTuple):
    """An item of either list, for display."""

    title: str
    status: str
    note: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class ListState:
    open: tuple[OpenItem, ...] = ()
    text: str = ""
    """The lists as shown to the model before each request (T11); empty if there are none."""
    version: object = None
    """Changes with every change of a list, and only then (C5)."""
    problems: tuple[str, ...] = ()
    """Descriptions of items that cannot be read and are skipped (C11)."""
    items: tuple[ListItem, ...] = ()
    """All items, ended ones included."""
    plan_text: str = ""
    """The part of `text` that shows the plan."""
    checklist: Checklist | None = None
    """The session's checklist; None if it was not read or is damaged."""
    turn_end_reason: str | None = None
    """Set if the turn has been ended from outside."""

    @property
    def fingerprint(self) -> str:
        """A short hash of the version, for storage."""
        return hashlib.sha256(repr(self.version).encode(errors="surrogateescape")).hexdigest()[:32]


class ReadableLists(Protocol):
    def read(self) -> ListState: ...


class TurnLists:
    """The plan of the turn and the checklist of its session, if the agent uses them."""

    def __init__(
        self,
        store: Store,
        scope: TurnScope,
        *,
        plan: bool,
        checklist: bool,
        extra_state: Callable[[], str] | None = None,
    ) -> None:
        self._extra_state = extra_state
        self._store = store
        self._scope = scope
        self._has_plan = plan
        self._has_checklist = checklist
        self._last: tuple[object, ListState] | None = None
        self._read_at: object | None = None
        self._waits = False
        self._streams = (
            plan_stream(scope.turn_id),
            checklist_repository.checklist_stream(scope.conversation_id),
            turn_stream(scope.turn_id),
        )

    def read(self) -> ListState:
        state = self._cached()
        if self._extra_state is None or not (extra := self._extra_state()):
            return state
        lists = _cut(state.text, MAX_STATE_LENGTH - weighted_length(extra) - 2)
        return replace(state, text="\n\n".join(part for part in (lists, without_tags(extra)) if part))

    def _cached(self) -> ListState:
        # Called before every model request; usually nothing has changed, and then no SQL runs.
        position = self._position()
        if self._last is not None and position is not None and position == self._read_at and not self._waits:
            return self._last[1]
        state = self._query()
        self._read_at = position
        return state

    def _position(self) -> object | None:
        """Unchanged as long as neither this process nor another has written to a list; None if that is unknown."""
        elsewhere = self._store.external_change_marker()
        return None if elsewhere is None else (elsewhere, *map(self._store.append_counts.get, self._streams))

    def _query(self) -> ListState:
        with self._store.read() as tx:
            rows = plan_repository.read_snapshot_rows(tx, self._scope) if self._has_plan else ()
            checklist, problems = self._checklist(tx)
            turn = conversation_repository.find_turn(tx, self._scope.turn_id)
            end_reason = turn.end_reason if turn is not None and not turn.open else None
            key = (rows, checklist.revision if checklist else problems, end_reason)
            self._waits = plan_repository.rows_have_conditions(rows)
            if self._last is not None and self._last[0] == key and not self._waits:
                return self._last[1]
            plan = plan_repository.take_snapshot(tx, self._scope, rows) if self._has_plan else PlanSnapshot([])
            told = self._told(tx) if plan.todos else ()
        state = replace(self._state(plan, checklist, problems, told), turn_end_reason=end_reason)
        self._last = (key, state)
        return state

    def _told(self, tx: Transaction) -> Sequence[str]:
        """The last messages about changes by people, oldest first."""
        found = conversation_repository.last_of_kind(tx, turn_id=self._scope.turn_id, kind=CHANGE_KIND, most=MAX_TOLD)
        return found[::-1]

    def _state(
        self, plan: PlanSnapshot, checklist: Checklist | None, problems: tuple[str, ...], told: Sequence[str]
    ) -> ListState:
        """`told`: what people changed on the plan (X9)."""
        items = checklist.items if checklist else ()
        plan_text = _plan_text(plan)
        changes = "\n".join(one_line(change, MAX_REPORT_LENGTH) for change in told)
        shown = [plan_text, changes, _checklist_text(checklist) if checklist and items else ""]
        return ListState(
            (*_open_tasks(plan), *_open_items(items)),
            without_tags("\n\n".join(part for part in shown if part)),
            (
                *((item.id, item.content, item.status, item.reason) for item in items),
                # What a check says is not a change of the list.
                *((todo.id, todo.status, todo.outcome) for todo in plan.todos),
            ),
            (*plan.problems, *problems),
            (*_plan_items(plan), *(ListItem(render.item_label(item), item.status, id=item.id) for item in items)),
            plan_text,
            checklist,
        )

    def _checklist(self, tx: Transaction) -> tuple[Checklist | None, tuple[str, ...]]:
        if not self._has_checklist:
            return None, ()
        try:
            return checklist_repository.find_checklist(tx, self._scope.conversation_id), ()
        except StoreDamaged as damage:
            return None, (str(damage),)


def _cut(text: str, room: int) -> str:
    """The lines that fit, and a note if there are more."""
    if weighted_length(text) <= room:
        return text
    kept = clipped(text, room - weighted_length(_LEFT_OUT) - 1).rpartition("\n")[0]
    return f"{kept}\n{_LEFT_OUT}"


def _open_tasks(plan: PlanSnapshot) -> list[OpenItem]:
    return [
        OpenItem(
            todo.id, todo.title, todo.status is PlanStatus.IN_PROGRESS, _waits(plan, todo), number=todo.priority + 1
        )
        for todo in plan.todos
        if todo.status in OPEN
    ]


def _waits(plan: PlanSnapshot, todo: TurnTodo) -> str | None:
    waits = plan.waits.get(todo.id)
    return "; ".join(waits) if waits else None


def _open_items(items: Sequence[ChecklistItem]) -> list[OpenItem]:
    return [
        OpenItem(
            item.id,
            item.content,
            in_progress=item.status is ChecklistStatus.IN_PROGRESS,
            list="checklist",
            dropped=item.status is ChecklistStatus.DROPPED,
        )
        for item in items
        if item.is_open
    ]


def _plan_items(plan: PlanSnapshot) -> list[ListItem]:
    notes = {id: f"waits for {'; '.join(waits)}" for id, waits in plan.waits.items()}
    return [ListItem(todo.title, todo.status, notes.get(todo.id, ""), todo.id) for todo in plan.todos]


def _plan_text(plan: PlanSnapshot) -> str:
    """The open items by number, the current one in full."""
    if not plan.todos:
        return ""
    left = [todo for todo in plan.todos if todo.status in OPEN]
    lines = [f"Plan: {len(plan.todos) - len(left)} of {len(plan.todos)} items ended."]
    current = next_item(_open_tasks(plan))
    for todo in left[:MAX_SHOWN]:
        mark = ">" if todo.status is PlanStatus.IN_PROGRESS else " "
        lines.append(f"{todo.priority + 1}. [{mark}] {visible(todo.title)}")
        if current is not None and current.id == todo.id:
            lines += [f"    {line}" for line in _in_full(todo)]
        if todo.outcome is not None:
            lines.append(f"    its worker has reported: {one_line(todo.outcome, MAX_REPORT_LENGTH)}")
        if waits := _waits(plan, todo):
            lines.append(f"    waits for {waits}")
        lines += [f"    {answer.description}" for answer in plan.answers.get(todo.id, ())]
    if len(left) > MAX_SHOWN:
        lines.append(f"… and {len(left) - MAX_SHOWN} more")
    return "\n".join(lines)


def _checklist_text(checklist: Checklist) -> str:
    """The list, and the check of the item that is next."""
    current = next_item(_open_items(checklist.items))
    checks = [
        line
        for item in checklist.items
        if current is not None and item.id == current.id
        for line in _check_lines(item.verification)
    ]
    shown = f"Checklist:\n{render.render_for_model(checklist, count_dropped=True)}"
    return f"{shown}\n\nThe next item has a {'; '.join(checks)}" if checks else shown


def _check_lines(verification: Verification) -> list[str]:
    """The check, and how earlier attempts failed."""
    check = verification.check
    described = [f"check: {one_line(check.description, MAX_REPORT_LENGTH)}"] if check is not None else []
    return [*described, *verification.failures]


def _in_full(todo: TurnTodo) -> list[str]:
    # Most todos have no verification to decode.
    lines = _check_lines(todo.verified()) if todo.verification is not None else []
    if todo.context:
        lines.append(f"context: {one_line(todo.context, MAX_CONTEXT_LENGTH)}")
    if todo.completion_criteria:
        lines.append(f"done when: {one_line(todo.completion_criteria, MAX_CONTEXT_LENGTH)}")
    return lines
