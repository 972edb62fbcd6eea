"""Plan and checklist of a session as one numbered list, and changes to it by number.

Numbers are derived from the event log: every item that a session ever had is counted in the order of creation, so a
number keeps its meaning and is not given to another item, also after `undo`, after the item was removed, and in later
turns. The numbers need no table of their own and cost the writers of the lists nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired, TypedDict

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.render import item_label
from punchlist.checklist.repository import checklist_stream, find_checklist
from punchlist.conversations.model import Scope, StoredTurn, TurnScope
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.host_sessions import HostSessions
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role
from punchlist.kernel.references import matching_parts
from punchlist.kernel.text import excerpt, line_problem
from punchlist.storage import event_log
from punchlist.verification.model import NO_VERIFICATION, Mark, Verification, verification_json
from punchlist.views import repository

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.checklist.model import Checklist
    from punchlist.claims.model import Claim
    from punchlist.plan.model import Plan
    from punchlist.storage.store import Transaction

ListName = Literal["plan", "checklist"]
OPEN: Final = ("pending", "in_progress", "dropped")
MAX_TITLE_LENGTH: Final = 500
DEFAULT_OUTCOME: Final = "Marked as done by a person."
DEFAULT_REASON: Final = "Cancelled by a person."


class TodoSummary(TypedDict):
    total: int
    pending: int
    inProgress: int
    completed: int
    cancelled: int
    dropped: NotRequired[int]


@dataclass(frozen=True, slots=True)
class NumberedTodo:
    number: int
    id: str
    list: ListName
    title: str
    status: str
    label: str
    """The title, or for a running checklist item its active form."""
    waits_for: tuple[str, ...] = ()
    outcome: str | None = None
    claim: Claim | None = None
    reason: str = ""
    """Why a checklist item was cancelled."""
    verification: Verification = NO_VERIFICATION

    @property
    def mark(self) -> Mark | None:
        """How far the completion can be relied on; None if the item is not completed."""
        return self.verification.mark if self.status == "completed" else None

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    def as_json(self) -> dict[str, Any]:
        optional = {
            "waitsFor": list(self.waits_for),
            "outcome": self.outcome,
            "reason": self.reason,
            **verification_json(self.verification, completed=self.mark is not None),
            "claimedBy": self.claim and self.claim.holder,
            "claimedUntil": self.claim and self.claim.lease_until,
        }
        return {
            **camel_json(self, "number", "id", "list", "title", "status"),
            **{name: value for name, value in optional.items() if value},
        }


@dataclass(frozen=True, slots=True)
class TodoList:
    """The lists of a session. `turn` is the turn of the plan: the open one, else the last one."""

    session: str
    items: Sequence[NumberedTodo] = ()
    turn: StoredTurn | None = None

    @property
    def summary(self) -> TodoSummary:
        counts = dict.fromkeys(("pending", "in_progress", "completed", "cancelled"), 0)
        for item in self.items:
            counts[item.status] = counts.get(item.status, 0) + 1
        summary: TodoSummary = {
            "total": len(self.items),
            "pending": counts["pending"],
            "inProgress": counts["in_progress"],
            "completed": counts["completed"],
            "cancelled": counts["cancelled"],
        }
        if dropped := counts.get("dropped"):
            summary["dropped"] = dropped
        return summary

    @property
    def progress(self) -> tuple[int, int]:
        """Completed items, and all that count: cancelled and dropped ones do not. `list_progress` counts the same."""
        summary = self.summary
        return summary["completed"], summary["total"] - summary["cancelled"] - summary.get("dropped", 0)

    def as_json(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "items": [item.as_json() for item in self.items],
            "summary": self.summary,
        }

    @property
    def open_items(self) -> list[NumberedTodo]:
        return [item for item in self.items if item.is_open]

    def find(self, reference: str) -> NumberedTodo:
        """The item with this number or id, or with a part of its id that no other item has."""
        number = int(reference) if reference.isdecimal() and len(reference) < 10 else 0
        for item in self.items:
            if number == item.number or reference == item.id:
                return item
        if len(found := matching_parts([item.id for item in self.items], reference)) == 1:
            return next(item for item in self.items if item.id == found[0])
        known = ", ".join(str(item.number) for item in self.items[:20])
        hint = f"Numbers: {known}." if known else "The list is empty."
        raise NotFound(f"Session {excerpt(self.session)!r} has no todo {excerpt(reference)!r}. {hint}")


class SessionTodos:
    """Reads the lists of a session, and changes the list that an item belongs to.

    Services are built on first use: a session without a plan does not import the plan's modules.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def list(self, scope: Scope, turn_id: str | None = None) -> TodoList:
        """Both lists, the plan first. `turn_id` selects the plan of an earlier turn."""
        session = scope.conversation_id
        with self._services.store.read() as tx:
            turn = repository.last_turn(tx, session)
            checklist = find_checklist(tx, session)
            creations = repository.plan_creations(tx, session)
            numbers = _numbers(tx, session, creations)
        shown = turn_id or (turn.id if turn else None)
        items: list[NumberedTodo] = []
        if turn_id is not None or any(shown == of_turn for _, _, of_turn in creations):
            items += _plan_items(self._plan(scope, str(shown)), numbers)
        items += _checklist_items(checklist, numbers)
        return TodoList(session, items, turn)

    def add(
        self,
        scope: Scope,
        titles: Sequence[str],
        *,
        active_form: str | None = None,
        check: str | None = None,
        reason: str,
    ) -> None:
        """Add items to the list that the session's agent uses. `check` is the check of each of them."""
        for place, title in enumerate(titles, 1):
            _check_title(title, f"Title {place}" if len(titles) > 1 else "The title")
        lists = self.list(scope)
        turn = lists.turn if lists.turn and lists.turn.open else None
        if self._uses_plan(lists, turn):
            from punchlist.plan.validation import parse_items

            _refuse_active_form(active_form)
            turn = turn or self._services.conversations.open_turn(scope, reason=reason)
            items = parse_items([{"title": title, "check": check} for title in titles])
            self._services.plans.create(_turn_scope(scope, turn), items, reason=reason)
        else:
            self._services.checklists.add(scope, *titles, active_form=active_form, check=check, reason=reason)

    def _uses_plan(self, lists: TodoList, turn: StoredTurn | None) -> bool:
        """Whether the session's agent works on a plan.

        A third-party agent may be served one kind of list only. Otherwise it does if the open turn has plan items, or
        if an agent of Punchlist works on the turn and the session has no checklist.
        """
        if turn is None or turn.owner is None:
            served = HostSessions(self._services.settings, os.environ).offered_lists(lists.session)
            if served is not None:
                return served == "plan"
        names = {item.list for item in lists.items}
        return turn is not None and ("plan" in names or (turn.owner is not None and not names))

    def start(self, scope: Scope, reference: str, *, reason: str, fence: int | None = None) -> None:
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.advance(scope, item.id, ChecklistAction.START, reason=reason)
        else:
            self._services.plans.start(turn, item.id, reason=reason, fence=fence)

    def complete(
        self, scope: Scope, reference: str, outcome: str | None = None, *, reason: str, fence: int | None = None
    ) -> None:
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.advance(scope, item.id, ChecklistAction.COMPLETE, reason=outcome or reason)
        else:
            from punchlist.plan.validation import parse_outcome

            text = outcome if outcome is not None else _default(scope, DEFAULT_OUTCOME)
            self._services.plans.end(turn, item.id, parse_outcome(text), fence=fence)

    def reopen(self, scope: Scope, reference: str, *, reason: str) -> None:
        item, turn = self._find(scope, reference)
        if turn is not None:
            raise IllegalTransition(
                f"Todo {item.number} belongs to a plan; a plan todo that has ended stays ended. "
                "`undo` takes back a person's last change."
            )
        self._services.checklists.advance(scope, item.id, ChecklistAction.REOPEN, reason=reason)

    def cancel(self, scope: Scope, reference: str, *, reason: str | None = None) -> None:
        item, turn = self._find(scope, reference)
        reason = reason or _default(scope, DEFAULT_REASON)
        if turn is None:
            self._services.checklists.cancel(scope, item.id, reason, reason="todos cancel")
        else:
            from punchlist.plan.lifecycle import PlanAction
            from punchlist.plan.validation import parse_outcome

            self._services.plans.end(turn, item.id, parse_outcome(reason), PlanAction.CANCEL)

    def remove(self, scope: Scope, reference: str, *, reason: str) -> None:
        """Take an item off the checklist."""
        item, turn = self._find(scope, reference)
        if turn is not None:
            raise IllegalTransition(f"Todo {item.number} belongs to a plan, which keeps its todos. Cancel it instead.")
        self._services.checklists.remove(scope, item.id, reason=reason)

    def accept(self, scope: Scope, reference: str, *, reason: str) -> None:
        """Accept a completed item (V4)."""
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.accept(scope, item.id, reason=reason)
        else:
            self._services.plans.accept(turn, item.id, reason=reason)

    def set_check(self, scope: Scope, reference: str, command: str, *, reason: str) -> None:
        """Set or replace the check of an item (V2); an empty command removes it."""
        from punchlist.verification.validation import parse_command

        check = parse_command(command)
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.set_check(scope, item.id, check, reason=reason)
        else:
            self._services.plans.set_check(turn, item.id, check, reason=reason)

    def edit(self, scope: Scope, reference: str, title: str, *, active_form: str | None = None, reason: str) -> None:
        _check_title(title, "The title")
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.edit(scope, item.id, title, active_form=active_form, reason=reason)
        else:
            _refuse_active_form(active_form)
            self._services.plans.edit(turn, item.id, title, reason=reason)

    def move(self, scope: Scope, reference: str, position: int, *, reason: str) -> None:
        """Put an item at a position of its own list, counted from 1."""
        item, turn = self._find(scope, reference)
        if turn is None:
            self._services.checklists.move(scope, item.id, position, reason=reason)
        else:
            self._services.plans.move(turn, item.id, position, reason=reason)

    def clear(self, scope: Scope, *, reason: str) -> None:
        self._services.checklists.clear(scope, reason=reason)

    def undo(self, scope: Scope, *, reason: str) -> None:
        """Undo the last change of the checklist, or a person's last change of the open turn's plan if that is later."""
        session = scope.conversation_id
        with self._services.store.read() as tx:
            turn, checklist = repository.last_turn(tx, session), find_checklist(tx, session)
            stream = checklist_stream(session)
            # The change after the revision that `undo` restores.
            is_changed = checklist.items or checklist.undo_to
            event = event_log.at_version(tx, stream, checklist.undo_to + 1) if is_changed else None
            plans = {of_turn for _, _, of_turn in repository.plan_creations(tx, session)}
        has_plan = turn is not None and turn.id in plans
        if turn is not None and turn.open and has_plan:
            from punchlist.plan.undo import PlanUndo

            changes = PlanUndo(self._services.store)
            if changes.last_change(turn.id) > (event.seq if event else 0):
                changes.undo(_turn_scope(scope, turn), reason=reason)
                return
        if event is None:
            raise IllegalTransition(f"There is nothing to undo: {_nothing_to_undo(turn if has_plan else None)}.")
        self._services.checklists.undo(scope, reason=reason)

    def plan_scope(self, scope: Scope, reference: str) -> tuple[NumberedTodo, TurnScope]:
        """A plan item and its turn, for claims. Items of a checklist cannot be claimed."""
        item, turn = self._find(scope, reference)
        if turn is None:
            raise IllegalTransition(f"Todo {item.number} belongs to the checklist; only plan todos can be claimed.")
        return item, turn

    def _find(self, scope: Scope, reference: str) -> tuple[NumberedTodo, TurnScope | None]:
        lists = self.list(scope)
        item = lists.find(reference)
        if item.list == "checklist" or lists.turn is None:
            return item, None
        return item, _turn_scope(scope, lists.turn)

    def _plan(self, scope: Scope, turn_id: str) -> Plan:
        from punchlist.plan.lifecycle import PlanStatus

        return self._services.plans.list(TurnScope(scope.conversation_id, scope.actor, turn_id), frozenset(PlanStatus))


