"""The SDK's stdio server with one no-op tool: the minimum cost of an MCP call."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("nothing")


@server.tool()
def nothing() -> str:
    """Do nothing."""
    return ""


if __name__ == "__main__":
    server.run()
