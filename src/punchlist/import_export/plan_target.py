"""Import into the plan of the open turn.

One transaction creates the todos, then ends those that had ended elsewhere and starts the one in progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition
from punchlist.import_export.format_limits import COMMON_FIELDS, FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.import_export.targets import (
    CHECK_LOST,
    REASON,
    ExistingItems,
    ImportedItem,
    import_transaction,
    keep_file_check,
)
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import visible
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.plan.lifecycle import ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import NewCondition, NewTodo, TurnTodo
from punchlist.plan.repository import lock_and_read_titles
from punchlist.plan.service import Plans, create_todos, end_todo, start_todo
from punchlist.plan.validation import MAX_BATCH, MAX_CONDITIONS, parse_items
from punchlist.storage.store import Store, Transaction


def _limit_conditions(item: ExchangeItem) -> ExchangeItem:
    return replace(
        item,
        blocked_by=item.blocked_by[: max(0, MAX_CONDITIONS - len(item.waits))],
        waits=item.waits[:MAX_CONDITIONS],
        resources=item.resources[:MAX_CONDITIONS],
    )


def _drop_open_outcome(item: ExchangeItem) -> ExchangeItem:
    return replace(item, outcome="") if item.status in OPEN else item


class PlanTarget:
    name = "plan"

    def __init__(self, store: Store, scope: Scope, *, owners: bool) -> None:
        """`owners`: the owners of the imported items are agents of this project."""
        self._store = store
        self._conversations = Conversations(store)
        self._scope = scope
        turn = self._conversations.current_turn(scope.conversation_id)
        self._todos = Plans(store).list(self._turn(turn.id), frozenset(PlanStatus)).items if turn else []
        fields = COMMON_FIELDS | {"blocked_by", "outcome", "waits", "resources", "check"}
        self.limits = FormatLimits(
            "the plan",
            fields | {"owner"} if owners else fields,
            states={TodoStatus.BACKLOG: TodoStatus.PENDING},
            trims={
                f"more than {MAX_CONDITIONS} conditions or resources": _limit_conditions,
                "outcome (the item has not ended)": _drop_open_outcome,
                CHECK_LOST: keep_file_check,
            },
        )

    def _turn(self, turn_id: str) -> TurnScope:
        return TurnScope(self._scope.conversation_id, self._scope.actor, turn_id)

    @property
    def busy(self) -> bool:
        return any(todo.status is PlanStatus.IN_PROGRESS for todo in self._todos)

    def existing(self) -> ExistingItems:
        return ExistingItems.create([(todo.id, todo.title) for todo in self._todos])

    def write(
        self, items: Sequence[ExchangeItem], known: Mapping[str, str], *, dry_run: bool = False
    ) -> tuple[list[ImportedItem], list[str]]:
        new = _with_ids(items, known)
        with import_transaction(self._store, dry_run=dry_run) as tx:
            scope = self._turn(self._conversations.ensure_turn(tx, self._scope, reason=REASON).id)
            self._check_unchanged(tx, scope)
            created = create_todos(tx, scope, new, REASON)
            todos, remarks = list(created.todos), list(created.conflicts)
            todos = [_end(tx, scope, todo, item) for item, todo in zip(items, todos, strict=True)]
            # Started last: ended todos do not block it any more.
            for index, item in enumerate(items):
                if item.status is TodoStatus.IN_PROGRESS:
                    try:
                        todos[index] = start_todo(tx, scope, todos[index], REASON)
                    except IllegalTransition:
                        remarks.append(f"“{visible(item.title)}” was in progress and is pending now, because it waits")
        return [ImportedItem(todo.id, todo.title, todo.status) for todo in todos], remarks

    def _check_unchanged(self, tx: Transaction, scope: TurnScope) -> None:
        before = {(todo.id, todo.status.value) for todo in self._todos}
        if {(row[0], row[1]) for row in lock_and_read_titles(tx, scope)} != before:
            raise Conflict("Another writer changed the plan during the import. Nothing was imported; try again.")


def _new_todos(items: Sequence[ExchangeItem]) -> list[NewTodo]:
    raw = [
        {
            "title": item.title,
            "context": item.details,
            "completionCriteria": item.acceptance,
            "agentType": item.owner or None,
            "blockedBy": [{kind: subject} for kind, subject in item.waits],
            "resources": list(item.resources),
            "check": item.check,
        }
        for item in items
    ]
    return [new for at in range(0, len(raw), MAX_BATCH) for new in parse_items(raw[at : at + MAX_BATCH])]


def _with_ids(items: Sequence[ExchangeItem], known: Mapping[str, str]) -> list[NewTodo]:
    """New todos with ids, so that they can wait for each other whatever their titles are."""
    ids = [new_id() for _ in items]
    by_source = {**{item.id: id for item, id in zip(items, ids, strict=True) if item.id}, **known}
    todos = []
    for item, id, todo in zip(items, ids, _new_todos(items), strict=True):
        others = [by_source[other] for other in item.blocked_by if other in by_source]
        dependencies = [NewCondition(ConditionKind.TODO, other) for other in others]
        todos.append(replace(todo, id=id, blocked_by=(*todo.blocked_by, *dependencies)))
    return todos


def _end(tx: Transaction, scope: TurnScope, todo: TurnTodo, item: ExchangeItem) -> TurnTodo:
    if item.status in OPEN:
        return todo
    action = PlanAction.COMPLETE if item.status is TodoStatus.COMPLETED else PlanAction.CANCEL
    outcome = item.outcome or f"Imported as {item.status}."
    return end_todo(tx, scope, todo, action, outcome, outcome=outcome)
