"""The schema version of a database. `open.read_schema_version` reads it."""

from __future__ import annotations

import re
from typing import Final

from punchlist.errors import SchemaTooNew, SchemaTooOld, StoreDamaged, StoreError
from punchlist.storage.database import Database

SCHEMA_VERSION: Final = "0023"
"""The number of the newest file in `migrations/`; a test compares them."""
SCHEMA_DIGESTS: Final = {
    "sqlite": "c0fbde7bb34d8c05299d8c0400a28da84f18c66da7fe2857096dab2618b28e4e",
    "postgresql": "01fb8c743a635753595b52bf70b11bba170487a338490f46130200ebcd87ec1e",
}
"""The digests of all tables, indexes, triggers and views of this version; a test compares them with the files."""
BASELINE: Final = "0004"
"""The oldest version that can be upgraded."""

APPLICATION_ID: Final = 0x50_4C_49_53
"""'PLIS' in the header of a SQLite file marks it as a Punchlist database."""

VERSION_TABLE: Final = "punchlist_schema"
READ_VERSION: Final = f"SELECT version_num FROM {VERSION_TABLE}"


def unsupported_version(name: str, version: str) -> StoreError | None:
    """Why this program can neither use nor upgrade the database `name`; None if it can."""
    if version > SCHEMA_VERSION:
        return SchemaTooNew(
            f"The database {name} has schema {version}; this Punchlist supports up to {SCHEMA_VERSION}. "
            "A newer version wrote it: upgrade Punchlist, or use another database."
        )
    if not re.fullmatch("[0-9]{4}", version) or version == "0000":
        return StoreDamaged(
            f"The database {name} has schema {version!r}, which no Punchlist version wrote (this one has "
            f"{SCHEMA_VERSION}): it is damaged. Run `punchlist db restore BACKUP` to restore a backup."
        )
    if version < BASELINE:
        return SchemaTooOld(
            f"The database {name} has schema {version}, which a development version before the first release wrote; "
            f"this Punchlist has {SCHEMA_VERSION} and upgrades from {BASELINE}. Run `punchlist export` with that "
            "version and `punchlist import` with this one, or use another database."
        )
    return None


def untracked_tables(database: Database) -> StoreDamaged:
    return StoreDamaged(
        f"The database {database.name} has tables but no schema version: it is damaged, or belongs to another "
        "program. Nothing was changed."
    )
