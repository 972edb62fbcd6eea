"""What the last events of a session say about the agent of somebody else that works in it. Pure.

There are no counters: what was done to an agent is on record, so neither a crash nor a second process
can lose count (adr/0011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.agent.message_kinds import CONTINUATION, REMINDER
from punchlist.conversations.lifecycle import TurnAction
from punchlist.kernel.actors import Role
from punchlist.kernel.events import Event

PROMPTED: Final = "a new prompt"
"""Why a turn begins, and why the one before it ends."""
BEGAN: Final = "host_session"
"""The kind of message that tells of an agent's session having begun."""
MARK: Final = "mark"
ASIDE: Final = "aside"
"""Said of being sent back to a list that is of an earlier session, and may be none of this one's business."""
PROMPT: Final = "prompt"
"""Said of a message that is the first prompt of a turn which somebody has begun before."""
REVISION: Final = "revision"
SESSION: Final = "host_session"


@dataclass(frozen=True, slots=True)
class SessionHistory:
    sent_back: tuple[str, ...] = ()
    """How the lists were each time that the agent was sent back to them since the last prompt, newest first."""
    reminded: str | None = None
    """How they were when it was last reminded of them since."""
    stopped: str | None = None
    """Why a person has ended the turn since."""
    began_with: int | None = None
    """The revision of the checklist that the agent's session has found, when it is one that has just begun."""
    sent_back_in_session: int = 0
    left_alone: frozenset[str] = frozenset()
    """How the lists were when sessions were told that they were left by an earlier one."""
    prepared: str | None = None
    """The newest turn that a person has begun."""

    def unchanged(self, mark: str) -> int:
        """How often in a row it was sent back to the lists as they are now."""
        return next((index for index, seen in enumerate(self.sent_back) if seen != mark), len(self.sent_back))


def follow(events: Sequence[Event], session: str | None) -> SessionHistory:
    """Read from the newest event backwards. What was before the last prompt and the beginning of the session is of no
    concern, but for what sessions before it have left alone."""
    sent_back: list[str] = []
    reminded: str | None = None
    stopped: str | None = None
    began_with: int | None = None
    prepared: str | None = None
    left_alone = set[str]()
    in_session = 0
    prompted = began = False
    for event in reversed(events):
        data = event.payload()
        kind = _kind(data)
        if ASIDE in data:
            left_alone.add(data[MARK])
        if prompted and began:
            continue
        if kind == CONTINUATION and MARK in data:
            sent_back += [] if prompted else [data[MARK]]
            in_session += not began
        elif kind == REMINDER and MARK in data:
            reminded = reminded if prompted or reminded else data[MARK]
        elif kind == BEGAN and data.get(SESSION) == session and not began:
            began, began_with = True, data.get(REVISION)
        elif PROMPT in data or (event.action == TurnAction.BEGIN and event.reason == PROMPTED):
            prompted = True
        elif event.action == TurnAction.BEGIN and is_of_a_person(event):
            prepared = prepared or event.subject
        elif event.action == TurnAction.END and is_of_a_person(event) and not prompted:
            stopped = stopped or event.reason
    return SessionHistory(
        tuple(sent_back), reminded, stopped, began_with, in_session if began else 0, frozenset(left_alone), prepared
    )


def is_of_a_person(event: Event) -> bool:
    return event.actor.startswith(f"{Role.PERSON}:")


def _kind(data: dict[str, Any]) -> str | None:
    message = data.get("message")
    return message.get("kind") if isinstance(message, dict) else None
