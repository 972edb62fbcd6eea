"""Reads settings files of other programs, shows changes as diffs, and writes several files all or none."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

from punchlist.errors import ConfigError, Conflict

_MAX_SIZE: Final = 50_000_000
_CONTEXT: Final = 3
_MAX_LINE_LENGTH: Final = 2_000
_LINE_CONTEXT: Final = 60
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class FileChange:
    """The content of a file before and after; None is a missing file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        return "create" if self.before is None else "remove" if self.after is None else "change"


def read(path: Path) -> bytes | None:
    """A file's bytes; None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            target = os.readlink(path)
            raise ConfigError(f"{path}: is a link to {target}, which does not exist. Fix the link.") from None
        return None
    except OSError as error:
        raise _failed(path, "read", error) from error
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path}: is not a file. Move it away, then try again.")
    if status.st_size > _MAX_SIZE:
        raise ConfigError(f"{path}: is larger than {_MAX_SIZE:,} bytes, which is too large for a settings file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise _failed(path, "read", error) from error


def decode(path: Path, content: bytes) -> tuple[bytes, str]:
    """The byte order mark, if there is one, and the text."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, content[len(mark) :].decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: is not UTF-8 text (byte {len(mark) + error.start + 1}). Save it as UTF-8, then try again."
        ) from None


def apply_changes(changes: Sequence[FileChange], folders: Iterable[Path], before_commit: Callable[[], None]) -> None:
    """Create the folders and make all changes, or none. `before_commit` runs when only renames are left."""
    created, staged, done = list[Path](), dict[Path, Path](), list[FileChange]()
    try:
        for change in changes:
            _check_writable(change.path)
        for folder in folders:
            folder.mkdir()
            created.append(folder)
        for change in changes:
            if change.after is not None:
                staged[change.path] = _stage(change.path.resolve(), change.after)
        before_commit()
        for change in changes:
            if read(change.path) != change.before:
                raise Conflict(f"{change.path}: another program changed it meanwhile. Nothing was changed; try again.")
            done.append(change)
            _put(change.path.resolve(), staged.get(change.path))
    except BaseException as error:
        _roll_back(done, staged.values(), created)
        if isinstance(error, OSError):
            path = error.filename or (done[-1].path if done else "")
            raise ConfigError(f"{path}: cannot be written ({error.strerror or error}). Nothing was changed.") from error
        raise


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, inner ones first; folders with content stay."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def missing_folders(paths: Iterable[Path]) -> list[Path]:
    """The folders that have to be created for these files, outer ones first."""
    found = dict[Path, None]()
    for path in paths:
        found.update(dict.fromkeys(reversed([folder for folder in path.parents if not folder.exists()])))
    return list(found)


def write_private(path: Path, content: bytes) -> None:
    """Write a file of our own atomically, readable only by the user."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(path, _stage(path, content, 0o600))
    except OSError as error:
        raise _failed(path, "written", error) from error


def _check_writable(path: Path) -> None:
    with suppress(FileNotFoundError):
        if not path.stat().st_mode & _WRITABLE:
            raise ConfigError(f"{path}: is read-only. Nothing was changed. Make it writable, then try again.")


def _stage(target: Path, content: bytes, mode: int | None = None) -> Path:
    """Write the content to a file beside its target, with the target's owner and permissions."""
    staged = target.with_name(f".{target.name}.punchlist-{os.getpid()}")
    with suppress(FileNotFoundError):
        staged.unlink()
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None and target.exists():
            status = target.stat()
            staged.chmod(stat.S_IMODE(status.st_mode))
            if hasattr(os, "chown"):
                with suppress(OSError):
                    os.chown(staged, status.st_uid, status.st_gid)
    except BaseException:
        with suppress(OSError):
            staged.unlink()
        raise
    return staged


def _put(target: Path, staged: Path | None) -> None:
    if staged is None:
        target.unlink()
    else:
        staged.replace(target)


def _roll_back(done: Sequence[FileChange], staged: Iterable[Path], created: Sequence[Path]) -> None:
    for path in staged:
        with suppress(OSError):
            path.unlink()
    for change in reversed(done):
        target = change.path.resolve()
        with suppress(OSError):
            if change.before is None:
                target.unlink(missing_ok=True)
            elif not target.exists() or target.read_bytes() != change.before:
                _put(target, _stage(target, change.before))
    remove_empty(reversed(created))


def _failed(path: Path, action: str, error: OSError) -> ConfigError:
    return ConfigError(f"{path}: cannot be {action} ({error.strerror or error}).")


# --- diffs -----------------------------------------------------------------------------------------------------------


def diff(change: FileChange) -> str:
    """The change as a unified diff."""
    old, new = _lines(change.before), _lines(change.after)
    old_name = str(change.path) if change.before is not None else os.devnull
    new_name = str(change.path) if change.after is not None else os.devnull
    # Settings can have megabytes: leave out the common start and end.
    same = _common_prefix(old, new)
    skipped = max(0, same - _CONTEXT)
    kept = max(0, _common_prefix(old[same:][::-1], new[same:][::-1]) - _CONTEXT)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    lines = unified_diff(old, new, old_name, new_name, n=_CONTEXT, lineterm="")
    return "".join(f"{line}\n" for line in _shorten(lines, skipped))


def _lines(content: bytes | None) -> list[str]:
    if content is None:
        return []
    lines = content.decode(errors="replace").split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _shorten(lines: Iterator[str], skipped: int) -> Iterator[str]:
    """Correct the line numbers, and show only the changed part of very long lines."""
    removed = list[str]()
    for line in lines:
        if line.startswith("@@"):
            yield re.sub(r"(?<=[-+])\d+", lambda number: str(int(number.group()) + skipped), line) if skipped else line
        elif len(line) <= _MAX_LINE_LENGTH:
            yield line
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+") and removed:
            yield from _changed_part(removed.pop(0), line[1:])
        else:
            yield line if line.startswith("+") else f"{line[:_MAX_LINE_LENGTH]}… ({len(line) - 1:,} characters)"
    yield from (f"-{line}" for line in removed)


def _changed_part(old: str, new: str) -> Iterator[str]:
    head = _common_prefix(old, new)
    tail = min(_common_prefix(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    before = old[:head] if head <= _LINE_CONTEXT else f"…{old[head - _LINE_CONTEXT : head]}"
    after = old[len(old) - tail :] if tail <= _LINE_CONTEXT else f"{old[len(old) - tail :][:_LINE_CONTEXT]}…"
    for sign, line in (("-", old), ("+", new)):
        yield f"{sign}{before}{line[head : len(line) - tail]}{after}"
