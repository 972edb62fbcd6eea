"""Punchlist: the todo list that AI agents finish."""

__version__ = "0.1.0"
