"""The agent: a loop that finishes its list."""
