"""Entries into the plan of the open turn, in one transaction: they are made, and then what had ended or was begun takes
the steps that the lifecycle has for it. Whoever ends us in between finds nothing of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem, Loss
from punchlist.import_export.targets import REASON, ExistingItems, ImportedItem, ids_by_title, limit_in_progress
from punchlist.kernel.text import visible
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.plan import condition_input, condition_repository
from punchlist.plan import validation as plan_validation
from punchlist.plan.condition_input import normalized_title
from punchlist.plan.lifecycle import PLAN, ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import NewCondition, NewTodo, TurnTodo
from punchlist.plan.service import Plans
from punchlist.plan.transitions import apply_change, lock_and_read_titles, new_conditions
from punchlist.storage.store import Store, Transaction


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    """At most so many things to wait for, and an outcome where something has come out."""
    kept, cut, unended = [], 0, 0
    for entry in entries:
        most = max(0, condition_input.MAX_CONDITIONS - len(entry.waits))
        fewer = replace(
            entry,
            blocked_by=entry.blocked_by[:most],
            waits=entry.waits[: condition_input.MAX_CONDITIONS],
            resources=entry.resources[: condition_input.MAX_CONDITIONS],
        )
        cut += fewer != entry
        if entry.status in OPEN and entry.outcome:
            unended += 1
            fewer = replace(fewer, outcome="")
        kept.append(fewer)
    lost = [
        Loss(f"more than {condition_input.MAX_CONDITIONS} things to wait for or to claim", cut),
        Loss("outcome (it has not ended)", unended),
    ]
    return kept, [one for one in lost if one.count]


class PlanTarget:
    name = "plan"

    def __init__(self, store: Store, scope: Scope, *, owners: bool) -> None:
        """`owners`: whoever has an item is one of our agents."""
        self._store = store
        self._plans = Plans(store)
        self._conversations = Conversations(store)
        self._scope = scope
        self._todos = self._there()
        held = {"id", "title", "details", "status", "blocked_by", "acceptance", "outcome", "waits", "resources"}
        self.shape = FormatLimits(
            "the plan",
            frozenset(held | {"owner"} if owners else held),
            states={TodoStatus.BACKLOG: TodoStatus.PENDING},
            trim=_trim,
        )

    def _there(self) -> Sequence[TurnTodo]:
        turn = self._conversations.current_turn(self._scope.conversation_id)
        return self._plans.list(self._turn(turn.id), frozenset(PlanStatus)).items if turn else []

    def _turn(self, turn_id: str) -> TurnScope:
        return TurnScope(self._scope.conversation_id, self._scope.actor, turn_id)

    def there(self) -> ExistingItems:
        return ExistingItems(
            {one.id: one.id for one in self._todos}, ids_by_title([(one.id, one.title) for one in self._todos])
        )

    def settled(self, entries: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        return limit_in_progress(entries, any(todo.status is PlanStatus.IN_PROGRESS for todo in self._todos))

    def check(self, entries: Sequence[ExchangeItem]) -> None:
        there, more = len(self._todos), len(entries)
        if there + more > plan_validation.MAX_PLAN:
            raise InvalidInput(
                f"A plan holds {plan_validation.MAX_PLAN:,} todos; this one has {there:,}, "
                f"and {more:,} more were to be added. Nothing was imported."
            )
        self._new(entries)

    def _new(self, entries: Sequence[ExchangeItem]) -> list[NewTodo]:
        raw = [
            {
                "title": entry.title,
                "context": entry.details,
                "completionCriteria": entry.acceptance,
                "agentType": entry.owner or None,
                "blockedBy": [{kind: subject} for kind, subject in entry.waits],
                "resources": list(entry.resources),
            }
            for entry in entries
        ]
        most = plan_validation.MAX_BATCH
        return [new for at in range(0, len(raw), most) for new in plan_validation.parse_items(raw[at : at + most])]

    def put(self, entries: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        new, later = self._linked(entries, known)
        with self._store.write() as tx:
            scope = self._turn(self._conversations.ensure_turn(tx, self._scope, reason=REASON).id)
            self._check_unchanged(tx, scope)
            plans = Plans(_Within(self._store, tx))
            created = plans.create(scope, new, reason=REASON)
            todos, remarks = list(created.todos), list(created.conflicts)
            ids = {entry.id: todo.id for entry, todo in zip(entries, todos, strict=True)}
            for index, others in later.items():
                needs = [NewCondition(ConditionKind.TODO, ids[other]) for other in others]
                todos[index] = _waiting(tx, scope, todos[index], needs)
            todos = [_ended(tx, scope, todo, entry) for entry, todo in zip(entries, todos, strict=True)]
            # After all that had ended has: nothing waits for it any more.
            for index, entry in enumerate(entries):
                if entry.status is TodoStatus.IN_PROGRESS:
                    try:
                        todos[index] = plans.start(scope, todos[index].id, reason=REASON)
                    except IllegalTransition:
                        remarks.append(f"“{visible(entry.title)}” was in progress and is pending: it waits")
        return [ImportedItem(todo.id, todo.title, todo.status) for todo in todos], remarks

    def _linked(
        self, entries: Sequence[ExchangeItem], known: Mapping[str, str]
    ) -> tuple[list[NewTodo], dict[int, list[str]]]:
        """New todos that name what they wait for; and, by place, the ids of what they cannot name yet."""
        titles = Counter(normalized_title(entry.title) for entry in entries)
        by_id = {entry.id: entry for entry in entries if entry.id}
        new: list[NewTodo] = []
        later: dict[int, list[str]] = {}
        for index, (entry, todo) in enumerate(zip(entries, self._new(entries), strict=True)):
            said: list[NewCondition] = []
            for other in entry.blocked_by:
                if other in known:
                    said.append(NewCondition(ConditionKind.TODO, known[other]))
                elif other in by_id and titles[normalized_title(by_id[other].title)] == 1:
                    said.append(NewCondition(ConditionKind.TODO, by_id[other].title))
                elif other in by_id:
                    # Only its id tells it from others of its title, and it has none yet.
                    later.setdefault(index, []).append(other)
            new.append(replace(todo, blocked_by=(*todo.blocked_by, *said)))
        return new, later

    def _check_unchanged(self, tx: Transaction, scope: TurnScope) -> None:
        """What is new was decided by what was there."""
        if {row[:2] for row in lock_and_read_titles(tx, scope)} != {
            (todo.id, todo.status.value) for todo in self._todos
        }:
            raise Conflict("The plan was changed by somebody else meanwhile. Nothing was imported; try again.")


class _Within(Store):
    """The store inside of a transaction: all that a service does with it is part of that one."""

    def __init__(self, store: Store, tx: Transaction) -> None:
        super().__init__(store.database, store.clock)
        self._tx = tx

    def write(self) -> AbstractContextManager[Transaction]:
        return nullcontext(self._tx)

    read = write


def _waiting(tx: Transaction, scope: TurnScope, todo: TurnTodo, needs: Sequence[NewCondition]) -> TurnTodo:
    conditions = new_conditions(todo, needs, tx.now())
    condition_repository.add(tx, conditions)
    status = PLAN.advance(todo.status, PlanAction.WAIT, scope.actor.role)
    told = {"conditions": [one.event_data() for one in conditions]}
    return apply_change(tx, scope, PlanAction.WAIT, todo, REASON, told, status=status, started_at=None)


def _ended(tx: Transaction, scope: TurnScope, todo: TurnTodo, entry: ExchangeItem) -> TurnTodo:
    """A todo that had ended elsewhere ends here."""
    if entry.status in OPEN:
        return todo
    action = PlanAction.COMPLETE if entry.status is TodoStatus.COMPLETED else PlanAction.CANCEL
    status = PLAN.advance(todo.status, action, scope.actor.role)
    outcome = entry.outcome or f"Imported as {entry.status}."
    return apply_change(tx, scope, action, todo, outcome, status=status, outcome=outcome, completed_at=tx.now())
