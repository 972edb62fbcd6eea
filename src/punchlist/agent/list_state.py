"""The lists of a turn, as the loop sees them: what is open, and whether anything has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from punchlist.agent.continuation import OpenItem
from punchlist.checklist import render
from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import turn_stream
from punchlist.errors import StoreDamaged
from punchlist.kernel.text import quoted, visible
from punchlist.plan import snapshot as plan_snapshot
from punchlist.plan.lifecycle import OPEN, ConditionKind, PlanStatus
from punchlist.plan.model import ConditionAnswer, PlanSnapshot, TurnTodo, plan_stream
from punchlist.storage.store import Store, Transaction

MAX_SHOWN = 30
"""Items that a model is shown at most: it can ask for the rest."""


class ListItem(NamedTuple):
    """An item of either list, as people see it."""

    title: str
    status: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ListState:
    """The lists at one moment."""

    open: tuple[OpenItem, ...] = ()
    text: str = ""
    """As the model is told of them before each request (T11); empty when there are none."""
    version: object = None
    """Differs after every change of a list, and only then (C5)."""
    problems: tuple[str, ...] = ()
    """Items that cannot be read, and are left out (C11)."""
    items: tuple[ListItem, ...] = ()
    """All of them, also those that have ended, for people to watch."""
    plan_shown: str = ""
    """The part of `shown` that is the plan."""
    checklist: Checklist | None = None
    """The session's checklist; None if it was not read or is damaged."""
    turn_end_reason: str | None = None
    """Why the turn has ended, when somebody has ended it."""

    @property
    def fingerprint(self) -> str:
        """The mark, short enough to be kept."""
        return hashlib.sha256(repr(self.version).encode(errors="surrogateescape")).hexdigest()[:32]


class ListSource(Protocol):
    def read(self) -> ListState: ...


class TurnLists:
    """The plan of the turn and the checklist of its session, as far as the agent has them."""

    def __init__(
        self,
        store: Store,
        scope: TurnScope,
        *,
        plan: bool,
        checklist: bool,
        since: str | None = None,
        remark: Callable[[], str] | None = None,
    ) -> None:
        """A checklist counts as soon as it was changed after `since`, or after the first look where there is none: what
        somebody left there before the turn is shown to the model, but is not what the turn was begun for."""
        self._since = since
        self._left: int | None = None
        """The revision of the checklist that was there before the turn; -1 when it was written in it."""
        self._remark = remark
        self._store = store
        self._scope = scope
        self._has_plan = plan
        self._has_checklist = checklist
        self._seen: tuple[object, ListState] | None = None
        self._looked: object | None = None
        self._waits = False
        self._streams = (
            plan_stream(scope.turn_id),
            checklist_repository.checklist_stream(scope.conversation_id),
            turn_stream(scope.turn_id),
        )

    def read(self) -> ListState:
        view = self._lists()
        if self._remark is None or not (remark := self._remark()):
            return view
        return replace(view, text="\n\n".join(part for part in (view.text, remark) if part))

    def _lists(self) -> ListState:
        # It comes before every request, and mostly nothing has happened to the lists.
        fresh = self._fresh()
        if self._seen is not None and fresh is not None and fresh == self._looked and not self._waits:
            return self._seen[1]
        view = self._look()
        self._looked = fresh
        return view

    def _fresh(self) -> object | None:
        """The same as long as nobody can have changed a list: neither this process, nor another."""
        elsewhere = self._store.external_change_marker()
        return None if elsewhere is None else (elsewhere, *map(self._store.append_counts.get, self._streams))

    def _look(self) -> ListState:
        with self._store.read() as tx:
            rows = plan_snapshot.read_snapshot_rows(tx, self._scope) if self._has_plan else ()
            checklist, problems = self._checklist(tx)
            turn = conversation_repository.find_turn(tx, self._scope.turn_id)
            over = turn.end_reason if turn is not None and not turn.open else None
            if self._left is None and checklist is not None:
                written = self._since is not None and (checklist.updated_at or "") >= self._since
                self._left = -1 if written else checklist.revision
            mark = (rows, checklist.revision if checklist else problems, over)
            self._waits = plan_snapshot.has_conditions(rows)
            if self._seen is not None and self._seen[0] == mark and not self._waits:
                return self._seen[1]
            plan = plan_snapshot.take_snapshot(tx, self._scope, rows) if self._has_plan else PlanSnapshot([])
        view = replace(self._view(plan, checklist, problems), turn_end_reason=over)
        self._seen = (mark, view)
        return view

    def _view(self, plan: PlanSnapshot, checklist: Checklist | None, problems: tuple[str, ...]) -> ListState:
        items = checklist.items if checklist else ()
        own = items if checklist and checklist.revision != self._left else ()
        plan_shown = _plan_text(plan)
        shown = [plan_shown, f"Checklist:\n{render.render_for_model(checklist)}" if checklist and items else ""]
        return ListState(
            (*_open_tasks(plan), *_open_items(own)),
            "\n\n".join(part for part in shown if part),
            (checklist.revision if checklist else 0, *((todo.id, todo.status) for todo in plan.todos)),
            (*plan.problems, *problems),
            (*_tasks(plan), *(ListItem(render.item_label(item), item.status) for item in own)),
            plan_shown,
            checklist,
        )

    def _checklist(self, tx: Transaction) -> tuple[Checklist | None, tuple[str, ...]]:
        if not self._has_checklist:
            return None, ()
        try:
            return checklist_repository.find_checklist(tx, self._scope.conversation_id), ()
        except StoreDamaged as damage:
            return None, (str(damage),)


def _open_tasks(plan: PlanSnapshot) -> list[OpenItem]:
    return [
        OpenItem(todo.id, todo.title, todo.status is PlanStatus.IN_PROGRESS, _waits(plan, todo))
        for todo in plan.todos
        if todo.status in OPEN
    ]


def _waits(plan: PlanSnapshot, todo: TurnTodo) -> str | None:
    waits = plan.waits.get(todo.id)
    return "; ".join(waits) if waits else None


def _open_items(items: Sequence[ChecklistItem]) -> list[OpenItem]:
    return [
        OpenItem(item.id, item.content, in_progress=item.status is ChecklistStatus.IN_PROGRESS)
        for item in items
        if item.status is not ChecklistStatus.COMPLETED
    ]


def _tasks(plan: PlanSnapshot) -> list[ListItem]:
    notes = {id: f"waits for {'; '.join(waits)}" for id, waits in plan.waits.items()}
    return [ListItem(todo.title, todo.status, notes.get(todo.id, "")) for todo in plan.todos]


def _answer(answer: ConditionAnswer) -> str:
    what = "the answer to" if answer.kind is ConditionKind.PERSON else "of"
    return f"{what} {quoted(answer.subject)} is: {visible(answer.text)}"


def _plan_text(plan: PlanSnapshot) -> str:
    if not plan.todos:
        return ""
    left = [todo for todo in plan.todos if todo.status in OPEN]
    lines = [f"Plan: {len(plan.todos) - len(left)} of {len(plan.todos)} tasks ended."]
    for todo in left[:MAX_SHOWN]:
        mark = ">" if todo.status is PlanStatus.IN_PROGRESS else " "
        lines.append(f"[{mark}] {visible(todo.title)} (id {todo.id})")
        if waits := _waits(plan, todo):
            lines.append(f"    waits for {waits}")
        lines += [f"    {_answer(answer)}" for answer in plan.answers.get(todo.id, ())]
    if len(left) > MAX_SHOWN:
        lines.append(f"… and {len(left) - MAX_SHOWN} more")
    return "\n".join(lines)
