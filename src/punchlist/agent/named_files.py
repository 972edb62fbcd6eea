"""Files that a text names, to be shown at the start of a fresh context: it saves a call, and small models forget it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

MAX_FILES: Final = 3
MAX_SIZE: Final = 6_000
"""Bytes of all files together. An agent reads longer ones itself, in parts."""
_PATH: Final = re.compile(r"[\w.~/-]*\w\.\w{1,10}\b")


def named_files(folder: Path, texts: Iterable[str]) -> list[str]:
    """Paths of small files below the folder that the texts name, in their order."""
    found: dict[Path, str] = {}
    folder, size = folder.resolve(), 0
    for name in (name for text in texts for name in _PATH.findall(text)):
        try:
            path = (folder / name).resolve()
            length = path.stat().st_size if path.is_file() else MAX_SIZE + 1
        except (OSError, RuntimeError):
            continue
        if len(found) < MAX_FILES and 0 < length <= MAX_SIZE - size and path.is_relative_to(folder):
            size += length if path not in found else 0
            found.setdefault(path, os.path.relpath(path, folder) if name.startswith(("/", "~")) else name)
    return list(found.values())


def files_text(contents: Sequence[tuple[str, str]]) -> str:
    """The files as a message."""
    shown = "\n\n".join(f"{path}:\n```\n{content}\n```" for path, content in contents)
    return f"Files that are named, as they are now:\n\n{shown}"
