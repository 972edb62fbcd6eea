"""The configured MCP servers: open them, list their tools, close them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from punchlist.errors import ConfigError
from punchlist.toolcalls.tool import ToolFailure
from punchlist.tools.mcp.connection import ServerConnection
from punchlist.tools.mcp.settings import McpServer, ReconnectPolicy
from punchlist.tools.mcp.tool import MAX_SCHEMA_LENGTH, McpTool, make_tools

__all__ = ["McpServer", "McpServers", "McpTool", "ReconnectPolicy"]


class McpServers:
    """Starts servers when their tools are listed; leaving the context ends every process and connection."""

    def __init__(self, servers: Sequence[McpServer], *, reconnect: ReconnectPolicy | None = None) -> None:
        names = [server.name for server in servers]
        if duplicates := {name for name in names if names.count(name) > 1}:
            raise ConfigError(f"Two MCP servers are named '{min(duplicates)}'. Give each server its own name.")
        self._connections = [ServerConnection(server, reconnect or ReconnectPolicy()) for server in servers]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        closing = asyncio.gather(*(connection.close() for connection in self._connections))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Closing takes a few seconds at most and must not leave processes behind.
            await closing
            raise

    async def tools(self) -> tuple[list[McpTool], list[str]]:
        """The current tools of every server that answers, and a note for every one that does not."""
        answers = await asyncio.gather(*map(_tools, self._connections))
        return [tool for tools, _ in answers for tool in tools], [note for _, notes in answers for note in notes]


async def _tools(connection: ServerConnection) -> tuple[list[McpTool], list[str]]:
    try:
        listing = await connection.list_tools()
    except ToolFailure as failure:
        return [], [str(failure)]
    tools = make_tools(connection, listing.tools)
    name = connection.server.name
    notes = [
        f"MCP server '{name}': the input schema of {tool.name} is longer than {MAX_SCHEMA_LENGTH:,} characters. "
        "The tool is offered without it."
        for tool in tools
        if tool.schema_replaced
    ]
    if not listing.complete:
        notes.append(f"MCP server '{name}': the list of tools is too long. The first {len(tools):,} are offered.")
    return tools, notes
