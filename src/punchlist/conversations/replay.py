"""A conversation as its events tell it, to compare with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.model import Conversation, StoredTurn
from punchlist.kernel.events import Event


@dataclass(slots=True)
class ReplayedConversation:
    conversation: Conversation | None = None
    turns: dict[str, StoredTurn] = field(default_factory=dict)


def replay_conversation(events: Sequence[Event]) -> ReplayedConversation:
    """Messages are not here: the trail keeps only their fingerprints."""
    told = ReplayedConversation()
    for event in events:
        data = event.payload()
        if event.action == "start":
            told.conversation = Conversation(**data)
        elif event.action == TurnAction.BEGIN:
            told.turns[event.subject] = StoredTurn(**data)
        elif event.action in (TurnAction.TAKE, TurnAction.SUSPEND, TurnAction.END):
            told.turns[event.subject] = told.turns[event.subject]._replace(**data)
    return told


def replay_queue(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """By id, what the trail tells of messages that waited: every event tells all of it."""
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        data = event.payload()
        data.pop("message", None)
        told[event.subject] = {**data, "status": event.to_status}
    return told
