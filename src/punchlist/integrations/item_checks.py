"""Runs the checks of a session's completed items before its agent may stop (V2).

An item whose check fails is open again. A check that could not be run is kept as not run and does not hold the agent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.integrations.host_checks import MIN_SECONDS, HostChecks
from punchlist.integrations.session_state import UncheckedItem
from punchlist.kernel.events import SYSTEM
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.verification.model import Check, CheckOutcome, CheckResult


@dataclass(frozen=True, slots=True)
class CheckedItem:
    title: str
    check: Check
    result: CheckResult
    id: str = ""
    has_passed: bool = False
    """Its check passed earlier."""


class ItemChecks:
    def __init__(self, store: Store, conversations: Conversations, checks: HostChecks) -> None:
        self._plans = Plans(store)
        self._checklists = Checklists(store, conversations)
        self._checks = checks

    def run(
        self, scope: Scope, items: Sequence[UncheckedItem], deadline: float, *, keep_not_run: bool = True
    ) -> list[CheckedItem]:
        """Run the checks one after the other until `deadline` (of the monotonic clock), and store the results.

        Items for which no time is left are tried again at the next stop; without `keep_not_run`, so are those whose
        check could not be run. A check that has passed before and cannot be run again keeps its result.
        """
        done: list[CheckedItem] = []
        results: dict[Check, CheckResult] = {}
        for item in items:
            check = item.verification.check
            assert check is not None
            has_passed = not item.verification.needs_check
            if check not in results:
                left = deadline - time.monotonic()
                if left < MIN_SECONDS:
                    break
                results[check] = self._checks.run(check, left)
            result = results[check]
            if result.outcome is CheckOutcome.NOT_RUN and not keep_not_run:
                continue
            kept = has_passed and result.outcome is CheckOutcome.NOT_RUN
            if kept or self._store_result(scope, item, result):
                done.append(CheckedItem(item.title, check, result, item.id, has_passed))
        return done

    def _store_result(self, scope: Scope, item: UncheckedItem, result: CheckResult) -> bool:
        """False if the item was changed while its check ran: the next stop looks again."""
        failed = result.outcome is CheckOutcome.FAILED
        try:
            if item.turn_id is not None:
                of_turn = TurnScope(scope.conversation_id, SYSTEM, item.turn_id)
                (self._plans.reject if failed else self._plans.record_check)(of_turn, item.id, result)
            elif failed:
                self._checklists.reject(Scope(scope.conversation_id, SYSTEM), item.id, result)
            else:
                checked = replace(item.verification, result=result)
                self._checklists.verify(Scope(scope.conversation_id, SYSTEM), item.id, checked)
        except (Conflict, IllegalTransition, NotFound):
            return False
        return True
