"""The tool with which the Lead adds and retires strategies (M18).

MCP members have it as an action of `mission_control`, which keeps their tools within X1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, schema
from punchlist.missions.model import MissionScope
from punchlist.missions.strategies import MAX_LENGTH, STRATEGISTS
from punchlist.missions.todos.tool_arguments import FieldReader
from punchlist.missions.todos.validation import MAX_REASON_LENGTH

if TYPE_CHECKING:
    from punchlist.missions.strategies import Strategies

_ACTIONS: Final = {"add": "add", "retire": "retire"}
_STRING: Final[Schema] = {"type": "string", "minLength": 1}


def strategy_tool(strategies: Callable[[], Strategies]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        reader = FieldReader(args)
        mission = reader.line("missionSlug", required="the slug of a mission") or ""
        pillar = reader.line("pillarSlug", required="the slug of a pillar") or ""
        action = reader.choice("action", _ACTIONS)
        if not reader.given("action"):
            reader.problems.append(f"action: is required; one of {', '.join(_ACTIONS)}")
        text = reader.block("text", max_length=MAX_LENGTH, required="the strategy") or ""
        reason = reader.block("reason", max_length=MAX_REASON_LENGTH, required="say why") or ""
        reader.finish()
        change = strategies().add if action == "add" else strategies().retire
        strategy = camel_json(change(scope, mission, pillar, text, reason), "id", "description", "status")
        return ToolResult(json.dumps(strategy, ensure_ascii=False), strategy)

    return ListToolSpec(
        name="mission_strategy",
        title="Add or retire a strategy",
        description="Add a strategy to a pillar, or retire one that is no longer pursued (text: a part of it).",
        input_schema=schema(
            ["missionSlug", "pillarSlug", "action", "text", "reason"],
            missionSlug=_STRING,
            pillarSlug=_STRING,
            action={"type": "string", "enum": list(_ACTIONS)},
            text={**_STRING, "maxLength": MAX_LENGTH},
            reason={**_STRING, "maxLength": MAX_REASON_LENGTH},
        ),
        output_schema=schema(["id", "description", "status"], id=_STRING, description=_STRING, status=_STRING),
        roles=STRATEGISTS,
        read_only=False,
        run=run,
    )
