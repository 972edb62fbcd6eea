"""SQL of `checklists`. The caller owns the transaction."""

from __future__ import annotations

import json
import zlib
from typing import Final

from punchlist.checklist.model import EMPTY_CHECKLIST, Checklist, ChecklistItem, items_from_json, stored_item
from punchlist.errors import Conflict, StoreDamaged
from punchlist.storage import event_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

FIND: Final = Statement(
    "SELECT items, revision, undo_to, updated_at, checksum FROM checklists WHERE conversation_id = :conversation_id"
)
# The condition on the revision prevents lost updates, whatever the caller has locked.
SAVE: Final = Statement(
    "INSERT INTO checklists (conversation_id, items, revision, undo_to, updated_at, checksum) "
    "VALUES (:conversation_id, :items, :revision, :undo_to, :updated_at, :checksum) "
    "ON CONFLICT (conversation_id) DO UPDATE SET items = excluded.items, revision = excluded.revision, "
    "undo_to = excluded.undo_to, updated_at = excluded.updated_at, checksum = excluded.checksum "
    "WHERE checklists.revision = :revision - 1"
)


def checklist_stream(conversation_id: str) -> str:
    """The event stream of a session's checklist."""
    return f"checklist:{conversation_id}"


def find_checklist(tx: Transaction, conversation_id: str) -> Checklist:
    """The session's checklist; an empty one if it has none."""
    row = tx.one(FIND, conversation_id=conversation_id)
    if row is None:
        # A damaged index hides the row. The event log has indexes of its own.
        if event_log.has_events(tx, checklist_stream(conversation_id)):
            raise _damaged(conversation_id)
        return EMPTY_CHECKLIST
    items, revision, undo_to, updated_at, checksum = row
    try:
        valid = checksum in (
            _checksum(conversation_id, items, revision, undo_to, updated_at),
            # Rows of schema 0004.
            _checksum(conversation_id, items, revision, undo_to),
        )
    except TypeError:
        # A column holds something other than text.
        valid = False
    if not valid:
        raise _damaged(conversation_id)
    return Checklist(items_from_json(json.loads(items)), revision, undo_to, updated_at)


def save_checklist(tx: Transaction, conversation_id: str, checklist: Checklist) -> None:
    """Write the next revision; raises Conflict if another writer was first."""
    items = json.dumps([stored_item(item) for item in checklist.items], ensure_ascii=False)
    changed = tx.run(
        SAVE,
        conversation_id=conversation_id,
        items=items,
        revision=checklist.revision,
        undo_to=checklist.undo_to,
        updated_at=checklist.updated_at,
        checksum=_checksum(conversation_id, items, checklist.revision, checklist.undo_to, checklist.updated_at or ""),
    )
    if not changed:
        raise Conflict("Another writer changed the checklist at the same moment. Read it again and retry.")


def find_revision(tx: Transaction, conversation_id: str, revision: int) -> tuple[tuple[ChecklistItem, ...], int]:
    """The items and `undo_to` of an earlier revision, from the event log."""
    if revision == 0:
        return (), 0
    event = event_log.at_version(tx, checklist_stream(conversation_id), revision)
    if event is None:
        raise StoreDamaged(
            f"Revision {revision} of the checklist is missing from the event log. Run `punchlist db check`."
        )
    data = event.payload()
    return items_from_json(data["items"]), data["undo_to"]


def _damaged(conversation_id: str) -> StoreDamaged:
    return StoreDamaged.not_as_written(f"The checklist of session {conversation_id!r}")


def _checksum(conversation_id: str, items: str, *fields: int | str) -> int:
    return zlib.crc32("\x1f".join((conversation_id, items, *map(str, fields))).encode())
