"""Tool definitions as our own agents see them: short, since every request carries them.

A definition is the tool's own without what a model rarely needs. The tool still accepts the hidden fields and checks
the bounds that are left out here. Other clients, over MCP, see the full definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from punchlist.models.model import ToolOffer
from punchlist.toolcalls.tool import AgentTool

_HIDDEN_FIELDS: Final = {
    "TodoWrite": {"metric", "timeout"},
    "create_todo": {"order", "blockedBy", "resources", "agentType", "metric", "timeout"},
    "list_todo": {"limit", "cursor"},
    "start_todo": {"fence"},
    "complete_todo": {"fence"},
    "delegate": {"rationale"},
}
_HIDDEN_KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "default",
        "title",
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum"),
    }
)
_DESCRIPTIONS: Final = {
    # The system prompt says how to use it.
    "TodoWrite": "Replace the checklist: send every item.",
    "create_todo": "Add items to your plan, all in one call.",
    "list_todo": "Your plan in full, with answers received. The state shows the open items already.",
    "start_todo": "Mark an item as in progress. One at a time.",
    "complete_todo": "End an item: completed, cancelled (outcome: the reason) or failed (outcome: the error).",
    "wait_todo": "Make an item wait for one of: person (a question), time (ISO 8601), event (a name), todo (an item).",
    "delegate": "Give a mission to a worker and wait for its report.",
}
_FIELD_DESCRIPTIONS: Final = {"todoId": "Number or id", "person": None, "time": None, "event": None, "todo": None}
"""In place of the tool's own; None for none."""


def tool_offers(tools: Iterable[AgentTool]) -> list[ToolOffer]:
    return [_offer(tool) for tool in tools]


def _offer(tool: AgentTool) -> ToolOffer:
    if tool.server is not None:
        # Written by others, for any client.
        return ToolOffer(tool.name, tool.description, tool.input_schema)
    description = _DESCRIPTIONS.get(tool.name, " ".join(tool.description.split()))
    return ToolOffer(tool.name, description, _shortened(tool.input_schema, _HIDDEN_FIELDS.get(tool.name, set())))


def _shortened(schema: Mapping[str, Any], hidden: set[str]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _HIDDEN_KEYWORDS or (key == "required" and not value):
            continue
        if key == "properties":
            short[key] = {name: _field(name, field, hidden) for name, field in value.items() if name not in hidden}
        elif key == "anyOf":
            kinds = [_shortened(kind, hidden) for kind in value if kind != {"type": "null"}]
            # An object says more than the short form that the tool accepts beside it.
            objects = [kind for kind in kinds if kind.get("type") == "object"]
            short |= (objects or kinds)[0] if objects or len(kinds) == 1 else {key: kinds}
        else:
            short[key] = _shortened(value, hidden) if isinstance(value, Mapping) else value
    return short


def _field(name: str, schema: Mapping[str, Any], hidden: set[str]) -> dict[str, Any]:
    short = _shortened(schema, hidden)
    if name in _FIELD_DESCRIPTIONS:
        short.pop("description", None)
        short |= {"description": text} if (text := _FIELD_DESCRIPTIONS[name]) else {}
    return short
