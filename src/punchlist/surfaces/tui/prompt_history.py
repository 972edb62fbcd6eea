"""Earlier prompts of a project: stored in the user's data folder, recalled with the arrow keys, searchable.

The file is outside of the project, so that a project cannot contain prompts of another author. Each line is a JSON
string. Several applications may append at the same time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.trust import UnsafeFile, read_regular, user_folder

MAX_ENTRIES: Final = 1_000
MAX_FILE_BYTES: Final = 4_000_000
MAX_ENTRY_LENGTH: Final = 20_000
"""Longer prompts are not kept."""


class PromptHistory:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: list[str] | None = None

    @classmethod
    def of_project(cls, root: Path, environment: Mapping[str, str]) -> PromptHistory:
        name = hashlib.sha256(str(root.resolve()).encode(errors="surrogateescape")).hexdigest()[:16]
        return cls(user_folder(environment, "XDG_DATA_HOME", ".local/share") / "prompts" / f"{name}.jsonl")

    @property
    def entries(self) -> list[str]:
        """Oldest first; each text once, at its last use."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def add(self, text: str) -> None:
        text = text.strip()
        if not text or len(text) > MAX_ENTRY_LENGTH or self.entries[-1:] == [text]:
            return
        with suppress(ValueError):
            self.entries.remove(text)
        self.entries.append(text)
        # A prompt is sent even if the disk is full.
        with suppress(OSError):
            self._append(text)

    def search(self, words: str, limit: int = 50) -> list[str]:
        """Prompts that contain all words, newest first."""
        wanted = words.lower().split()
        found = (entry for entry in reversed(self.entries) if all(word in entry.lower() for word in wanted))
        return [entry for entry, _ in zip(found, range(limit), strict=False)]

    def _read(self) -> list[str]:
        try:
            content = read_regular(self._path, MAX_FILE_BYTES)
        except (OSError, UnsafeFile):
            return []
        entries: dict[str, None] = {}
        for line in content.splitlines():
            with suppress(ValueError, RecursionError):
                entry = json.loads(line)
                if isinstance(entry, str):
                    entries.pop(entry, None)
                    entries[entry] = None
        return list(entries)[-MAX_ENTRIES:]

    def _append(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = json.dumps(text).encode() + b"\n"
        with suppress(FileNotFoundError):
            if self._path.stat().st_size + len(line) > MAX_FILE_BYTES // 2:
                self._rewrite()
                return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self._path, flags, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(line)

    def _rewrite(self) -> None:
        """Keep the newest entries only."""
        kept: list[bytes] = []
        size = 0
        for entry in reversed(self.entries):
            line = json.dumps(entry).encode() + b"\n"
            size += len(line)
            if size > MAX_FILE_BYTES // 4:
                break
            kept.append(line)
        beside = self._path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(reversed(kept))
        beside.replace(self._path)


class HistoryCursor:
    """Walks through the entries. The draft is kept and comes back at the end."""

    def __init__(self, entries: list[str], draft: str) -> None:
        self._texts = [*entries, draft]
        self._place = len(entries)

    @property
    def text(self) -> str:
        return self._texts[self._place]

    def move(self, step: int) -> str | None:
        """The text one step away; None at the end."""
        if not 0 <= self._place + step < len(self._texts):
            return None
        self._place += step
        return self.text
