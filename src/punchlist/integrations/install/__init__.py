"""Installs Punchlist's MCP server and hooks in the settings of third-party agents, and removes them again."""
