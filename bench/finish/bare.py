"""The bare loop: ask the model, run its calls, stop at the first reply without calls. No list, nothing stored.

The work tools and their definitions are those of the other arms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.agent.context import tool_offers
from punchlist.kernel.ids import new_id
from punchlist.models.model import (
    CallReturn,
    Message,
    Model,
    ModelError,
    ModelRequest,
    RequestedCall,
    UserText,
)
from punchlist.toolcalls.tool import AgentTool, ToolFailure

PROMPT: Final = """\
You are a coding agent. You take a request, get it done with your tools, and answer when it is done. Do not assume: \
read or run something before you rely on it.

Your workspace is the folder {root}. Paths are relative to it."""
MAX_REQUESTS: Final = 100


@dataclass(frozen=True, slots=True)
class BareCall:
    """The `ToolContext` of a call."""

    call_id: str
    output_folder: Path | None = None
    deadline: float | None = None

    def output(self, text: str) -> None:
        """Live output is not shown."""


@dataclass(frozen=True, slots=True)
class BareResult:
    text: str
    reason: str


async def run_bare(model: Model, tools: Sequence[AgentTool], root: Path, goal: str) -> BareResult:
    offers = tool_offers(tools)
    named = {tool.name: tool for tool in tools}
    messages: list[Message] = [UserText(goal)]
    for _ in range(MAX_REQUESTS):
        try:
            reply = await model.ask(ModelRequest(PROMPT.format(root=root), list(messages), offers))
        except ModelError as error:
            return BareResult(str(error), "error")
        messages.append(reply)
        if not reply.calls:
            return BareResult(reply.text, "stopped")
        messages += [await run_call(named, call) for call in reply.calls]
    return BareResult("", "capped")


async def run_call(tools: Mapping[str, AgentTool], call: RequestedCall) -> CallReturn:
    tool = tools.get(call.tool)
    if tool is None:
        return CallReturn(call.id, call.tool, f"There is no tool {call.tool}.", failed=True)
    if not isinstance(call.arguments, Mapping):
        return CallReturn(call.id, call.tool, "The arguments are not a JSON object.", failed=True)
    if problems := tool.problems(call.arguments):
        return CallReturn(call.id, call.tool, "; ".join(problems), failed=True)
    try:
        # The id marks the processes of the call; the model's own ids are the same in every run.
        result: Any = await tool.run(call.arguments, BareCall(new_id()))
    except ToolFailure as error:
        return CallReturn(call.id, call.tool, str(error), failed=True)
    return CallReturn(call.id, call.tool, str(getattr(result, "text", result)))
