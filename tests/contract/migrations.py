"""Folders of migrations: those of the program up to a version, and more that only a test has."""

from __future__ import annotations

from pathlib import Path

import pytest

from punchlist.audit import check
from punchlist.storage import migrate as migrate_module
from punchlist.storage import open as open_module
from punchlist.storage import schema_version
from punchlist.storage.migrate import FOLDER, migrate
from punchlist.storage.open import connect
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

NEXT = f"{int(SCHEMA_VERSION) + 1:04}"
AFTER_NEXT = f"{int(SCHEMA_VERSION) + 2:04}"
EXTRA = {
    f"m{NEXT}_extra": """-- Adds a column and a table; the row shows how often it was applied.
ALTER TABLE conversations ADD COLUMN note TEXT DEFAULT '' NOT NULL;
CREATE TABLE extra (
    id BIGSERIAL NOT NULL PRIMARY KEY,
    said TEXT NOT NULL
);
INSERT INTO extra (said) VALUES ('applied');
"""
}


def folder_with(folder: Path, *, up_to: str = "9999", **extra: str) -> Path:
    """The program's files up to a version, and `extra` ones: `m0005_add_note="ALTER TABLE …"`."""
    folder.mkdir(parents=True)
    for file in FOLDER.glob("*.sql"):
        if file.name[:4] <= up_to:
            (folder / file.name).write_text(file.read_text())
    for name, sql in extra.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(sql)
    return folder


def made_at(database: str, version: str, scratch: Path) -> Store:
    """A new and empty database as the program of an earlier version left it."""
    if database.startswith("sqlite"):
        Path(database.removeprefix("sqlite:///")).parent.mkdir(exist_ok=True)
    store = connect(database)
    migrate(store, folder_with(scratch / f"up-to-{version}", up_to=version))
    return store


def become_newer(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let this program be one with another migration, until the test ends."""
    monkeypatch.setattr(migrate_module, "FOLDER", folder_with(folder, **EXTRA))
    for module in (schema_version, open_module, check):
        monkeypatch.setattr(module, "SCHEMA_VERSION", NEXT)
