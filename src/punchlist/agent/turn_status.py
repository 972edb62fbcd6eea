"""Derives the status of turns from their events: model, mode, continuations, tokens, cost, context."""

from __future__ import annotations

from dataclasses import dataclass

from punchlist.agent.events import AgentEvent, Continued, ReplyReceived, TurnEnded, TurnStarted
from punchlist.agent.turn_model import TurnRequest
from punchlist.conversations import status_repository
from punchlist.conversations.status_repository import TurnStatusRow
from punchlist.models.model import Model
from punchlist.storage.store import Transaction


@dataclass(slots=True)
class LiveStatus:
    started: TurnStarted
    continuations: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    context_tokens: int = 0
    before: TurnStatusRow | None = None
    """What an earlier owner of a resumed turn stored."""
    unread: bool = True
    """`before` was not read yet."""
    changed: bool = True
    ended: bool = False


class TurnStatuses:
    """The status of the open turns of this process. The caller holds a lock around every call."""

    def __init__(self) -> None:
        self._turns: dict[str, LiveStatus] = {}

    def apply(self, event: AgentEvent) -> bool:
        """Whether the event changes a status."""
        match event:
            case TurnStarted():
                self._turns[event.turn_id] = LiveStatus(event)
            case ReplyReceived() if status := self._turns.get(event.turn_id):
                status.context_tokens = event.usage.total
                self._spend(status, event)
            case Continued() if status := self._turns.get(event.turn_id):
                status.continuations, status.changed = event.count, True
            case TurnEnded() if status := self._turns.get(event.turn_id):
                status.ended = status.changed = True
            case _:
                return False
        return True

    def take(self) -> list[LiveStatus]:
        """The statuses that changed since the last call."""
        changed = [status for status in self._turns.values() if status.changed]
        for status in changed:
            status.changed = False
            if status.ended:
                del self._turns[status.started.turn_id]
        return changed

    def _spend(self, status: LiveStatus, event: ReplyReceived) -> None:
        """Count a reply for its turn and for the turns that delegated it."""
        counted: LiveStatus | None = status
        while counted is not None:
            counted.input_tokens += event.usage.input_tokens
            counted.output_tokens += event.usage.output_tokens
            if event.cost is not None:
                counted.cost = (counted.cost or 0.0) + event.cost
            counted.changed = True
            counted = self._turns.get(counted.started.parent or "")


def store_status(tx: Transaction, status: LiveStatus) -> None:
    started = status.started
    if status.unread:
        status.before = status_repository.find_status(tx, started.turn_id) if started.resumed else None
        status.unread = False
    before = status.before
    costs = [cost for cost in (status.cost, before.cost if before else None) if cost is not None]
    row = TurnStatusRow(
        started.turn_id,
        started.model,
        started.mode,
        max(status.continuations, before.continuations if before else 0),
        started.continuations,
        status.input_tokens + (before.input_tokens if before else 0),
        status.output_tokens + (before.output_tokens if before else 0),
        started.token_limit,
        sum(costs) if costs else None,
        started.cost_limit,
        status.context_tokens or (before.context_tokens if before else 0),
        started.context_window,
        tx.now(),
    )
    status_repository.save_status(tx, row)


def turn_started(request: TurnRequest, turn_id: str, model: Model, mode: str, *, resumed: bool) -> TurnStarted:
    """The event at the start of a turn."""
    agent = request.agent
    return TurnStarted(
        agent.name,
        turn_id,
        model.name,
        request.parent,
        resumed,
        agent.limits.continuations if agent.todo_driven else None,
        str(mode),
        model.info.context_window,
        agent.limits.tokens,
        agent.limits.cost,
    )
