"""Requests to a connected MCP server. They raise `MCPError`, or `ValueError` for a malformed answer."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Final

from punchlist.toolcalls.tool import Arguments, ToolFailure

if TYPE_CHECKING:
    from mcp import Client, types
    from pydantic import TypeAdapter

MAX_TOOLS: Final = 1_000
_MAX_PAGES: Final = 200


async def request_tool_call(client: Client, tool: str, arguments: Arguments) -> types.CallToolResult:
    from mcp import MCPError, types
    from mcp.types import HEADER_MISMATCH

    # Not `client.call_tool`: that validates the result with a schema of the server, whose regular expressions
    # can block this process forever.
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
    try:
        result = await client.session.send_request(request, _answer())
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
        # The session needs the schema of the tool to send the headers that the protocol requires.
        await list_all_pages(client, [])
        result = await client.session.send_request(request, _answer())
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailure("The tool asks for input from a person, which this client does not support.")
    return result


@cache
def _answer() -> TypeAdapter[types.CallToolResult | types.InputRequiredResult]:
    from mcp import types
    from pydantic import TypeAdapter

    return TypeAdapter(types.CallToolResult | types.InputRequiredResult)


async def list_all_pages(client: Client, tools: list[types.Tool]) -> bool:
    """Add all tools to `tools`, page by page, so that a cancelled call has a partial list. False when it is cut off."""
    from mcp import types

    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        room = MAX_TOOLS - len(tools)
        tools.extend(page.tools[:room])
        cursor = page.next_cursor
        if cursor is None:
            return len(page.tools) <= room
        if len(tools) == MAX_TOOLS:
            return False
    return False


async def is_responsive(client: Client, within: float) -> bool:
    """Whether the server answers a list request, which every server supports in both protocols."""
    try:
        async with asyncio.timeout(within):
            await client.session.list_tools()
    except TimeoutError:
        return False
    except Exception:  # an error is an answer, too
        return True
    return True
