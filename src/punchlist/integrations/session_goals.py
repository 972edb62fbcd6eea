"""The goal of a session, for third-party agents: what a person accepts the work by (V3).

It is kept as a message of the conversation; the newest one counts, and an empty one clears it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, StoreDamaged
from punchlist.integrations import messages
from punchlist.integrations.host_checks import MIN_SECONDS, HostChecks
from punchlist.integrations.session_state import CONFIRMATION
from punchlist.kernel.text import block_problem
from punchlist.storage.store import Store
from punchlist.verification.goal import Goal, decode_goal
from punchlist.verification.model import Check, CheckOutcome, CheckResult
from punchlist.verification.output import stable_output

GOAL_KIND: Final = "session_goal"
MAX_CRITERIA_LENGTH: Final = 4_000
MAX_SAME: Final = 3
"""How often the agent is sent back for the same failures, per prompt."""
MAX_ALL: Final = 10
"""How often it is sent back for its goal at all, per prompt."""


class SessionGoals:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._store = store
        self._conversations = conversations

    def get(self, session: str) -> Goal | None:
        with self._store.read() as tx:
            found = conversation_repository.last_message_of_kind(tx, session, GOAL_KIND)
        if found is None or not found.content:
            return None
        try:
            return decode_goal(found.content)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreDamaged.not_as_written(f"The goal of session {session!r}") from None

    def set(self, scope: Scope, goal: Goal) -> None:
        if problem := block_problem(goal.criteria, max_length=MAX_CRITERIA_LENGTH, min_length=1):
            raise InvalidInput(f"criteria: {problem}")
        self._conversations.add_message(scope, MessageRole.SYSTEM, goal.encode(), kind=GOAL_KIND)

    def clear(self, scope: Scope) -> bool:
        """False if there is none."""
        if self.get(scope.conversation_id) is None:
            return False
        self._conversations.add_message(scope, MessageRole.SYSTEM, "", kind=GOAL_KIND)
        return True


@dataclass(frozen=True, slots=True)
class GoalChecked:
    """The results of a goal's checks, in their order. Checks for which no time was left are absent."""

    goal: Goal
    results: tuple[tuple[Check, CheckResult], ...]

    @property
    def failed(self) -> list[tuple[Check, CheckResult]]:
        return [(check, result) for check, result in self.results if result.outcome is CheckOutcome.FAILED]

    @property
    def not_run(self) -> list[str]:
        """Descriptions of the checks that could not be run."""
        ran = {check for check, result in self.results if result.outcome is not CheckOutcome.NOT_RUN}
        return [check.description for check in self.goal.checks if check not in ran]

    @property
    def key(self) -> str:
        """The same for the same failures; `CONFIRMATION` if nothing fails."""
        if not self.failed:
            return CONFIRMATION
        failures = [(check.description, stable_output(result.output)) for check, result in self.failed]
        return hashlib.sha256(repr(failures).encode(errors="surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class GoalDecision:
    prompt: str | None = None
    """What the agent is told; None lets it stop."""
    unmet: str = ""
    """Why the goal is not met, for the person, if the agent may stop nevertheless."""


def check_goal(goal: Goal, checks: HostChecks, deadline: float) -> GoalChecked:
    results: list[tuple[Check, CheckResult]] = []
    for check in goal.checks:
        left = deadline - time.monotonic()
        if left < MIN_SECONDS:
            break
        results.append((check, checks.run(check, left)))
    return GoalChecked(goal, tuple(results))


def decide_goal(checked: GoalChecked, earlier: Sequence[str]) -> GoalDecision:
    """What follows for an agent whose list is clear. Pure.

    `earlier` are the keys for which it was sent back since the last prompt.
    """
    if checked.failed:
        if earlier.count(checked.key) >= MAX_SAME:
            return GoalDecision(unmet=f"these checks fail as before: {messages.check_names(checked.failed)}")
        if len(earlier) >= MAX_ALL:
            return GoalDecision(
                unmet=f"the agent was sent back {MAX_ALL} times, and these checks fail: "
                f"{messages.check_names(checked.failed)}"
            )
        return GoalDecision(messages.goal_not_met(checked.goal.criteria, checked.failed))
    # The criteria beside the checks are for the agent to confirm, once.
    if CONFIRMATION not in earlier and len(earlier) < MAX_ALL:
        return GoalDecision(messages.confirm_goal(checked.goal.criteria))
    return GoalDecision()
