"""Named access tokens for MCP over HTTP: a role on one database, until they expire or are revoked."""
