"""The interfaces between the scheduler and a tool: `AgentTool` and `ToolContext`.

`punchlist.tools` implements them, and so can other programs. `BaseTool` has the usual defaults. `ListTool` is a tool of
a list, bound to the scope of its caller.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from punchlist.errors import PunchlistError
from punchlist.kernel.events import canonical_json
from punchlist.kernel.text import visible_block
from punchlist.kernel.tool import ListToolSpec, ToolResult

Schema = Mapping[str, Any]
Arguments = Mapping[str, Any]


class Effect(StrEnum):
    """What a call changes. The mode of the policy decides by it."""

    READ = "read"
    LIST = "list"
    """Changes only the agent's own lists."""
    EDIT = "edit"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True)
class Resources:
    """Keys of what a call reads and writes. A writer of a key never overlaps with another writer or reader of it."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: Resources) -> Resources:
        return Resources(self.reads | other.reads, self.writes | other.writes)


NO_RESOURCES = Resources()


class ToolFailure(PunchlistError):
    """Raised by a tool that fails. The message is for the model and says what to do."""

    code: ClassVar[str] = "tool_failed"


class TransientFailure(ToolFailure):
    """A temporary failure without effect: the scheduler tries the call again once."""

    code = "transient"


class ConnectionLost(ToolFailure):
    """The connection to the tool broke during the call: only a call that reads is tried again."""

    code = "connection_lost"


class TimedOut(ToolFailure):
    """The call exceeded its time limit."""

    code = "timed_out"


class ToolContext(Protocol):
    """What a tool can use while it runs."""

    @property
    def call_id(self) -> str: ...

    @property
    def output_folder(self) -> Path | None:
        """Where to keep long output; None when nothing may be written to disk."""

    @property
    def deadline(self) -> float | None:
        """The event loop time at which the call is ended, for tools that clean up before."""

    def output(self, text: str) -> None:
        """Send live output to the listeners. Can be called from any thread."""


class AgentTool(Protocol):
    """A tool that an agent can call.

    `run` is cancelled (`asyncio.CancelledError`) when the call is; it must clean up before it passes the
    cancellation on. It returns text, JSON-like data or a `ToolResult`, and raises `ToolFailure` with a
    message for the model. Any other exception is reported as a failure of the tool.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> Schema: ...

    @property
    def effect(self) -> Effect: ...

    @property
    def server(self) -> str | None:
        """The MCP server that offers the tool; None for a local tool."""

    @property
    def time_limit(self) -> float | None:
        """In seconds; None for the default of the scheduler."""

    def problems(self, arguments: Arguments) -> Sequence[str]:
        """Problems of the arguments, each with the path of its field: `items[2].title: …`."""

    def resources(self, arguments: Arguments) -> Resources: ...

    def preview(self, arguments: Arguments) -> str:
        """What a person reads before approving, such as the command or the diff."""

    def command(self, arguments: Arguments) -> str | None:
        """The command line of a tool that runs a shell; the policy parses it."""

    async def run(self, arguments: Arguments, running: ToolContext) -> Any: ...


class BaseTool:
    """Defaults for a local tool that validates its own input and uses no resources."""

    server: str | None = None
    time_limit: float | None = None

    def problems(self, arguments: Arguments) -> Sequence[str]:  # noqa: ARG002
        return ()

    def resources(self, arguments: Arguments) -> Resources:  # noqa: ARG002
        return NO_RESOURCES

    def preview(self, arguments: Arguments) -> str:
        return visible_block(json.dumps(dict(arguments), indent=2, ensure_ascii=False, default=str))

    def command(self, arguments: Arguments) -> str | None:  # noqa: ARG002
        return None


C = TypeVar("C")
Bridge = Callable[..., Awaitable[ToolResult]]
"""Calls a synchronous function off the event loop."""


class ListTool(BaseTool, Generic[C]):
    """A list tool with its scope, which the model cannot change (T7).

    The list validates its own input, with better messages than the schema gives.
    """

    def __init__(self, tool: ListToolSpec[C], scope: C, bridge: Bridge) -> None:
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

    def __init__(self, tool: ListToolSpec[C], scope: C, bridge: Bridge) -> None:
        super().__init__(tool, scope, bridge)
        self._interrupted: dict[str, str] = {}

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        self._interrupted[canonical_json(dict(arguments))] = call_id

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        # With the id of the interrupted call: if that has taken effect, the list recognizes the id.
        return await self._call(arguments, self._interrupted.pop(canonical_json(dict(arguments)), running.call_id))


def list_tool(tool: ListToolSpec[C], scope: C, bridge: Bridge) -> ListTool[C]:
    return RepeatableListTool(tool, scope, bridge) if tool.idempotent else ListTool(tool, scope, bridge)
