"""Our tables, as SQLAlchemy finds them in a new database."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import MetaData

from punchlist.storage.open import open_store
from punchlist.storage.schema_version import VERSION_TABLE


@cache
def our_tables() -> MetaData:
    found = MetaData()
    with TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "new.db"))
        found.reflect(store.engine, only=lambda name, _: name != VERSION_TABLE)
        store.close()
    return found
