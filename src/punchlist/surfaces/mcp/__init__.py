"""The lists for any MCP client."""
