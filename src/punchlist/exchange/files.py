"""Files of somebody else's, read with limits; and ours, each written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible

MOST_BYTES: Final = 32_000_000
MOST_FILES: Final = 10_000
STREAM: Final = "-"
"""Stdin, and stdout."""
ENDINGS: Final = (".md", ".json")
TASKS: Final = "tasks"


def read(name: str) -> str | dict[str, str]:
    """A file's text, or the texts of a folder's files by their names."""
    if name == STREAM:
        return _decoded(_some(sys.stdin.buffer, MOST_BYTES, "stdin"), "stdin")
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return _folder(path)
        with path.open("rb") as file:
            return _decoded(_some(file, MOST_BYTES, visible(name)), visible(name))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot read {visible(name)} ({getattr(error, 'strerror', None) or error}).") from None


def _folder(path: Path) -> dict[str, str]:
    """The tasks in a folder; of a whole backlog, those in its folder for tasks."""
    if not any(one.suffix in ENDINGS and one.stem != "README" for one in path.iterdir()) and (path / TASKS).is_dir():
        path = path / TASKS
    # A pipe or a device would keep us waiting, a name that begins with a dot is for somebody else.
    names = sorted(one for one in path.iterdir() if one.suffix in ENDINGS and one.name[0] != "." and one.is_file())
    if len(names) > MOST_FILES:
        raise InvalidInput(f"{visible(path)} has {len(names):,} files; at most {MOST_FILES:,} are read.")
    found: dict[str, str] = {}
    left = MOST_BYTES
    for one in names:
        with one.open("rb") as file:
            data = _some(file, left, visible(path))
        left -= len(data)
        found[one.name] = _decoded(data, visible(one.name))
    return found


def _some(file: IO[bytes], most: int, name: str) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise InvalidInput(f"{name} has more than {MOST_BYTES // 1_000_000} MB; that is no list of tasks.")
    return data


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name} is not text in UTF-8 (line {line}).") from None


def in_the_way(target: Path, names: Mapping[str, str] | None) -> str | None:
    """What is there already, in words, when writing would replace it or mix with it."""
    try:
        if names is None:
            return f"{visible(target)} exists already." if target.exists() or target.is_symlink() else None
        if target.exists() and not target.is_dir():
            return f"{visible(target)} is a file, and a folder is needed."
        there = [one for one in target.iterdir() if one.suffix in ENDINGS] if target.is_dir() else []
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot write {visible(target)} ({getattr(error, 'strerror', None) or error}).") from None
    return f"{visible(target)} has tasks already, or what may be some." if there else None


def write(target: Path, written: str) -> None:
    """The whole file at once: whoever reads it meanwhile finds the old one."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except (OSError, ValueError) as error:
        _forget(partial)
        raise InvalidInput(f"Cannot write {visible(target)} ({getattr(error, 'strerror', None) or error}).") from error


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot write {visible(folder)} ({getattr(error, 'strerror', None) or error}).") from error
    for name, written in files.items():
        write(folder / name, written)


def _forget(partial: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        partial.unlink(missing_ok=True)
