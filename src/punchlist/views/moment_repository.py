"""SQL of lists at a moment. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.kernel.events import Event
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.event_log import SELECT_EVENTS
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals


class ListChange(NamedTuple):
    """A change in the stream of a list."""

    version: int
    at: str
    actor: str
    action: str
    subject: str
    from_status: str | None
    to_status: str | None
    reason: str


newest_version: Final = SelectOne[int](
    first_column, "SELECT coalesce(max(version), 0) FROM events WHERE stream = :stream"
)
version_at: Final = SelectOne[int](
    first_column, "SELECT version FROM events WHERE stream = :stream AND at <= :at ORDER BY version DESC LIMIT 1"
)
changes: Final = SelectAll(
    ListChange._make,
    f"SELECT {columns(ListChange._fields)} FROM events WHERE stream = :stream AND version > :after "
    "ORDER BY version LIMIT :most",
)
# The first condition is that of a partial index.
_OF_MISSION: Final = "substr(stream, 1, 8) = 'mission:' AND stream = :stream"
statuses_at: Final = SelectAll[tuple[str, str]](
    tuple,
    "SELECT events.subject, events.to_status FROM events JOIN (SELECT subject, max(version) AS version FROM events "
    f"WHERE {_OF_MISSION} AND to_status IN ({literals(TodoStatus)}) AND version <= :version GROUP BY subject) AS last "
    "ON events.stream = :stream AND events.version = last.version ORDER BY events.version DESC",
)
"""Each mission todo with its status after a version; those that changed last come first."""
todo_events: Final = SelectAll(
    lambda row: Event(*row),
    f"{SELECT_EVENTS} WHERE {_OF_MISSION} AND subject = :subject AND version <= :version ORDER BY version",
)
