"""Values of the checklist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, cast

from punchlist.checklist.lifecycle import OPEN, ChecklistStatus
from punchlist.verification.model import NO_VERIFICATION, Verification, from_json, verification_json


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    id: str
    content: str
    active_form: str
    status: ChecklistStatus
    reason: str = ""
    """Why it was cancelled."""
    verification: Verification = NO_VERIFICATION

    @property
    def is_open(self) -> bool:
        return self.status in OPEN


class ItemJson(TypedDict):
    id: str
    content: str
    status: str
    activeForm: str
    reason: NotRequired[str]
    mark: NotRequired[str]
    check: NotRequired[str | dict[str, Any]]
    checkResult: NotRequired[dict[str, str]]
    evidence: NotRequired[list[dict[str, str]]]
    acceptedBy: NotRequired[str]
    copiedFrom: NotRequired[str]


class Progress(TypedDict):
    completed: int
    total: int
    percent: int


@dataclass(frozen=True, slots=True)
class Checklist:
    """The list of one session at one revision."""

    items: tuple[ChecklistItem, ...]
    revision: int
    undo_to: int
    updated_at: str | None

    @property
    def progress(self) -> Progress:
        """Dropped items do not count."""
        completed = sum(1 for item in self.items if item.status is ChecklistStatus.COMPLETED)
        total = len(self.items) - len(self.dropped)
        # Rounds half up; round() would round half to even.
        percent = (200 * completed + total) // (2 * total) if total else 0
        return {"completed": completed, "total": total, "percent": percent}

    @property
    def dropped(self) -> list[ChecklistItem]:
        """Unfinished items that the agent left out; they are the last ones of the list."""
        return [item for item in self.items if item.status is ChecklistStatus.DROPPED]

    @property
    def in_progress(self) -> ChecklistItem | None:
        return next((item for item in self.items if item.status is ChecklistStatus.IN_PROGRESS), None)


EMPTY_CHECKLIST = Checklist((), 0, 0, None)


def item_json(item: ChecklistItem) -> ItemJson:
    """An item in the JSON of tools and commands."""
    completed = item.status is ChecklistStatus.COMPLETED
    fields = {**_fields(item), **verification_json(item.verification, completed=completed)}
    return cast("ItemJson", fields)


def stored_item(item: ChecklistItem) -> dict[str, Any]:
    """An item in the row and in events."""
    fields = _fields(item)
    if item.verification is not NO_VERIFICATION and (verification := item.verification.stored_json()):
        fields["verification"] = verification
    return fields


def _fields(item: ChecklistItem) -> dict[str, Any]:
    fields = {"id": item.id, "content": item.content, "status": item.status.value, "activeForm": item.active_form}
    return {**fields, "reason": item.reason} if item.reason else fields


def items_from_json(raw: Sequence[dict[str, Any]]) -> tuple[ChecklistItem, ...]:
    """The inverse of `stored_item`."""
    return tuple(
        ChecklistItem(
            item["id"],
            item["content"],
            item["activeForm"],
            ChecklistStatus(item["status"]),
            item.get("reason", ""),
            from_json(item["verification"]) if "verification" in item else NO_VERIFICATION,
        )
        for item in raw
    )


@dataclass(frozen=True, slots=True)
class ChecklistChange:
    """The list after a change, and the unfinished items that the change dropped or removed."""

    checklist: Checklist
    dropped: tuple[ChecklistItem, ...]
