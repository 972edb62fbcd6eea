"""Checks that answer most hooks without loading the list services.

Loading the services takes most of a hook's time, and a hook runs after every tool call and every stop.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

_OPEN_ITEMS: Final = """\
SELECT EXISTS (
    SELECT 1 FROM turn_todos JOIN turns ON turns.id = turn_todos.turn_id
    WHERE turns.conversation_id = :session AND turns.ended_at IS NULL
    AND turn_todos.status IN ('pending', 'in_progress')
) OR EXISTS (
    SELECT 1 FROM checklists, json_each(checklists.items) AS item
    WHERE checklists.conversation_id = :session
    AND coalesce(json_extract(item.value, '$.status'), '') <> 'completed'
)"""
_COUNTER_FOLDER: Final = "uses"
_COUNTER_NAME: Final = re.compile("[0-9a-f]{16}")
_MAX_COUNTER_AGE: Final = 7 * 24 * 3600.0


def nothing_open(database: str, session: str) -> bool:
    """True if neither the plan nor the checklist of a session has open items; False if unknown."""
    path = Path(database.removeprefix("sqlite:///")).expanduser()
    if "://" in str(path) or not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as connection:
            return not connection.execute(_OPEN_ITEMS, {"session": session}).fetchone()[0]
    except (sqlite3.Error, ValueError):
        return False


class ToolCounter:
    """Counts an agent's tool calls since it last touched its list: a file with one byte per call."""

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder / _COUNTER_FOLDER
        self._file = self._folder / hashlib.sha256(session.encode()).hexdigest()[:16]

    def increment(self) -> int:
        """Return the new count; 0 if it cannot be stored."""
        try:
            self._folder.mkdir(exist_ok=True)
            if self._folder.is_symlink():
                return 0
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return 0
        try:
            os.write(handle, b".")
            return os.fstat(handle).st_size
        except OSError:
            return 0
        finally:
            os.close(handle)

    def is_started(self) -> bool:
        return self._file.exists()

    def clear(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def remove_old(self, now: float) -> None:
        """Delete the counters of old sessions.

        The folder belongs to a project that may come from another author: a symbolic link is not followed, and only
        files with a counter's name are deleted.
        """
        with suppress(OSError):
            for file in () if self._folder.is_symlink() else self._folder.iterdir():
                if _COUNTER_NAME.fullmatch(file.name) and now - file.lstat().st_mtime > _MAX_COUNTER_AGE:
                    file.unlink(missing_ok=True)
