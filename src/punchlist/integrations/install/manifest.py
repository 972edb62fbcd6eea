"""What an installation made, kept in the user's own folder: so that undoing it leaves nothing but what was there."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from punchlist.integrations.install.files import write_private
from punchlist.integrations.install.settings_json import Way
from punchlist.integrations.install.text_edits import InsertedText


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file as it was before us, None if there was none, and what we put into it.

    `after` is for the file with our own values in our entries, whatever a person chose there.
    """

    path: str
    before: bytes | None
    after: str
    inserted: tuple[InsertedText, ...] = ()
    made: tuple[Way, ...] = ()

    def made_this(self, content: bytes) -> bool:
        """Whether a file is, to the byte, as we left it."""
        return digest(content) == self.after


@dataclass(frozen=True, slots=True)
class InstallRecord:
    program: tuple[str, ...]
    named: bool = False
    """Whether somebody named the program, and did not leave it to us."""
    folders: tuple[str, ...] = ()
    """The folders that we made, the outer ones first."""
    files: tuple[FileRecord, ...] = field(default=())

    def of(self, path: Path) -> FileRecord | None:
        return next((one for one in self.files if one.path == str(path)), None)


class InstallManifest:
    """The record of one host at one place."""

    def __init__(self, data: Path, host: str, scope: str, root: Path) -> None:
        name = digest(str(root).encode(errors="surrogateescape"))[:16]
        self._file = data / "installs" / f"{host}-{scope}-{name}.json"
        self._about = {"host": host, "scope": scope, "root": str(root)}

    def read(self) -> InstallRecord | None:
        """None also for what cannot be relied upon: our entries are then known by their commands."""
        try:
            told = json.loads(self._file.read_bytes())
            files = tuple(_file_record(one) for one in told["files"])
            return InstallRecord(tuple(told["program"]), bool(told["named"]), tuple(told["folders"]), files)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def write(self, record: InstallRecord | None) -> None:
        if record is None:
            with suppress(FileNotFoundError):
                self._file.unlink()
            return
        told = {**self._about, **asdict(record), "files": [_told(one) for one in record.files]}
        write_private(self._file, json.dumps(told, indent=1).encode())


def installed(data: Path, host: str) -> Iterator[tuple[str, str]]:
    """The scope and the folder of each place where a host has us on record."""
    for file in sorted((data / "installs").glob(f"{host}-*.json")):
        try:
            told = json.loads(file.read_bytes())
            yield told["scope"], told["root"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue


def _told(one: FileRecord) -> dict[str, Any]:
    before = base64.b64encode(one.before).decode() if one.before is not None else None
    return {"path": one.path, "before": before, "after": one.after, "inserted": one.inserted, "made": one.made}


def _file_record(told: dict[str, Any]) -> FileRecord:
    before = base64.b64decode(told["before"]) if told["before"] is not None else None
    made = tuple(tuple(way) for way in told["made"])
    return FileRecord(
        told["path"], before, told["after"], tuple(InsertedText(*piece) for piece in told["inserted"]), made
    )


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
