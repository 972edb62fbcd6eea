"""Files of other programs: read as they are, and written all or none."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from punchlist.errors import ConfigError, Conflict

LARGEST: Final = 50_000_000
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of a file; None is for no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        return "create" if self.before is None else "remove" if self.after is None else "change"


def read(path: Path) -> bytes | None:
    """A file's bytes; None if it is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(f"{path}: is a link to {os.readlink(path)}, which is not there. Mend it.") from None
        return None
    except OSError as error:
        raise _cannot(path, "be read", error) from error
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path}: is not a file. Move it away, then try again.")
    if found.st_size > LARGEST:
        raise ConfigError(f"{path}: is larger than {LARGEST:,} bytes; that is no settings file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise _cannot(path, "be read", error) from error


def decoded(path: Path, content: bytes) -> tuple[bytes, str]:
    """The mark of its encoding, if a file begins with one, and its text."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, content[len(mark) :].decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: is not UTF-8 text (byte {len(mark) + error.start + 1}). Save it as UTF-8, then try again."
        ) from None


def apply(changes: Sequence[FileChange], folders: Iterable[Path], note: Callable[[], None]) -> None:
    """Make the folders and all changes, or none. `note` is called when nothing but renaming is left to do."""
    made, staged, done = list[Path](), dict[Path, Path](), list[FileChange]()
    try:
        for change in changes:
            _check(change)
        for folder in folders:
            folder.mkdir()
            made.append(folder)
        for change in changes:
            if change.after is not None:
                staged[change.path] = _stage(change.path.resolve(), change.after)
        note()
        for change in changes:
            if read(change.path) != change.before:
                raise Conflict(
                    f"{change.path}: was changed by somebody else meanwhile. Nothing was changed; try again."
                )
            done.append(change)
            _put(change.path.resolve(), staged.get(change.path))
    except BaseException as error:
        _undo(done, staged.values(), made)
        if isinstance(error, OSError):
            where = error.filename or (done[-1].path if done else "")
            raise ConfigError(
                f"{where}: cannot be written ({error.strerror or error}). Nothing was changed."
            ) from error
        raise


def remove_empty(folders: Iterable[Path]) -> None:
    """Folders of ours, the inner ones first; one in which there is something by now stays."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def missing_folders(paths: Iterable[Path]) -> list[Path]:
    """The folders on the way to files that are not there yet, the outer ones first."""
    found = dict[Path, None]()
    for path in paths:
        missing = [folder for folder in path.parents if not folder.exists()]
        found.update(dict.fromkeys(reversed(missing)))
    return list(found)


def write_private(path: Path, content: bytes) -> None:
    """A file of our own, for nobody else to read, there as a whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(path, _stage(path, content, 0o600))
    except OSError as error:
        raise _cannot(path, "be written", error) from error


def _check(change: FileChange) -> None:
    with suppress(FileNotFoundError):
        if not change.path.stat().st_mode & _WRITABLE:
            raise ConfigError(
                f"{change.path}: is read-only, which somebody will have meant. Nothing was changed. "
                "Make it writable, then try again."
            )


def _stage(target: Path, content: bytes, mode: int | None = None) -> Path:
    """The content in a file beside its target, with that one's owner and permissions."""
    beside = target.with_name(f".{target.name}.punchlist-{os.getpid()}")
    with suppress(FileNotFoundError):
        beside.unlink()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None and target.exists():
            found = target.stat()
            beside.chmod(stat.S_IMODE(found.st_mode))
            if hasattr(os, "chown"):
                with suppress(OSError):
                    os.chown(beside, found.st_uid, found.st_gid)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return beside


def _put(target: Path, staged: Path | None) -> None:
    if staged is None:
        target.unlink()
    else:
        staged.replace(target)


def _undo(done: Sequence[FileChange], staged: Iterable[Path], made: Sequence[Path]) -> None:
    for beside in staged:
        with suppress(OSError):
            beside.unlink()
    for change in reversed(done):
        target = change.path.resolve()
        with suppress(OSError):
            if change.before is None:
                target.unlink(missing_ok=True)
            elif not target.exists() or target.read_bytes() != change.before:
                _put(target, _stage(target, change.before))
    remove_empty(reversed(made))


def _cannot(path: Path, what: str, error: Exception) -> ConfigError:
    return ConfigError(f"{path}: cannot {what} ({getattr(error, 'strerror', None) or error}).")
