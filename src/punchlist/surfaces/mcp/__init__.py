"""The MCP server: stdio and HTTP."""
