"""The base of every package: lifecycle tables, ids, time, events, safe text, processes. Standard library only."""
