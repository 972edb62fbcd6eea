"""The tools of an agent: files, search, commands, MCP servers, and own functions."""
