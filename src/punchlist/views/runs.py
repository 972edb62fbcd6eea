"""Pages of runs by status, kind, mission or todo."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.missions.changes import find_mission
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store
from punchlist.views import activity_repository

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
_MAX_CURSOR_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: Sequence[Run]
    """Newest first."""
    cursor: str | None
    """None on the last page."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": self.cursor} if self.cursor else {}
        return {"items": [run.as_json() for run in self.runs], **more}


def read_runs(
    store: Store,
    *,
    mission: str | None = None,
    todo_id: str | None = None,
    status: RunStatus | None = None,
    kind: RunKind | None = None,
    open_only: bool = False,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> RunPage:
    """A page of runs. `todo_id` includes `mission`."""
    select = activity_repository.open_runs if open_only else activity_repository.runs
    limit = max(1, min(limit, MAX_LIMIT))
    at, id = _parse_cursor(cursor) if cursor is not None else ("9999", "")
    page = {"at": at, "id": id, "status": status or "", "kind": kind or "", "most": limit + 1}
    with store.read() as tx:
        if todo_id is not None:
            found = select["todo_id"](tx, owner=todo_id, **page)
        elif mission is not None:
            found = select["mission_id"](tx, owner=find_mission(tx, mission).id, **page)
        else:
            found = select[""](tx, **page)
    more = len(found) > limit
    return RunPage(found[:limit], _cursor_after(found[limit - 1]) if more else None)


def _cursor_after(run: Run) -> str:
    return base64.urlsafe_b64encode(json.dumps([run.created_at, run.id]).encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> tuple[str, str]:
    try:
        if len(cursor) <= _MAX_CURSOR_LENGTH:
            match json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))):
                case [str(at), str(id)] if (at + id).isascii() and (at + id).isprintable():
                    return at, id
    except (ValueError, binascii.Error, RecursionError):
        pass
    raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
