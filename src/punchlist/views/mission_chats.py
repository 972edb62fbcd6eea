"""The chats of a mission: that of the Lead, and two of each pillar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from punchlist.conversations import repository as conversation_repository
from punchlist.kernel.camel_json import camel_json
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import find_mission
from punchlist.missions.model import ChatChannel, Pillar
from punchlist.runs.lifecycle import RESTING, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store, Transaction
from punchlist.views import activity_repository

PURPOSES: Final = {
    ChatChannel.MISSION: "The Lead reviews and decides here.",
    ChatChannel.PILLAR: "The owner plans here.",
    ChatChannel.PILLAR_TODO: "The owner executes todos here.",
}


@dataclass(frozen=True, slots=True)
class MissionChat:
    id: str
    """Of the conversation."""
    channel: ChatChannel
    pillar: Pillar | None
    messages: int
    last_message_at: str | None
    waiting: int
    """Messages that wait for delivery."""
    run: Run | None
    """The open run that works in it, else the first one that waits for it."""

    @property
    def purpose(self) -> str:
        return PURPOSES[self.channel]

    def as_json(self) -> dict[str, Any]:
        return {
            **camel_json(self, "id", "messages", "last_message_at", "waiting", "purpose"),
            "channel": self.channel.value,
            "pillar": self.pillar.slug if self.pillar else None,
            "run": self.run and camel_json(self.run, "id", "kind", "status", "agent", "todo_id", "why"),
        }


def read_mission_chats(store: Store, slug: str) -> list[MissionChat]:
    """The mission's chat, then those of its active pillars in the order of the file."""
    with store.read() as tx:
        mission = find_mission(tx, slug)
        found = [_chat(tx, mission.conversation_id, ChatChannel.MISSION)]
        for pillar in mission_repository.pillars_of(tx, mission.id):
            if pillar.status == "active":
                found.append(_chat(tx, pillar.conversation_id, ChatChannel.PILLAR, pillar))
                found.append(_chat(tx, pillar.todo_conversation_id, ChatChannel.PILLAR_TODO, pillar))
    return found


def _chat(tx: Transaction, id: str, channel: ChatChannel, pillar: Pillar | None = None) -> MissionChat:
    last = conversation_repository.last_message(tx, id)
    runs = activity_repository.open_runs_in_chat(tx, id)
    run = next((each for each in runs if each.executor), runs[0] if runs else None)
    waiting, (messages, at) = len(conversation_repository.queued_messages(tx, id)), last or (0, None)
    return MissionChat(id, channel, pillar, messages, at, waiting, run)


def run_in_chat(store: Store, conversation_id: str) -> Run | None:
    """The run that works in a chat, else one that rests there."""
    with store.read() as tx:
        # A collection does not need a chat to itself.
        runs = [
            run
            for run in activity_repository.open_runs_in_chat(tx, conversation_id)
            if run.kind is not RunKind.COLLECT and run.status is not RunStatus.QUEUED
        ]
    return min(runs, key=lambda run: run.status in RESTING, default=None)
