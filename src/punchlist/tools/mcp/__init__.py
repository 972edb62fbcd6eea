"""The MCP servers that a user names: their tools as ours. `servers.py` is the front door."""
