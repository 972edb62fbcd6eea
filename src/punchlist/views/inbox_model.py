"""Values of the inbox: kinds of requests, the actions that answer them, and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp


class RequestKind(StrEnum):
    APPROVAL = "approval"
    """A tool call waits for permission."""
    QUESTION = "question"
    """An agent waits for a person's answer."""
    EVENT = "event"
    """A todo waits for an event that a person or a program reports."""
    TIME = "time"
    """The time that a todo waited for has passed, and no process continues the work."""
    ESCALATION = "escalation"
    """A mission asks about a todo."""
    FAILURE = "failure"
    """A cycle or a planning run of a mission failed."""
    BUDGET = "budget"
    """A mission or a todo has used up its budget."""
    WORKER = "worker"
    """A mission has work or a message of a person, and no worker is alive."""


class InboxAction(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    MODIFY = "modify"
    ANSWER = "answer"
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"
    RETRY = "retry"
    ACKNOWLEDGE = "acknowledge"


ACTIONS: Final[Mapping[RequestKind, tuple[InboxAction, ...]]] = {
    RequestKind.APPROVAL: (InboxAction.APPROVE, InboxAction.DENY, InboxAction.MODIFY),
    RequestKind.QUESTION: (InboxAction.ANSWER,),
    RequestKind.EVENT: (InboxAction.ANSWER,),
    RequestKind.TIME: (InboxAction.ACKNOWLEDGE,),
    RequestKind.ESCALATION: (InboxAction.EXTEND, InboxAction.CANCEL, InboxAction.KEEP, InboxAction.ACKNOWLEDGE),
    RequestKind.FAILURE: (InboxAction.RETRY, InboxAction.ACKNOWLEDGE),
    RequestKind.BUDGET: (InboxAction.ACKNOWLEDGE,),
    RequestKind.WORKER: (InboxAction.ACKNOWLEDGE,),
}


@dataclass(frozen=True, slots=True)
class InboxItem:
    number: int
    kind: RequestKind
    id: str
    subject: str
    """The tool of an approval, the kind of an escalation or failed run, the plan todo's title otherwise."""
    question: str
    asked_at: str
    session: str | None = None
    mission: str | None = None
    pillar: str | None = None
    todo_id: str | None = None
    """Of the mission todo that the request is about."""
    todo_title: str | None = None
    plan_todo_id: str | None = None
    """Of the plan todo that waits, whose title is the subject."""
    run_id: str | None = None
    requester: str | None = None
    reason: str | None = None
    """Why a person is asked, or what happens without an answer."""
    expires_at: str | None = None
    always: Mapping[str, str] = field(default_factory=dict)
    """For an approval: what an "always" answer covers, by its name: tool, prefix or server."""

    @property
    def answers(self) -> tuple[InboxAction, ...]:
        return ACTIONS[self.kind]

    def age_seconds(self, now: datetime) -> int:
        return max(0, int((now - parse_timestamp(self.asked_at)).total_seconds()))

    def as_json(self, now: datetime) -> dict[str, Any]:
        optional = camel_json(self, *_OPTIONAL)
        return {
            **camel_json(self, "number", "id", "kind", "subject", "question", "asked_at"),
            "ageSeconds": self.age_seconds(now),
            "answers": [answer.value for answer in self.answers],
            **{key: value for key, value in optional.items() if value},
        }


_OPTIONAL: Final = (
    *("session", "mission", "pillar", "todo_id", "todo_title", "plan_todo_id", "run_id", "requester", "reason"),
    *("expires_at", "always"),
)


@dataclass(frozen=True, slots=True)
class InboxPage:
    items: Sequence[InboxItem]
    """Oldest first."""
    counts: Mapping[RequestKind, int]
    """Open requests by kind, on all pages. Kinds without requests are left out."""
    now: datetime
    cursor: str | None = None
    """None on the last page."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [item.as_json(self.now) for item in self.items],
            "counts": {kind.value: count for kind, count in sorted(self.counts.items())},
            **({"nextCursor": self.cursor} if self.cursor else {}),
        }
