"""The row of a recommendation and its lifecycle."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final, NamedTuple

from punchlist.kernel.lifecycle import NEW, Lifecycle
from punchlist.missions.todos.lifecycle import LEADS, MEMBERS

MAX_LENGTH: Final = 2_000
MAX_OPEN: Final = 100
"""Of one mission at a time."""
NOTE: Final = "note"
"""The kind of a recommendation that names no action. Every other kind is an action on a todo, such as `promote`."""
EDIT: Final = "edit"


class RecommendationStatus(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"


class RecommendationAction(StrEnum):
    RECOMMEND = "recommend"
    ACCEPT = "accept_recommendation"
    DECLINE = "decline_recommendation"


RECOMMENDATION: Final = Lifecycle(
    "recommendation",
    {
        (NEW, RecommendationAction.RECOMMEND): RecommendationStatus.OPEN,
        (RecommendationStatus.OPEN, RecommendationAction.ACCEPT): RecommendationStatus.ACCEPTED,
        (RecommendationStatus.OPEN, RecommendationAction.DECLINE): RecommendationStatus.DECLINED,
    },
    allowed={
        RecommendationAction.RECOMMEND: MEMBERS,
        # The system decides when a change to the todo has settled it.
        RecommendationAction.ACCEPT: LEADS,
        RecommendationAction.DECLINE: LEADS,
    },
)


class Recommendation(NamedTuple):
    """A row of `recommendations`."""

    id: str
    mission_id: str
    number: int
    pillar_id: str | None
    todo_id: str | None
    kind: str
    payload: str
    content: str
    status: str
    created_by: str
    created_at: str
    decided_by: str | None = None
    decided_at: str | None = None
    decision: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = json.loads(self.payload)
        return arguments
