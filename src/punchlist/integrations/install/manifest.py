"""The record of an installation, in the user's data folder, from which it is undone."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.integrations.install.files import write_private

_INVALID: Final = (OSError, ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class FileRecord:
    path: str
    before: bytes | None
    """The content before the installation; None if there was no file."""
    after: str
    """The digest of the installed content."""


@dataclass(frozen=True, slots=True)
class InstallRecord:
    program: tuple[str, ...]
    custom: bool = False
    """A person chose the program with `--command`."""
    folders: tuple[str, ...] = ()
    """The folders that we created, outer ones first."""
    files: tuple[FileRecord, ...] = ()

    def find(self, path: Path) -> FileRecord | None:
        return next((file for file in self.files if file.path == str(path)), None)


class InstallManifest:
    """The record of one host at one location."""

    def __init__(self, data: Path, host: str, scope: str, root: Path) -> None:
        name = digest(str(root).encode(errors="surrogateescape"))[:16]
        self._file = data / "installs" / f"{host}-{scope}-{name}.json"
        self._location = {"host": host, "scope": scope, "root": str(root)}

    def read(self) -> InstallRecord | None:
        """None also for an invalid record: entries are then recognised by their commands."""
        try:
            raw = json.loads(self._file.read_bytes())
            files = tuple(_parse_file(file) for file in raw["files"])
            return InstallRecord(tuple(raw["program"]), bool(raw["custom"]), tuple(raw["folders"]), files)
        except _INVALID:
            return None

    def write(self, record: InstallRecord | None) -> None:
        if record is None:
            with suppress(FileNotFoundError):
                self._file.unlink()
            return
        content = {**self._location, **asdict(record)}
        for file in content["files"]:
            file["before"] = base64.b64encode(file["before"]).decode() if file["before"] is not None else None
        write_private(self._file, json.dumps(content, indent=1).encode())


def recorded_locations(data: Path, host: str) -> Iterator[tuple[str, str]]:
    """The scope and the root of each recorded installation of a host."""
    for file in sorted((data / "installs").glob(f"{host}-*.json")):
        with suppress(*_INVALID):
            raw = json.loads(file.read_bytes())
            yield raw["scope"], raw["root"]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parse_file(raw: dict[str, Any]) -> FileRecord:
    before = base64.b64decode(raw["before"]) if raw["before"] is not None else None
    return FileRecord(raw["path"], before, raw["after"])
