"""Entries into the plan of the open turn: all made in one transaction, then what had ended or was begun is told one
by one, as the lifecycle has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from punchlist.errors import IllegalTransition, InvalidInput
from punchlist.exchange.entry import Entry, Loss
from punchlist.exchange.shapes import Shape
from punchlist.exchange.targets import REASON, Made, There, by_title, one_in_progress
from punchlist.kernel.text import visible
from punchlist.missions.lifecycle import OPEN, Status
from punchlist.plan import needs, rules
from punchlist.plan.lifecycle import Action, Kind
from punchlist.plan.lifecycle import Status as PlanStatus
from punchlist.plan.model import Need, NewTodo
from punchlist.plan.needs import same

if TYPE_CHECKING:
    from punchlist.conversations.model import Scope, TurnScope
    from punchlist.conversations.service import Conversations
    from punchlist.plan.model import TurnTodo
    from punchlist.plan.service import Plans


def _trim(entries: list[Entry]) -> tuple[list[Entry], list[Loss]]:
    """At most so many things to wait for, and an outcome where something has come out."""
    kept, cut, unended = [], 0, 0
    for entry in entries:
        most = max(0, needs.MOST - len(entry.waits))
        fewer = replace(
            entry,
            blocked_by=entry.blocked_by[:most],
            waits=entry.waits[: needs.MOST],
            resources=entry.resources[: needs.MOST],
        )
        cut += fewer != entry
        if entry.status in OPEN and entry.outcome:
            unended += 1
            fewer = replace(fewer, outcome="")
        kept.append(fewer)
    lost = [
        Loss(f"more than {needs.MOST} things to wait for or to claim", cut),
        Loss("outcome (it has not ended)", unended),
    ]
    return kept, [one for one in lost if one.count]


class PlanTarget:
    name = "plan"

    def __init__(self, plans: Plans, conversations: Conversations, scope: Scope, *, owners: bool) -> None:
        """`owners`: whoever has an item is one of our agents."""
        self._plans = plans
        self._conversations = conversations
        self._scope = scope
        self._todos = self._there()
        held = {"id", "title", "details", "status", "blocked_by", "acceptance", "outcome", "waits", "resources"}
        self.shape = Shape(
            "the plan",
            frozenset(held | {"owner"} if owners else held),
            states={Status.BACKLOG: Status.PENDING},
            trim=_trim,
        )

    def _there(self) -> Sequence[TurnTodo]:
        turn = self._conversations.current_turn(self._scope.conversation_id)
        return self._plans.list(self._turn(turn.id), frozenset(PlanStatus)).items if turn else []

    def _turn(self, turn_id: str) -> TurnScope:
        from punchlist.conversations.model import TurnScope

        return TurnScope(self._scope.conversation_id, self._scope.actor, turn_id)

    def there(self) -> There:
        return There({one.id: one.id for one in self._todos}, by_title([(one.id, one.title) for one in self._todos]))

    def settled(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
        return one_in_progress(entries, any(todo.status is PlanStatus.IN_PROGRESS for todo in self._todos))

    def check(self, entries: Sequence[Entry]) -> None:
        there, more = len(self._todos), len(entries)
        if there + more > rules.MAX_PLAN:
            raise InvalidInput(
                f"A plan holds {rules.MAX_PLAN:,} todos; this one has {there:,}, and {more:,} more were to be "
                "added. Nothing was imported."
            )
        self._new(entries)

    def _new(self, entries: Sequence[Entry]) -> list[NewTodo]:
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
        most = rules.MAX_BATCH
        return [new for at in range(0, len(raw), most) for new in rules.parse_items(raw[at : at + most])]

    def put(self, entries: Sequence[Entry], known: Mapping[str, str]) -> tuple[list[Made], list[str]]:
        scope = self._turn(self._conversations.open_turn(self._scope, reason=REASON).id)
        titles = Counter(same(entry.title) for entry in entries)
        by_id = {entry.id: entry for entry in entries if entry.id}
        new, later = [], []
        for index, (entry, todo) in enumerate(zip(entries, self._new(entries), strict=True)):
            said: list[Need] = []
            for other in entry.blocked_by:
                if other in known:
                    said.append(Need(Kind.TODO, known[other]))
                elif other in by_id and titles[same(by_id[other].title)] == 1:
                    said.append(Need(Kind.TODO, by_id[other].title))
                elif other in by_id:
                    # Only its id tells it from others of its title, and it has none yet.
                    later.append((index, other))
            new.append(replace(todo, blocked_by=(*todo.blocked_by, *said)))
        created = self._plans.create(scope, new, reason=REASON)
        ids = {entry.id: todo.id for entry, todo in zip(entries, created.todos, strict=True)}
        for index, other in later:
            self._plans.wait(scope, created.todos[index].id, Need(Kind.TODO, ids[other]), reason=REASON)
        remarks = list(created.conflicts)
        made = [self._moved(scope, todo, entry) for entry, todo in zip(entries, created.todos, strict=True)]
        return self._begun(scope, entries, made, remarks), remarks

    def _moved(self, scope: TurnScope, todo: TurnTodo, entry: Entry) -> Made:
        """A todo that had ended elsewhere ends here."""
        if entry.status in OPEN:
            return Made(todo.id, todo.title, todo.status)
        action = Action.COMPLETE if entry.status is Status.COMPLETED else Action.CANCEL
        ended = self._plans.end(scope, todo.id, entry.outcome or f"Imported as {entry.status}.", action)
        return Made(todo.id, todo.title, ended.todo.status)

    def _begun(self, scope: TurnScope, entries: Sequence[Entry], made: list[Made], remarks: list[str]) -> list[Made]:
        """What was being worked on is, unless it waits: after all that had ended has."""
        for index, entry in enumerate(entries):
            if entry.status is Status.IN_PROGRESS:
                try:
                    made[index] = replace(
                        made[index], status=self._plans.start(scope, made[index].id, reason=REASON).status
                    )
                except IllegalTransition:
                    remarks.append(f"“{visible(entry.title)}” was in progress and is pending: it waits")
        return made
