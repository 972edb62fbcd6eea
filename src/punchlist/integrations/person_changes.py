"""What people changed on the lists of a third-party agent, from the events of its lists (X9). Pure.

One change per item and kind remains: a change of the text, of the place, and the last change of the state. An item that
the agent has ended since is left out, and so is one that was added and cancelled before the agent heard of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.repository import checklist_stream
from punchlist.integrations.session_state import is_by_agent, is_by_person
from punchlist.kernel.events import Event
from punchlist.plan.lifecycle import PlanAction

ADDED: Final = "added"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
REMOVED: Final = "removed"
REWORDED: Final = "reworded"
MOVED: Final = "moved"
_VERBS: Final = {
    ChecklistAction.ADD: ADDED,
    PlanAction.CREATE: ADDED,
    ChecklistAction.START: "started",
    ChecklistAction.COMPLETE: COMPLETED,
    ChecklistAction.CANCEL: CANCELLED,
    ChecklistAction.REOPEN: "reopened",
    "remove": REMOVED,
    PlanAction.EDIT: REWORDED,
    PlanAction.MOVE: MOVED,
}
_STATE: Final = "state"
_KINDS: Final = {REWORDED: REWORDED, MOVED: MOVED}


@dataclass(frozen=True, slots=True)
class PersonChange:
    id: str
    verb: str
    title: str
    on_checklist: bool
    before: str = ""
    """The text before it was reworded."""


def person_changes(told: Sequence[Event], untold: Sequence[Event]) -> list[PersonChange]:
    """The changes in `untold`, oldest first; `told` are the events before, for the texts of that time."""
    lists = _Lists()
    for event in told:
        lists.apply(event)
    found: dict[tuple[str, str], PersonChange] = {}
    unknown: dict[str, PersonChange] = {}
    """The items that the agent has not heard of."""
    for event in untold:
        for change in list(lists.apply(event)):
            if is_by_person(event):
                if change.verb == ADDED:
                    unknown[change.id] = change
                _add(found, change, unknown.get(change.id))
            elif is_by_agent(event):
                unknown.pop(change.id, None)
                if change.verb in (COMPLETED, CANCELLED):
                    _forget(found, change.id)
    return list(found.values())


def _add(found: dict[tuple[str, str], PersonChange], change: PersonChange, added: PersonChange | None) -> None:
    key = (change.id, _KINDS.get(change.verb, _STATE))
    earlier = found.get(key)
    if added is not None and change.verb != COMPLETED:
        _forget(found, change.id)
        if change.verb not in (CANCELLED, REMOVED):
            found[change.id, _STATE] = replace(added, title=change.title)
    elif earlier is not None and change.verb == REWORDED:
        found[key] = replace(change, before=earlier.before)
    else:
        found[key] = change


def _forget(found: dict[tuple[str, str], PersonChange], id: str) -> None:
    for kind in (_STATE, *_KINDS):
        found.pop((id, kind), None)


class _Lists:
    """The texts of both lists and the order of the checklist, as of the last event."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._order: list[str] = []

    def apply(self, event: Event) -> list[PersonChange]:
        """The changes that an event makes."""
        is_checklist = event.stream.startswith(checklist_stream(""))
        return list(self._checklist_changes(event) if is_checklist else self._plan_changes(event))

    def _plan_changes(self, event: Event) -> Iterator[PersonChange]:
        title = event.payload().get("title")
        if isinstance(title, str) and event.action in _VERBS:
            yield from self._change(event.subject, event.action, title, on_checklist=False)
            self._titles[event.subject] = title

    def _checklist_changes(self, event: Event) -> Iterator[PersonChange]:
        data = event.payload()
        for step in data["steps"]:
            yield from self._change(step["id"], step["action"], step["content"], on_checklist=True)
        order = [item["id"] for item in data["items"]]
        self._titles.update((item["id"], item["content"]) for item in data["items"])
        if not data["steps"] and (moved := _moved(self._order, order)):
            yield PersonChange(moved, MOVED, self._titles[moved], on_checklist=True)
        self._order = order

    def _change(self, id: str, action: str, title: str, *, on_checklist: bool) -> Iterator[PersonChange]:
        before = self._titles.get(id, "")
        if action in _VERBS and (_VERBS[action] != REWORDED or before != title):
            yield PersonChange(id, _VERBS[action], title, on_checklist, before)


def _moved(before: list[str], after: list[str]) -> str | None:
    """The item that was moved; None if nothing was, or more than one."""
    if before == after:
        return None
    return next((id for id in after if [x for x in before if x != id] == [x for x in after if x != id]), None)
