"""The base of every package: lifecycle tables, ids, time, events, safe text, processes. Standard library only."""

is_program = False
"""Whether this process is the `punchlist` program. Here, since every start imports this file, and none imports more."""
