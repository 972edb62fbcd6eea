"""Which session a command works in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchlist.config import DEFAULT_SESSION, Settings
from punchlist.views import repository

if TYPE_CHECKING:
    from punchlist.conversations.model import StoredTurn
    from punchlist.storage.store import Store


def current_session(store: Store, settings: Settings) -> str:
    """The session that was named; else the session of this project that was used last."""
    if settings.session_is_named:
        return settings.session
    with store.read() as tx:
        return repository.last_used_session(tx, _project(settings)) or settings.session


def new_session_id(settings: Settings) -> str:
    """An id for a new session of this project."""
    from punchlist.kernel.ids import short_id

    project = _project(settings)
    return f"{project}-run-{short_id()}" if project else f"run-{short_id()}"


def running_turns(store: Store) -> list[StoredTurn]:
    """The turns that a living process works on, oldest first."""
    from punchlist.kernel.processes import is_running

    with store.read() as tx:
        return [turn for turn in repository.open_turns(tx) if turn.owner and is_running(turn.owner) is not False]


def _project(settings: Settings) -> str:
    """The prefix of the project's sessions in a shared database; empty where the database is the project's own."""
    return "" if settings.session == DEFAULT_SESSION else settings.session
