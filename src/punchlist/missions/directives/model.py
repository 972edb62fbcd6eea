"""The row of a directive and its lifecycle."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle
from punchlist.kernel.text import visible, without_tags
from punchlist.kernel.token_estimate import weighted_length

MAX_LENGTH: Final = 500
MAX_IN_FORCE: Final = 20
"""Of one mission at a time: all of them are in every request to its agents."""
MAX_TOTAL_LENGTH: Final = MAX_IN_FORCE * MAX_LENGTH
"""The weighted length of all that hold, about 2,500 tokens. Only other scripts than ASCII reach it before the limits
above: each of their characters is about a token."""


class DirectiveStatus(StrEnum):
    OPEN = "open"
    ENDED = "ended"


class DirectiveAction(StrEnum):
    ADD = "add_directive"
    END = "end_directive"


DIRECTIVE: Final = Lifecycle(
    "directive",
    {
        (NEW, DirectiveAction.ADD): DirectiveStatus.OPEN,
        (DirectiveStatus.OPEN, DirectiveAction.END): DirectiveStatus.ENDED,
    },
    allowed=dict.fromkeys(DirectiveAction, frozenset({Role.PERSON})),
)


class Directive(NamedTuple):
    """A row of `directives`."""

    id: str
    mission_id: str
    number: int
    content: str
    holds_until: str | None
    status: str
    created_by: str
    created_at: str
    ended_at: str | None = None


def shown_length(content: str) -> int:
    """The weighted length of a directive as agents get it."""
    return weighted_length(without_tags(visible(content)))
