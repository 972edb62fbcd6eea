"""What every list is made of: lifecycle tables, ids, time, events, safe text.

Standard library only; no I/O.
"""
