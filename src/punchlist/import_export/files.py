"""Files of somebody else's, read with limits; and ours, each written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import IO, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible

MOST_BYTES: Final = 32_000_000
MOST_FILES: Final = 10_000
STREAM: Final = "-"
"""Stdin, and stdout."""
ENDINGS: Final = (".md", ".json")
TASKS: Final = "tasks"
CONFIG: Final = "config.yml"
ASIDE: Final = ("completed", "drafts", "archive/tasks")
"""Where Backlog.md puts what is not worked on."""


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
        at = getattr(error, "filename", None) or name
        raise InvalidInput(f"Cannot read {visible(at)} ({getattr(error, 'strerror', None) or error}).") from None


def _folder(path: Path) -> dict[str, str]:
    """The tasks in a folder; of a whole backlog, those in its folder for tasks."""
    path = path / TASKS if _is_backlog(path) else path
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


def _is_backlog(path: Path) -> bool:
    if not (path / TASKS).is_dir():
        return False
    return (path / CONFIG).is_file() or not any(one.suffix in ENDINGS for one in path.iterdir())


def skipped_folders(name: str) -> list[str]:
    """What of a whole backlog is not read, in words."""
    path = Path(name).expanduser()
    if not path.is_dir() or not _is_backlog(path):
        return []
    counts = {one: sum(1 for _ in (path / one).glob("*.md")) for one in ASIDE}
    return [
        f"{visible(path / one)} is left out ({count} file{'' if count == 1 else 's'}); it can be imported by itself"
        for one, count in counts.items()
        if count
    ]


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


def overwrite_warning(target: Path, names: Mapping[str, str] | None) -> str | None:
    """What is there already, in words, when writing would replace it or mix with it."""
    try:
        if names is None:
            there = target.is_symlink() or target.exists()
            return f"{visible(target)} exists already." if there and not _takes_all(target) else None
        if target.exists() and not target.is_dir():
            return f"{visible(target)} is a file, and a folder is needed."
        found = [one for one in target.iterdir() if one.suffix in ENDINGS] if target.is_dir() else []
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    return f"{visible(target)} has tasks already, or what may be some." if found else None


def _takes_all(target: Path) -> bool:
    """A pipe or a device: nothing is in it that could be replaced, and nothing could take its place."""
    return target.exists() and not target.is_file() and not target.is_dir()


def write(target: Path, written: str) -> None:
    """The whole file at once: whoever reads it meanwhile finds the old one."""
    if not _takes_all(target):
        _put({target: written})
        return
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            file.write(written)
    except OSError as error:
        raise _unwritable(target, error) from error


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """All of them or none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ids = {_id(name): name for name in files}
        for there in sorted(folder.iterdir()):
            ours = ids.get(_id(there.name))
            if ours is not None and ours != there.name and there.suffix in ENDINGS:
                raise InvalidInput(
                    f"{visible(there)} has the id of “{visible(ours)}”, and would stay beside it. Move it away, or "
                    "name another folder. Nothing was written."
                )
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from error
    _put({folder / name: written for name, written in files.items()})


def _id(name: str) -> str:
    """Of the task that is in a file of that name; a disk may not tell small letters from large ones."""
    return name.removesuffix(".md").partition(" - ")[0].lower()


def _put(files: Mapping[Path, str]) -> None:
    """None has its name before all are on the disk."""
    partials = {target: target.with_name(f".{token_hex(8)}.partial") for target in files}
    target = Path()
    try:
        for target, written in files.items():
            _write_new(partials[target], written, like=target)
        for target in files:
            os.replace(partials[target], target)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from error
    finally:
        for partial in partials.values():
            with contextlib.suppress(OSError, ValueError):
                partial.unlink(missing_ok=True)


def _write_new(partial: Path, written: str, like: Path) -> None:
    with partial.open("x", encoding="utf-8", newline="\n") as file:
        if like.is_file() and not like.is_symlink():
            # Who may read it stays as it was.
            partial.chmod(stat.S_IMODE(like.stat().st_mode))
        file.write(written)
        file.flush()
        os.fsync(file.fileno())


def _unwritable(target: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"Cannot write {visible(target)} ({getattr(error, 'strerror', None) or error}).")
