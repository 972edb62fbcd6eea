"""Which schema a database has, and whether it is ours: what every command looks at before it begins."""

from __future__ import annotations

import re
from typing import Final

from punchlist.errors import SchemaTooNew, StoreDamaged
from punchlist.storage.store import Database, Store

REVISION: Final = "0004"
"""The newest migration: what this program reads and writes. A test ties it to the files."""

APPLICATION_ID: Final = 0x50_4C_49_53
"""'PLIS', in the header of our SQLite files: we do not write into somebody else's database."""

VERSION_TABLE: Final = "punchlist_schema"
_BEFORE_THE_FIRST: Final = "0000"
READ_REVISION: Final = f"SELECT version_num FROM {VERSION_TABLE}"


def current_revision(store: Store) -> str | None:
    """The revision a database is at; None where our version table is not there to be read."""
    if store.database.is_new():
        return None
    try:
        connection = store.database.connect()
    except Exception as error:
        store.fail(error)
    try:
        cursor = connection.cursor()
        cursor.execute(READ_REVISION)
        row = cursor.fetchone()
        return str(row[0]) if row else None
    except store.database.driver_error:
        return None
    finally:
        connection.close()


def is_older(revision: str) -> bool:
    """Whether a schema is one that can be brought along."""
    return re.fullmatch("[0-9]{4}", revision) is not None and _BEFORE_THE_FIRST < revision < REVISION


def never_was(database: Database, found: str) -> StoreDamaged:
    return StoreDamaged(
        f"The database {database.name} has schema {found!r}, which there has never been (this Punchlist has "
        f"{REVISION}): it is damaged. `punchlist db restore BACKUP` goes back to a good copy."
    )


def refuse_newer(database: Database, found: str | None) -> None:
    if found is not None and found > REVISION:
        raise SchemaTooNew(
            f"The database {database.name} has schema {found}; this Punchlist knows up to {REVISION}. "
            "It was written by a newer version: upgrade Punchlist, or use another database."
        )
