"""The fields of a todo that a person edits in a form, and how a form knows that another one was faster.

Each field is sent with a fingerprint of what the form showed. Unchanged fields are not written, and
one that was changed by another writer meanwhile is refused instead of overwritten. Agents change other parts of a todo
at any time, so that the version of the whole todo would refuse most edits.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from punchlist.errors import Conflict
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.web.pages.check_fields import KIND, check_text, json_text, posted_check

if TYPE_CHECKING:
    from punchlist.missions.model import MissionTodo
    from punchlist.missions.todos.edits import EditedFields
    from punchlist.surfaces.web.pages.page import PageRequest

_COLUMNS: Final = {
    "title": "title",
    "description": "description",
    "justification": "justification",
    "completionCriteria": "completion_criteria",
    "deadline": "deadline",
    "priority": "priority",
    "labels": "labels",
    "alsoAffects": "also_affects",
    "check": "check",
    "parentId": "parent_id",
}
_LABELS: Final = {
    "title": "title",
    "description": "what to do",
    "justification": "why now",
    "completionCriteria": "done when",
    "alsoAffects": "also affects",
    "parentId": "part of",
}
"""As the form names them; the others by their names."""


def label_of(column: str) -> str:
    name = next(name for name, each in _COLUMNS.items() if each == column)
    return _LABELS.get(name, name)


def editable_values(todo: MissionTodo) -> dict[str, str]:
    """Each field as one text, which is the same for what the form shows."""
    return {
        "title": todo.title,
        "description": todo.description,
        "justification": todo.justification,
        "completionCriteria": todo.completion_criteria,
        "deadline": (todo.deadline or "")[:10],
        "priority": todo.priority.value,
        "labels": ", ".join(todo.label_names),
        "alsoAffects": ", ".join(sorted(json.loads(todo.also_affects))),
        "check": check_text(todo.completion_check),
        "parentId": todo.parent_id or "",
    }


def fingerprint(text: str) -> str:
    # As a form sends it: without space at the ends.
    return sha256(text.strip().encode()).hexdigest()[:16]


def edited_values(request: PageRequest, todo: MissionTodo) -> EditedFields:
    """The fields that the person changed; raises if one of them has changed since the form was shown."""
    found: dict[str, Any] = {}
    for name, stored in editable_values(todo).items():
        if (text := _posted_text(request, name)) is None:
            continue
        was = request.posted(f"was-{name}")
        if text == stored.strip() or fingerprint(text) == was:
            continue
        if was and was != fingerprint(stored):
            raise Conflict(
                f"“{_LABELS.get(name, name)}” was changed by another person or an agent since you opened the form. "
                "Nothing was saved. Copy your text, and open the todo again."
            )
        found[_COLUMNS[name]] = _parsed(name, text)
    return cast("EditedFields", found)


def _posted_text(request: PageRequest, name: str) -> str | None:
    """None if the form did not have the field."""
    match name:
        # Browsers send nothing for a field of which no box is checked.
        case "alsoAffects" if f"was-{name}" in request.form:
            return ", ".join(sorted(request.form.get(name, ())))
        case "check" if KIND in request.form:
            return json_text(posted_check(request))
    return request.posted(name) if name in request.form else None


def split_labels(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _parsed(name: str, text: str) -> Any:
    match name:
        case "deadline" | "parentId":
            return text or None
        case "check":
            return json.loads(text) if text else None
        case "priority":
            return TodoPriority(text) if text in list(TodoPriority) else text
        case "labels" | "alsoAffects":
            return split_labels(text)
    return text
