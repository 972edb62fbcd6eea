"""The TodoWrite tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from punchlist.checklist import render
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.lifecycle import SENDABLE, ChecklistStatus
from punchlist.checklist.model import item_json
from punchlist.conversations.model import Scope
from punchlist.kernel.lifecycle import ALL_ROLES
from punchlist.kernel.tool import Arguments, ListToolSpec, ToolResult, schema
from punchlist.verification.validation import CHECK_SCHEMA, VERIFICATION_SCHEMA

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists

_TEXT = {"type": "string", "minLength": 1, "maxLength": checklist_validation.MAX_TEXT_LENGTH}
_STATUS = {"type": "string", "enum": [status.value for status in ChecklistStatus]}
_SENT_STATUS = {"type": "string", "enum": [status.value for status in SENDABLE]}

_INPUT = schema(
    ["todos"],
    todos={
        "type": "array",
        "maxItems": checklist_validation.MAX_ITEMS,
        "items": schema(
            ["content", "status", "activeForm"],
            content=_TEXT,
            status=_SENT_STATUS,
            activeForm=_TEXT,
            id={"type": "string", "description": "Keeps an item's identity when its content changes"},
            reason={"type": "string", "description": "Why it is cancelled"},
            check=CHECK_SCHEMA,
        ),
    },
)
_ITEM = schema(
    ["id", "content", "status", "activeForm"],
    id={"type": "string"},
    content={"type": "string"},
    status=_STATUS,
    activeForm={"type": "string"},
    reason={"type": "string"},
    **VERIFICATION_SCHEMA,
)
_OUTPUT = schema(
    ["todos", "progress", "dropped"],
    todos={"type": "array", "items": _ITEM},
    progress=schema(
        ["completed", "total", "percent"],
        completed={"type": "integer"},
        total={"type": "integer"},
        percent={"type": "integer"},
    ),
    dropped={"type": "array", "items": _ITEM, "description": "Unfinished items that this call dropped"},
)


def checklist_tools(checklists: Callable[[], Checklists]) -> list[ListToolSpec[Scope]]:
    """`checklists` is called only when a tool runs, so that listing the tools opens no database."""

    def todo_write(scope: Scope, args: Arguments) -> ToolResult:
        change = checklists().rewrite(scope, args.get("todos"))
        text = render.render_for_model(change.checklist)
        if note := render.dropped_note(change.checklist):
            text += f"\n\n{note}"
        data = {
            "todos": [item_json(item) for item in change.checklist.items],
            "progress": change.checklist.progress,
            "dropped": [item_json(item) for item in change.dropped],
        }
        return ToolResult(text, data)

    return [
        ListToolSpec(
            name="TodoWrite",
            title="Write the checklist",
            description=render.GUIDANCE,
            input_schema=_INPUT,
            output_schema=_OUTPUT,
            roles=ALL_ROLES,
            read_only=False,
            run=todo_write,
            idempotent=True,
        )
    ]
