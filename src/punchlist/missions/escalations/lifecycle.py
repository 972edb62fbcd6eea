"""The lifecycle of an escalation: a question to a person about a todo."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle
from punchlist.missions.todos.lifecycle import LEADS


class EscalationStatus(StrEnum):
    OPEN = "open"
    # A person has seen it; reminders stop.
    ACKNOWLEDGED = "acknowledged"
    ANSWERED = "answered"


class EscalationAction(StrEnum):
    ASK = "ask"
    REMIND = "remind"
    ACKNOWLEDGE = "acknowledge"
    ANSWER = "answer"


ESCALATION: Final = Lifecycle(
    "escalation",
    {
        (NEW, EscalationAction.ASK): EscalationStatus.OPEN,
        (EscalationStatus.OPEN, EscalationAction.REMIND): EscalationStatus.OPEN,
        (EscalationStatus.OPEN, EscalationAction.ACKNOWLEDGE): EscalationStatus.ACKNOWLEDGED,
        (EscalationStatus.OPEN, EscalationAction.ANSWER): EscalationStatus.ANSWERED,
        (EscalationStatus.ACKNOWLEDGED, EscalationAction.ANSWER): EscalationStatus.ANSWERED,
    },
    allowed={
        EscalationAction.ASK: frozenset({Role.SYSTEM, Role.LEAD}),
        EscalationAction.REMIND: frozenset({Role.SYSTEM}),
        EscalationAction.ACKNOWLEDGE: frozenset({Role.PERSON}),
        # A change to the todo by the Lead, after a person's reply in the chat, also answers the question.
        EscalationAction.ANSWER: LEADS,
    },
)
