"""Adapters for agent frameworks: one module per framework, all built on `session_lists.py`."""
