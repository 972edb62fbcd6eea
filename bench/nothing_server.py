"""The SDK's own stdio server with one tool that does nothing: what MCP costs before anything is done."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("nothing")


@server.tool()
def nothing() -> str:
    """Do nothing."""
    return ""


if __name__ == "__main__":
    server.run()