def _nothing_to_undo(turn: StoredTurn | None) -> str:
    """`turn` is that of the plan, if there is one."""
    if turn is None:
        return "the list has not been changed yet"
    if not turn.open:
        return "the plan of a turn that has ended stays as it is"
    return "no person has changed the plan of this turn"


def _check_title(title: str, name: str) -> None:
    if problem := line_problem(title, max_length=MAX_TITLE_LENGTH):
        raise InvalidInput(f"{name} {problem}.")


def _refuse_active_form(active_form: str | None) -> None:
    if active_form is not None:
        raise InvalidInput("--doing: only checklist items have a title for the time they run; this is a plan todo.")


def _default(scope: Scope, by_person: str) -> str:
    """What is recorded if a person says nothing. An agent has to say it, as in its tools."""
    if scope.actor.role is not Role.PERSON:
        raise InvalidInput("Say what was done (OUTCOME), or why it will not be done (--reason).")
    return by_person


def _turn_scope(scope: Scope, turn: StoredTurn) -> TurnScope:
    return TurnScope(scope.conversation_id, scope.actor, turn.id)


def _numbers(tx: Transaction, session: str, plan: Iterable[tuple[int, str, str]]) -> dict[str, int]:
    """The number of each item that the session ever had, by id."""
    created = [(seq, 0, id) for seq, id, _ in plan]
    for seq, data in repository.checklist_additions(tx, checklist_stream(session)):
        try:
            steps = json.loads(data)["steps"]
            created += [(seq, place, step["id"]) for place, step in enumerate(steps) if step["action"] == "add"]
        except (ValueError, TypeError, KeyError):
            # Not what Punchlist writes; `db check` reports it.
            continue
    numbers: dict[str, int] = {}
    for _, _, id in sorted(created):
        numbers.setdefault(id, len(numbers) + 1)
    return numbers


def _number(numbers: dict[str, int], id: str) -> int:
    # Without an event of its creation, which `db check` reports, an item comes after all others.
    return numbers.setdefault(id, len(numbers) + 1)


def _plan_items(plan: Plan, numbers: dict[str, int]) -> list[NumberedTodo]:
    return [
        NumberedTodo(
            _number(numbers, todo.id),
            todo.id,
            "plan",
            todo.title,
            todo.status.value,
            todo.title,
            tuple(plan.waits.get(todo.id, ())),
            todo.outcome,
            plan.claims.get(todo.id),
            verification=todo.verified(),
        )
        for todo in plan.items
    ]


def _checklist_items(checklist: Checklist, numbers: dict[str, int]) -> list[NumberedTodo]:
    return [
        NumberedTodo(
            _number(numbers, item.id),
            item.id,
            "checklist",
            item.content,
            item.status.value,
            item_label(item),
            reason=item.reason,
            verification=item.verification,
        )
        for item in checklist.items
    ]
