"""The MCP client: tools of the servers that the user configures. Start at `servers.py`."""
