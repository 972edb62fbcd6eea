"""`mission_todo_update`: which action takes which fields, and the call of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from punchlist.missions.model import MissionScope, NewLink, TodoChange
from punchlist.missions.todos.edits import EditedFields, edited_fields
from punchlist.missions.todos.tool_arguments import FieldReader, read_mission, read_todo
from punchlist.missions.todos.validation import (
    MAX_BLOCK_LENGTH,
    MAX_REASON_LENGTH,
    MAX_TITLE_LENGTH,
    PRIORITIES,
    UPDATES,
    mismatched_fields,
)

if TYPE_CHECKING:
    from punchlist.missions.todos.service import MissionTodos

EDITABLE: Final = {
    "title": "title",
    "description": "description",
    "justification": "justification",
    "completionCriteria": "completion_criteria",
    "deadline": "deadline",
    "priority": "priority",
    "alsoAffects": "also_affects",
    "check": "check",
    "labels": "labels",
    "parentId": "parent_id",
}
"""The fields that an edit takes, and their names in `EditedFields`."""
CLEARABLE: Final = tuple(name for name in EDITABLE if name not in ("title", "priority"))
_EMPTY: Final[dict[str, Any]] = {
    **dict.fromkeys(("description", "justification", "completion_criteria"), ""),
    **dict.fromkeys(("also_affects", "labels"), ()),
}
"""The values of cleared fields that are not None."""

FIELDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    **dict.fromkeys(("promote", "demote", "start", "cancel", "resume", "unarchive"), ((), ())),
    "extend": (("deadline",), ()),
    "reprioritize": (("priority",), ()),
    "edit": ((), (*EDITABLE, "clear", "version")),
    "swap": (("otherId",), ()),
    "link": (("link", "otherId"), ()),
    "unlink": (("link", "otherId"), ()),
    "label": (("labels",), ()),
    "comment": (("text",), ()),
    "feedback": (("text",), ()),
    "attach": ((), ("path", "name", "text")),
    "detach": (("name",), ()),
}
"""The required and the optional fields of each action."""
ACTIONS: Final = {name: name for name in FIELDS}
_WITHOUT_REASON: Final = frozenset({"comment", "feedback", "attach", "detach"})
"""Actions that say enough by themselves."""


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    mission_slug: str
    todo_id: str
    action: str
    reason: str
    values: Mapping[str, Any]
    """The fields of the action, as parsed."""


def parse_update(args: Mapping[str, Any]) -> UpdateRequest:
    if args.get("action") == "edit":
        # Models send empty values for fields that they do not use; `clear` empties a field.
        args = {name: value for name, value in args.items() if value not in ("", [], {})}
    reader = FieldReader(args)
    mission_slug, todo_id = read_mission(reader), read_todo(reader)
    action = reader.choice("action", ACTIONS)
    needs_reason = action not in _WITHOUT_REASON
    reason = reader.block("reason", max_length=MAX_REASON_LENGTH, required="say why" if needs_reason else "")
    values: dict[str, Any] = {
        "title": reader.line("title", max_length=MAX_TITLE_LENGTH),
        **{name: reader.block(name) for name in ("description", "justification", "completionCriteria")},
        "deadline": reader.line("deadline"),
        "priority": reader.choice("priority", PRIORITIES),
        "alsoAffects": reader.names("alsoAffects"),
        "check": reader.check("check"),
        "labels": reader.names("labels"),
        "parentId": reader.line("parentId"),
        "clear": reader.names("clear"),
        "version": reader.line("version"),
        "otherId": reader.line("otherId"),
        "link": reader.link_kind("link"),
        "text": reader.raw("text", max_length=MAX_BLOCK_LENGTH),
        "path": reader.line("path", max_length=1_000),
        "name": reader.line("name"),
    }
    given = [name for name in values if reader.given(name)]
    if not reader.given("action"):
        reader.problems.append(f"action: is required; one of {', '.join(ACTIONS)}")
    elif action:
        reader.problems += mismatched_fields(action, given, FIELDS)
    reader.problems += [
        f"clear[{index}]: must be one of {', '.join(CLEARABLE)}"
        for index, name in enumerate(values["clear"])
        if name not in CLEARABLE
    ]
    if action == "attach" and not reader.problems and ("path" in given) == ("text" in given and "name" in given):
        reader.problems.append("attach: give a path, or a name and a text")
    reader.finish()
    return UpdateRequest(mission_slug, todo_id, action or "", reason or "", {name: values[name] for name in given})


def apply_update(todos: MissionTodos, scope: MissionScope, request: UpdateRequest) -> TodoChange:
    slug, id, reason, values = request.mission_slug, request.todo_id, request.reason, request.values
    match request.action:
        case "edit":
            version = values.get("version")
            return todos.edit(scope, slug, id, _edited_fields(values), reason, expected_version=version)
        case "swap":
            return todos.swap(scope, slug, id, values["otherId"], reason)
        case "link" | "unlink":
            change = todos.link if request.action == "link" else todos.unlink
            kind, inverse = values["link"]
            return change(scope, slug, id, NewLink(kind, values["otherId"], inverse), reason)
        case "label":
            added, removed = split_labels(values["labels"])
            return todos.label(scope, slug, id, reason, add=added, remove=removed)
        case "comment":
            return todos.comment(scope, slug, id, values["text"])
        case "feedback":
            return todos.feedback(scope, slug, id, values["text"])
        case "attach":
            name = values.get("path") or values["name"]
            return todos.attach(scope, slug, id, name, values.get("text"), reason or "attached")
        case "detach":
            return todos.detach(scope, slug, id, values["name"], reason or "detached")
        case "unarchive":
            return todos.unarchive(scope, slug, id, reason)
    action = UPDATES[request.action]
    return todos.update(
        scope, slug, id, action, reason, deadline=values.get("deadline"), priority=values.get("priority")
    )


def _edited_fields(values: Mapping[str, Any]) -> EditedFields:
    """The fields of an edit; cleared ones are empty."""
    fields: dict[str, Any] = {EDITABLE[name]: values[name] for name in EDITABLE if name in values}
    fields |= {EDITABLE[name]: _EMPTY.get(EDITABLE[name]) for name in values.get("clear", ())}
    return edited_fields(fields)


def split_labels(labels: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Labels to add, and labels to remove: those start with a dash."""
    added = [label for label in labels if not label.startswith("-")]
    return added, [label[1:].strip() for label in labels if label.startswith("-")]
