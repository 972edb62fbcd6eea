"""A look into the database without all that writes to it: can there be anything open at all?

An agent that stops has mostly nothing open, and should not wait for an answer to that. Loading what reads and
checks the lists takes most of a hook's time. Whenever this is not sure, they are read as always.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

_PLANNED: Final = (
    "SELECT 1 FROM turn_todos JOIN turns ON turns.id = turn_todos.turn_id "
    "WHERE turns.conversation_id = ? AND turns.ended_at IS NULL AND turn_todos.status IN ('pending', 'in_progress') "
    "LIMIT 1"
)
_LISTED: Final = "SELECT items FROM checklists WHERE conversation_id = ?"


def surely_nothing_open(database: str, session: str) -> bool:
    """Whether neither a plan nor the checklist of a session has anything open; False also where nobody can tell."""
    path = Path(database.removeprefix("sqlite:///")).expanduser()
    if "://" in str(path) or not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as connection:
            planned = connection.execute(_PLANNED, (session,)).fetchone()
            listed = connection.execute(_LISTED, (session,)).fetchone()
        items = json.loads(listed[0]) if listed else []
        return planned is None and all(item["status"] == "completed" for item in items)
    except (sqlite3.Error, ValueError, LookupError, TypeError, RecursionError):
        return False
