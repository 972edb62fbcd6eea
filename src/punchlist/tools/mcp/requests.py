"""What is asked of a connected MCP server. Errors are the SDK's: `MCPError`, or `ValueError` for a malformed answer."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Final

from punchlist.toolcalls.tool import Arguments, ToolFailure

if TYPE_CHECKING:
    from mcp import Client, types
    from pydantic import TypeAdapter

MAX_TOOLS: Final = 1_000
_MOST_PAGES: Final = 200


async def request_tool_call(client: Client, tool: str, arguments: Arguments) -> types.CallToolResult:
    from mcp import MCPError, types
    from mcp.types import HEADER_MISMATCH

    # Not `client.call_tool`: that checks the result against the server's own schema, and with both from
    # one hand, a regular expression in it can keep this process busy for ever.
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
    try:
        result = await client.session.send_request(request, _answer())
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
        # The protocol's way: the session must have seen the tool's schema to send its headers.
        await list_all_pages(client, [])
        result = await client.session.send_request(request, _answer())
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailure("The tool asks for input from a person before it goes on, which is not offered here.")
    return result


@cache
def _answer() -> TypeAdapter[types.CallToolResult | types.InputRequiredResult]:
    from mcp import types
    from pydantic import TypeAdapter

    return TypeAdapter(types.CallToolResult | types.InputRequiredResult)


async def list_all_pages(client: Client, tools: list[types.Tool]) -> bool:
    """Whether the list came to its end. What there is so far is in `tools`, also when this is cancelled."""
    from mcp import types

    cursor: str | None = None
    for _ in range(_MOST_PAGES):
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
    """Whether it says anything at all. The list of tools is what every server knows, in both protocols."""
    try:
        async with asyncio.timeout(within):
            await client.session.list_tools()
    except TimeoutError:
        return False
    except Exception:  # an answer all the same
        return True
    return True
