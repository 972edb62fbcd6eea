"""One run of a framework's agent, as a value: what it has used so far, and how it stands with its lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from punchlist.agent.continuation import Limits, Reason, Situation, TurnCounters
from punchlist.agent.list_state import ListState


@dataclass(frozen=True, slots=True)
class AdapterRun:
    """Nothing but text and numbers: a framework can store it with what is its own."""

    session: str
    turn_id: str
    since: str
    """When the turn began; what was on the checklist before is not what it was begun for."""
    begun: float
    """When the run did, in seconds."""
    first: bool = False
    """Nothing has happened in the session before."""
    iterations: int = 0
    allowed: int = 0
    continuations: int = 0
    unchanged: int = 0
    tokens: int = 0
    mark: str = ""
    """How the lists were when they were last looked at."""
    changed_at: int = 0
    """The iteration in which a list last changed."""
    continued_at: str | None = None
    """How the lists were when the model was sent back; None when it has stopped since."""
    reminded_at: str | None = None
    reason: str | None = None
    """Why the run ended (C13); None as long as it has not."""
    why: str = ""

    def count_reply(self, tokens: int = 0, replies: int = 1) -> Self:
        """The model has replied, and used so many tokens for it."""
        return replace(self, iterations=self.iterations + replies, tokens=self.tokens + tokens)

    def with_lists(self, view: ListState) -> Self:
        mark = view.fingerprint
        return self if mark == self.mark else replace(self, mark=mark, changed_at=self.iterations)

    def count_stop(self, view: ListState, limits: Limits) -> Self:
        """The model wants to hand back: whether anything came of having been sent back (C5)."""
        now = self.with_lists(view)
        unchanged = now.unchanged
        if now.continued_at is not None:
            unchanged = unchanged + 1 if now.mark == now.continued_at else 0
        allowed = limits.iterations(now.allowed, now.iterations, bool(view.open))
        return replace(now, allowed=allowed, unchanged=unchanged, continued_at=None)

    def count_continuation(self) -> Self:
        return replace(self, continuations=self.continuations + 1, continued_at=self.mark)

    def end(self, reason: Reason, why: str) -> Self:
        return replace(self, reason=reason.value, why=why)

    def situation(
        self, view: ListState, limits: Limits, *, seconds: float, enabled: bool, waits_for: Sequence[str]
    ) -> Situation:
        # A turn that was ended with nothing left to do was finished, whoever ended it.
        stopped = (
            f"somebody ended the turn ({view.turn_end_reason})"
            if view.turn_end_reason is not None and view.open
            else None
        )
        return Situation(
            open=view.open,
            counters=TurnCounters(
                self.iterations,
                self.allowed,
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
