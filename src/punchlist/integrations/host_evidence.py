"""Evidence for the items of third-party agents: the calls that their hooks reported while an item was worked on (V1).

As for our own agents, these are the calls since the item was started, or since another item was completed. A completed
item without any is questioned once, and then only claimed. Without hooks, nothing is known and nothing is questioned.
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
from punchlist.verification.model import EvidenceCall, Mark, Verification, evidence_call


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """A completed item that nothing supports yet."""

    id: str
    title: str
    completed_at: str
    since: str
    """The work on it began then."""
    verification: Verification
    turn_id: str | None = None
    """The turn of a plan todo; None for an item of the checklist."""

    def calls_for(self, calls: Sequence[ReportedCall]) -> list[EvidenceCall]:
        return [
            evidence_call(call.tool, call.summary, "", call.changed)
            for call in calls
            if self.since <= call.at <= self.completed_at
        ]


def claimed_items(state: SessionState) -> list[ClaimedItem]:
    """The completed items that have no evidence and were not accepted."""
    return [*_claimed_todos(state), *_claimed_checklist_items(state)]


class HostEvidence:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._plans = Plans(store)
        self._checklists = Checklists(store, conversations)

    def attach(self, scope: Scope, state: SessionState, journal: ReportedCalls) -> list[ClaimedItem]:
        """Keep the evidence with each item that has any. Returns the items that have none.

        Items that were completed before calls were reported are left out: their work was invisible.
        """
        unproven: list[ClaimedItem] = []
        for item in claimed_items(state):
            if not journal.since or item.completed_at < journal.since:
                continue
            if calls := item.calls_for(journal.calls):
                self._store(scope, item, item.verification.with_evidence(calls))
            else:
                unproven.append(item)
        return unproven

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


def _claimed_todos(state: SessionState) -> Iterator[ClaimedItem]:
    ends = [todo.completed_at for todo in state.todos if todo.completed_at]
    for todo in state.todos:
        if todo.status is not PlanStatus.COMPLETED or todo.completed_at is None:
            continue
        verification = todo.verified()
        if _is_unsupported(verification):
            since = todo.started_at or _last_before(ends, todo.completed_at)
            yield ClaimedItem(todo.id, todo.title, todo.completed_at, since, verification, todo.turn_id)


def _claimed_checklist_items(state: SessionState) -> Iterator[ClaimedItem]:
    starts, completions = state.history.starts, [*state.history.completions, *state.history.added_completed]
    ends = [at for at, _ in completions]
    for item in state.checklist.items:
        completed = max((at for at, id in completions if id == item.id), default="")
        if item.status is not ChecklistStatus.COMPLETED or not completed or not _is_unsupported(item.verification):
            continue
        started = max((at for at, id in starts if id == item.id and at < completed), default="")
        since = started or _last_before(ends, completed)
        yield ClaimedItem(item.id, item.content, completed, since, item.verification)


def _is_unsupported(verification: Verification) -> bool:
    return not verification.evidence and verification.mark is not Mark.ACCEPTED


def _last_before(times: Sequence[str], moment: str) -> str:
    return max((at for at in times if at < moment), default="")
