"""Evidence for the items of third-party agents: the calls that their hooks reported while an item was worked on (V1).

As for our own agents, these are the calls since the item was started, else since it was added and another item was
completed; one call proves one item. A completed item without any is questioned once, and then only claimed. Without
hooks, nothing is known and nothing is questioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.integrations.call_journal import ReportedCall, ReportedCalls
from punchlist.integrations.session_state import SessionState
from punchlist.kernel.events import SYSTEM
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.verification.model import Mark, Verification, evidence_call


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """A completed item, which the agent claims to have worked on."""

    id: str
    title: str
    completed_at: str
    since: str
    """The work on it began then."""
    verification: Verification
    turn_id: str | None = None
    """The turn of a plan todo; None for an item of the checklist."""

    @property
    def is_unsupported(self) -> bool:
        return not self.verification.evidence and self.verification.mark is not Mark.ACCEPTED

    def calls_in(self, calls: Sequence[ReportedCall]) -> list[int]:
        """The calls that were made while the item was worked on, by their numbers."""
        return [number for number, call in enumerate(calls) if self.since <= call.at <= self.completed_at]


def completed_items(state: SessionState) -> list[ClaimedItem]:
    """The completed items, in the order in which they were completed."""
    found = [*_completed_todos(state), *_completed_checklist_items(state)]
    return sorted(found, key=lambda item: item.completed_at)


def own_calls(items: Sequence[ClaimedItem], calls: Sequence[ReportedCall]) -> set[str]:
    """The ids of the items with a call of their own: one call proves one item."""
    spent: dict[int, str] = {}
    proven = set[str]()
    for item in items:
        # The same call twice is no more work than once for items that are completed together.
        keys = {calls[number].key for number, at in spent.items() if at == item.completed_at}
        free = (n for n in item.calls_in(calls) if n not in spent and calls[n].key not in keys)
        if (own := next(free, None)) is not None:
            spent[own] = item.completed_at
            proven.add(item.id)
    return proven


class HostEvidence:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._plans = Plans(store)
        self._checklists = Checklists(store, conversations)

    def attach(self, scope: Scope, state: SessionState, journal: ReportedCalls) -> list[ClaimedItem]:
        """Keep the evidence with each item that has any. Returns the items that have none.

        Items that were completed before calls were reported are left out: their work was invisible.
        """
        items = [item for item in completed_items(state) if journal.since and item.completed_at >= journal.since]
        proven = own_calls(items, journal.calls)
        for item in items:
            if item.is_unsupported and item.id in proven:
                made = [journal.calls[number] for number in item.calls_in(journal.calls)]
                evidence = [evidence_call(call.tool, call.summary, "", call.changed) for call in made]
                self._store(scope, item, item.verification.with_evidence(evidence))
        return [item for item in items if item.is_unsupported and item.id not in proven]

    def _store(self, scope: Scope, item: ClaimedItem, verification: Verification) -> None:
        try:
            if item.turn_id is not None:
                of_turn = TurnScope(scope.conversation_id, SYSTEM, item.turn_id)
                self._plans.record_evidence(of_turn, item.id, verification.evidence)
            else:
                of_session = Scope(scope.conversation_id, SYSTEM)
                self._checklists.verify(of_session, item.id, verification, reason="evidence")
        except (Conflict, IllegalTransition, NotFound):
            # The item was changed meanwhile; the next hook looks again.
            return


def _completed_todos(state: SessionState) -> Iterator[ClaimedItem]:
    ends = [todo.completed_at for todo in state.todos if todo.completed_at]
    for todo in state.todos:
        if todo.status is PlanStatus.COMPLETED and todo.completed_at is not None:
            since = todo.started_at or max(todo.created_at, _last_before(ends, todo.completed_at))
            yield ClaimedItem(todo.id, todo.title, todo.completed_at, since, todo.verified(), todo.turn_id)


def _completed_checklist_items(state: SessionState) -> Iterator[ClaimedItem]:
    history = state.history
    completions = [*history.completions, *history.added_completed]
    ends = [at for at, _ in completions]
    for item in state.checklist.items:
        completed = _last_of(item.id, completions)
        if item.status is ChecklistStatus.COMPLETED and completed:
            started = _last_of(item.id, [step for step in history.starts if step[0] < completed])
            since = started or max(_last_of(item.id, history.added), _last_before(ends, completed))
            yield ClaimedItem(item.id, item.content, completed, since, item.verification)


def _last_of(id: str, steps: Sequence[tuple[str, str]]) -> str:
    return max((at for at, each in steps if each == id), default="")


def _last_before(times: Sequence[str], moment: str) -> str:
    return max((at for at in times if at < moment), default="")
