"""The state of one run of a framework's agent: its counters and its view of the lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from punchlist.agent.continuation import Limits, Reason, Situation, TurnCounters
from punchlist.agent.list_state import ListState


@dataclass(frozen=True, slots=True)
class AdapterRun:
    """Only text and numbers, so that a framework can store it with its own state."""

    session: str
    turn_id: str
    since: str
    """When the turn started; checklist items from before do not keep the run going."""
    started: float
    """When the run started, as a Unix time."""
    first: bool = False
    """The session had no turn before."""
    iterations: int = 0
    allowed: int = 0
    continuations: int = 0
    completed: int = 0
    """Completed items when the lists were last read."""
    given_back: int = 0
    """Continuations that completed items gave back (C4)."""
    unchanged: int = 0
    tokens: int = 0
    fingerprint: str = ""
    """The fingerprint of the lists when last read."""
    changed_at: int = 0
    """The iteration in which a list last changed."""
    continued_at: str | None = None
    """The fingerprint of the lists at the last continuation; None once the model has stopped again."""
    reminded_at: str | None = None
    reason: str | None = None
    """Why the run ended (C13); None while it runs."""
    why: str = ""

    def count_reply(self, tokens: int = 0, replies: int = 1) -> Self:
        return replace(self, iterations=self.iterations + replies, tokens=self.tokens + tokens)

    def with_lists(self, lists: ListState) -> Self:
        fingerprint = lists.fingerprint
        if fingerprint == self.fingerprint:
            return self
        completed = sum(item.status == "completed" for item in lists.items)
        given_back = min(self.given_back + max(completed - self.completed, 0), self.continuations)
        return replace(
            self, fingerprint=fingerprint, changed_at=self.iterations, completed=completed, given_back=given_back
        )

    def count_stop(self, lists: ListState, limits: Limits) -> Self:
        """The model has stopped: count whether the last continuation changed anything (C5)."""
        now = self.with_lists(lists)
        unchanged = now.unchanged
        if now.continued_at is not None:
            unchanged = unchanged + 1 if now.fingerprint == now.continued_at else 0
        allowed = limits.iterations(now.allowed, now.iterations, bool(lists.open))
        return replace(now, allowed=allowed, unchanged=unchanged, continued_at=None)

    def count_continuation(self) -> Self:
        return replace(self, continuations=self.continuations + 1, continued_at=self.fingerprint)

    def end(self, reason: Reason, why: str) -> Self:
        return replace(self, reason=reason.value, why=why)

    def situation(
        self, lists: ListState, limits: Limits, *, seconds: float, enabled: bool, waits_for: Sequence[str]
    ) -> Situation:
        # A turn that was ended with nothing open was completed.
        ended = lists.turn_end_reason if lists.open else None
        stopped = None if ended is None else f"the turn was ended from outside ({ended})"
        return Situation(
            open=lists.open,
            counters=TurnCounters(
                self.iterations,
                self.allowed,
                self.continuations - self.given_back,
                self.continuations,
                self.unchanged,
                tokens=self.tokens,
                seconds=seconds,
            ),
            limits=limits,
            enabled=enabled,
            cancelled=stopped,
            pending_approvals=waits_for,
        )
