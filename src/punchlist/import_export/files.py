"""Read files of other tools with limits; write files completely or not at all."""

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

MAX_BYTES: Final = 32_000_000
MAX_FILES: Final = 10_000
STDIO: Final = "-"
"""Stdin or stdout."""
SUFFIXES: Final = (".md", ".json")
TASKS: Final = "tasks"
CONFIG: Final = "config.yml"
INACTIVE: Final = ("completed", "drafts", "archive/tasks")
"""Folders of Backlog.md with tasks that are not active."""


def read_source(name: str) -> str | dict[str, str]:
    """The text of a file, or the texts of a folder's files by name."""
    if name == STDIO:
        return _decode(_read_limited(sys.stdin.buffer, MAX_BYTES, "stdin"), "stdin")
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return _read_folder(path)
        with path.open("rb") as file:
            return _decode(_read_limited(file, MAX_BYTES, visible(name)), visible(name))
    except (OSError, ValueError) as error:
        at = getattr(error, "filename", None) or name
        raise InvalidInput(f"Cannot read {visible(at)} ({getattr(error, 'strerror', None) or error}).") from None


def _read_folder(path: Path) -> dict[str, str]:
    path = path / TASKS if _is_backlog(path) else path
    # Only regular files: opening a pipe or a device would block.
    files = sorted(f for f in path.iterdir() if f.suffix in SUFFIXES and f.name[0] != "." and f.is_file())
    if len(files) > MAX_FILES:
        raise InvalidInput(f"{visible(path)} has {len(files):,} files; the limit is {MAX_FILES:,}.")
    texts: dict[str, str] = {}
    remaining = MAX_BYTES
    for each in files:
        with each.open("rb") as file:
            data = _read_limited(file, remaining, visible(path))
        remaining -= len(data)
        texts[each.name] = _decode(data, visible(each.name))
    return texts


def _is_backlog(path: Path) -> bool:
    """Whether a folder is a whole Backlog.md project rather than its folder of tasks."""
    if not (path / TASKS).is_dir():
        return False
    return (path / CONFIG).is_file() or not any(each.suffix in SUFFIXES for each in path.iterdir())


def skipped_folders(name: str) -> list[str]:
    """Remarks about the folders of a Backlog.md project that are not read."""
    path = Path(name).expanduser()
    if not path.is_dir() or not _is_backlog(path):
        return []
    counts = {folder: sum(1 for _ in (path / folder).glob("*.md")) for folder in INACTIVE}
    return [
        f"{visible(path / folder)} is left out ({count} file{'' if count == 1 else 's'}); import it separately"
        for folder, count in counts.items()
        if count
    ]


def _read_limited(file: IO[bytes], limit: int, name: str) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise InvalidInput(f"{name} has more than {MAX_BYTES // 1_000_000} MB, which is the limit.")
    return data


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name} is not text in UTF-8 (line {line}).") from None


def overwrite_warning(target: Path, names: Mapping[str, str] | None) -> str | None:
    """What writing would replace or mix with; `names` are the files of a folder."""
    try:
        if names is None:
            exists = target.is_symlink() or target.exists()
            return f"{visible(target)} exists already." if exists and not _is_stream(target) else None
        if target.exists() and not target.is_dir():
            return f"{visible(target)} is a file, and a folder is needed."
        found = [each for each in target.iterdir() if each.suffix in SUFFIXES] if target.is_dir() else []
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    return f"{visible(target)} already has files that may be tasks." if found else None


def _is_stream(target: Path) -> bool:
    """A pipe or a device, which has no content to replace and cannot be renamed over."""
    return target.exists() and not target.is_file() and not target.is_dir()


def write_file(target: Path, text: str) -> None:
    """Write the file atomically: a reader sees the old or the new content."""
    if not _is_stream(target):
        _replace_all({target: text})
        return
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise _unwritable(target, error) from error


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write all files or none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {_task_id(name): name for name in files}
        for existing in sorted(folder.iterdir()):
            name = names.get(_task_id(existing.name))
            if name is not None and name != existing.name and existing.suffix in SUFFIXES:
                raise InvalidInput(
                    f"{visible(existing)} has the same id as the new file “{visible(name)}”. Move it, or choose "
                    "another folder. Nothing was written."
                )
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from error
    _replace_all({folder / name: text for name, text in files.items()})


def _task_id(name: str) -> str:
    """The id of the task in a file; lower case, since file systems may ignore case."""
    return name.removesuffix(".md").partition(" - ")[0].lower()


def _replace_all(files: Mapping[Path, str]) -> None:
    """Write everything to temporary files first, then rename them."""
    partials = {target: target.with_name(f".{token_hex(8)}.partial") for target in files}
    target = Path()
    try:
        for target, text in files.items():
            _write_new(partials[target], text, mode_of=target)
        for target in files:
            os.replace(partials[target], target)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from error
    finally:
        for partial in partials.values():
            with contextlib.suppress(OSError, ValueError):
                partial.unlink(missing_ok=True)


def _write_new(partial: Path, text: str, mode_of: Path) -> None:
    with partial.open("x", encoding="utf-8", newline="\n") as file:
        if mode_of.is_file() and not mode_of.is_symlink():
            partial.chmod(stat.S_IMODE(mode_of.stat().st_mode))
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _unwritable(target: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"Cannot write {visible(target)} ({getattr(error, 'strerror', None) or error}).")
