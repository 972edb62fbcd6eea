"""The tools of the lists as `AgentTool`s, bound to the scope of their caller."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from punchlist.kernel.events import canonical_json
from punchlist.kernel.tool import ListToolSpec, ToolResult
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.toolcalls.tool import Arguments, BaseTool, Effect, Schema, ToolContext

C = TypeVar("C")


class ListTool(BaseTool, Generic[C]):
    """A list tool with its scope, which the model cannot change (T7).

    The list validates its own input, with better messages than the schema gives.
    """

    def __init__(self, tool: ListToolSpec[C], scope: C, bridge: AsyncBridge) -> None:
        self._tool = tool
        self._bridge = bridge
        self._scope = scope
        self.name = tool.name
        self.description = tool.description
        self.input_schema: Schema = tool.input_schema
        self.effect = Effect.READ if tool.read_only else Effect.LIST

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        return await self._call(arguments, running.call_id)

    async def _call(self, arguments: Arguments, call_id: str) -> ToolResult:
        field = self._tool.request_field
        if field is not None and arguments.get(field) is None:
            arguments = {**arguments, field: call_id}
        return await self._bridge(self._tool.run, self._scope, arguments)


class RepeatableListTool(ListTool[C]):
    """An idempotent list tool: a call that was interrupted is made again."""

    def __init__(self, tool: ListToolSpec[C], scope: C, bridge: AsyncBridge) -> None:
        super().__init__(tool, scope, bridge)
        self._interrupted: dict[str, str] = {}

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        self._interrupted[canonical_json(dict(arguments))] = call_id

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        # With the id of the interrupted call: if that has taken effect, the list recognizes the id.
        return await self._call(arguments, self._interrupted.pop(canonical_json(dict(arguments)), running.call_id))


def list_tool(tool: ListToolSpec[C], scope: C, bridge: AsyncBridge) -> ListTool[C]:
    return RepeatableListTool(tool, scope, bridge) if tool.idempotent else ListTool(tool, scope, bridge)
