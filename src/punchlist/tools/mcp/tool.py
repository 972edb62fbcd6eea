"""A tool of an MCP server, as an agent sees it.

Everything a server says of itself is a stranger's text: names are made to fit, descriptions are made
visible and cut, schemas too large to show a model are replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import ELLIPSIS, excerpt, visible_block
from punchlist.toolcalls.tool import NO_RESOURCES, Arguments, Effect, Resources, Schema, ToolContext, ToolFailure
from punchlist.tools.mcp.arguments import ArgumentCheck
from punchlist.tools.mcp.settings import SEPARATOR

if TYPE_CHECKING:
    from mcp import types

    from punchlist.tools.mcp.connection import ServerConnection

MAX_DESCRIPTION_LENGTH: Final = 4_000
MAX_SCHEMA_LENGTH: Final = 100_000
_LONGEST_NAME: Final = 64
_LONGEST_FAILURE: Final = 4_000
_ANY_OBJECT: Final[Schema] = {"type": "object"}


class McpTool:
    """Implements `AgentTool`."""

    def __init__(self, connection: ServerConnection, tool: types.Tool, name: str) -> None:
        self._connection = connection
        self._own_name = tool.name
        self.name = name
        self.server: str | None = connection.server.name
        description = visible_block((tool.description or "")[: MAX_DESCRIPTION_LENGTH + 1])
        self.description = _cut(description, MAX_DESCRIPTION_LENGTH)
        annotations = (
            tool.annotations.model_dump(mode="json", by_alias=True, exclude_none=True) if tool.annotations else {}
        )
        # A claim of the server's: policy must not take it for more than that.
        self.effect = Effect.READ if annotations.get("readOnlyHint") is True else Effect.EXECUTE
        schema = _canonical(tool.input_schema)
        self.schema_replaced = len(schema) > MAX_SCHEMA_LENGTH
        self.input_schema: Schema = _ANY_OBJECT if self.schema_replaced else tool.input_schema
        given = {"name": tool.name, "description": tool.description, "annotations": annotations}
        self.fingerprint = hashlib.sha256(f"{_canonical(given)}\n{schema}".encode()).hexdigest()
        """Changes with whatever the server says of the tool."""

    def __repr__(self) -> str:
        return f"McpTool({self.name!r})"

    @property
    def time_limit(self) -> float | None:
        """Room for a restart before the call; the call's own limit is kept by the connection."""
        return self._connection.max_call_seconds

    @cached_property
    def _check(self) -> ArgumentCheck:
        return ArgumentCheck(self.input_schema)

    def problems(self, arguments: Arguments) -> Sequence[str]:
        return self._check.problems(arguments)

    def resources(self, arguments: Arguments) -> Resources:  # noqa: ARG002
        return NO_RESOURCES

    def preview(self, arguments: Arguments) -> str:
        return visible_block(json.dumps(dict(arguments), indent=2, ensure_ascii=False, default=str))

    def command(self, arguments: Arguments) -> str | None:  # noqa: ARG002
        return None

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:  # noqa: ARG002
        result = await self._connection.call(self._own_name, arguments)
        if result.is_error:
            text = self._connection.redact(_text(result.content)) or "It gave no reason."
            raise ToolFailure(_cut(text, _LONGEST_FAILURE))
        if result.structured_content is not None:
            return result.structured_content
        return _text(result.content)


def _text(content: Sequence[types.ContentBlock]) -> str:
    return "\n".join(map(_block, content))


def _block(block: types.ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{excerpt(block.mime_type)}, {_bytes(block.data)} bytes]"
        case "resource_link":
            return f"[resource {excerpt(str(block.uri), 200)}]"
        case "resource":
            held = block.resource
            kind = f"resource {excerpt(str(held.uri), 200)}, {excerpt(held.mime_type or 'no type')}"
            text = getattr(held, "text", None)
            # Servers send files they were asked to read in this way: the text is the answer.
            return f"[{kind}, {_bytes(getattr(held, 'blob', ''))} bytes]" if text is None else f"[{kind}]\n{text}"


def _bytes(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def make_tools(connection: ServerConnection, tools: Iterable[types.Tool]) -> list[McpTool]:
    """With names that providers take, and no two alike."""
    taken: set[str] = set()
    made = []
    for tool in tools:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", tool.name[:1_000]) or "tool"
        wanted = _fitting(f"{connection.server.name}{SEPARATOR}{plain}")
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted[: _LONGEST_NAME - 1 - len(str(number))]}_{number}"
        taken.add(name)
        made.append(McpTool(connection, tool, name))
    return made


def _fitting(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    # Long names often differ at their ends only.
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + ELLIPSIS


def _canonical(value: Mapping[str, Any]) -> str:
    # ASCII, so that half of a surrogate pair can be hashed as well.
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
