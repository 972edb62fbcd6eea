"""Rebuilds conversations and queues from their events, to compare them with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.model import Conversation, StoredTurn
from punchlist.conversations.next_turn import CHOOSE
from punchlist.kernel.events import Event


@dataclass(slots=True)
class ReplayedConversation:
    conversation: Conversation | None = None
    turns: dict[str, StoredTurn] = field(default_factory=dict)


def replay_conversation(events: Sequence[Event]) -> ReplayedConversation:
    """Without messages: events store only their fingerprints."""
    replayed = ReplayedConversation()
    for event in events:
        data = event.payload()
        if event.action == "start":
            replayed.conversation = Conversation(**data)
        elif event.action == CHOOSE and replayed.conversation is not None:
            replayed.conversation = replayed.conversation._replace(**data)
        elif event.action == TurnAction.BEGIN:
            replayed.turns[event.subject] = StoredTurn(**data)
        elif event.action in (TurnAction.TAKE, TurnAction.SUSPEND, TurnAction.END):
            replayed.turns[event.subject] = replayed.turns[event.subject]._replace(**data)
    return replayed


def replay_queue(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """The data of each queued message by id; every event carries all of it."""
    replayed: dict[str, dict[str, Any]] = {}
    for event in events:
        data = event.payload()
        data.pop("message", None)
        replayed[event.subject] = {**data, "status": event.to_status}
    return replayed
