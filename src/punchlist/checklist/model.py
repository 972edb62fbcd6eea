"""Values of the checklist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from punchlist.checklist.lifecycle import ChecklistStatus


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    id: str
    content: str
    active_form: str
    status: ChecklistStatus

    @property
    def is_open(self) -> bool:
        return self.status is not ChecklistStatus.COMPLETED


class ItemJson(TypedDict):
    id: str
    content: str
    status: str
    activeForm: str


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
        completed = sum(1 for item in self.items if not item.is_open)
        total = len(self.items)
        # Rounds half up; round() would round half to even.
        percent = (200 * completed + total) // (2 * total) if total else 0
        return {"completed": completed, "total": total, "percent": percent}

    @property
    def in_progress(self) -> ChecklistItem | None:
        return next((item for item in self.items if item.status is ChecklistStatus.IN_PROGRESS), None)


EMPTY_CHECKLIST = Checklist((), 0, 0, None)


def item_json(item: ChecklistItem) -> ItemJson:
    return {"id": item.id, "content": item.content, "status": item.status.value, "activeForm": item.active_form}


def items_from_json(raw: Sequence[dict[str, str]]) -> tuple[ChecklistItem, ...]:
    return tuple(
        ChecklistItem(item["id"], item["content"], item["activeForm"], ChecklistStatus(item["status"])) for item in raw
    )


@dataclass(frozen=True, slots=True)
class ChecklistChange:
    """The list after a change, and the unfinished items that the change dropped."""

    checklist: Checklist
    dropped: tuple[ChecklistItem, ...]
