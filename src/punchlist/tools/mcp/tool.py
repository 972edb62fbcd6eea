"""A tool of an MCP server as an `AgentTool`.

The definition comes from the server and is untrusted: names are adapted, descriptions are escaped and shortened,
and schemas that are too long for a model are replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import ELLIPSIS, excerpt, visible_block
from punchlist.toolcalls.tool import Arguments, BaseTool, Effect, Schema, ToolContext, ToolFailure
from punchlist.tools.mcp.arguments import ArgumentCheck
from punchlist.tools.mcp.settings import SEPARATOR

if TYPE_CHECKING:
    from mcp import types

    from punchlist.tools.mcp.connection import ServerConnection

MAX_DESCRIPTION_LENGTH: Final = 4_000
MAX_SCHEMA_LENGTH: Final = 100_000
_MAX_NAME_LENGTH: Final = 64
_MAX_FAILURE_LENGTH: Final = 4_000
_ANY_OBJECT: Final[Schema] = {"type": "object"}


class McpTool(BaseTool):
    def __init__(self, connection: ServerConnection, tool: types.Tool, name: str) -> None:
        self._connection = connection
        self._own_name = tool.name
        self.name = name
        self.server = connection.server.name
        # Includes a restart of the server; the connection enforces the limit of the call itself.
        self.time_limit = connection.max_call_seconds
        description = visible_block((tool.description or "")[: MAX_DESCRIPTION_LENGTH + 1])
        self.description = _cut(description, MAX_DESCRIPTION_LENGTH)
        annotations = (
            tool.annotations.model_dump(mode="json", by_alias=True, exclude_none=True) if tool.annotations else {}
        )
        # The server claims this; the policy must not rely on it.
        self.effect = Effect.READ if annotations.get("readOnlyHint") is True else Effect.EXECUTE
        schema = _canonical(tool.input_schema)
        self.schema_replaced = len(schema) > MAX_SCHEMA_LENGTH
        self.input_schema: Schema = _ANY_OBJECT if self.schema_replaced else tool.input_schema
        given = {"name": tool.name, "description": tool.description, "annotations": annotations}
        self.fingerprint = hashlib.sha256(f"{_canonical(given)}\n{schema}".encode()).hexdigest()
        """Changes with the definition of the tool."""

    def __repr__(self) -> str:
        return f"McpTool({self.name!r})"

    @cached_property
    def _check(self) -> ArgumentCheck:
        return ArgumentCheck(self.input_schema)

    def problems(self, arguments: Arguments) -> Sequence[str]:
        return self._check.problems(arguments)

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:  # noqa: ARG002
        result = await self._connection.call(self._own_name, arguments)
        if result.is_error:
            text = self._connection.redact(_text(result.content)) or "The tool gave no reason."
            raise ToolFailure(_cut(text, _MAX_FAILURE_LENGTH))
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
            resource = block.resource
            kind = f"resource {excerpt(str(resource.uri), 200)}, {excerpt(resource.mime_type or 'no type')}"
            text = getattr(resource, "text", None)
            # Servers return files in this form: the text is the result.
            return f"[{kind}, {_bytes(getattr(resource, 'blob', ''))} bytes]" if text is None else f"[{kind}]\n{text}"


def _bytes(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def make_tools(connection: ServerConnection, tools: Iterable[types.Tool]) -> list[McpTool]:
    """Tools with unique names that model providers accept."""
    taken: set[str] = set()
    made = []
    for tool in tools:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", tool.name[:1_000]) or "tool"
        base = _shorten_name(f"{connection.server.name}{SEPARATOR}{plain}")
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base[: _MAX_NAME_LENGTH - 1 - len(str(number))]}_{number}"
        taken.add(name)
        made.append(McpTool(connection, tool, name))
    return made


def _shorten_name(name: str) -> str:
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    # With a hash, since long names often differ only at the end.
    return f"{name[: _MAX_NAME_LENGTH - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def _canonical(value: Mapping[str, Any]) -> str:
    # ASCII, so that a lone surrogate can be hashed.
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
