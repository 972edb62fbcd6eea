"""The folder that tools work in, and the walls around it.

A path is looked at first (`locate`: where does it lead, and is that inside?) and walked later, step
by step and without following links (`open`, `open_folder`): what was swapped for a link in between
is not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.storage.open_files import is_open_here
from punchlist.toolcalls.tool import Resources, ToolFailure

MAX_PATH_LENGTH: Final = 4_096
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """Paths stay inside the root, or a folder that was allowed, wherever symbolic links lead."""

    def __init__(self, root: Path, also: Iterable[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._allowed = (self.root, *(Path(os.path.realpath(folder.expanduser())) for folder in also))

    def locate(self, path: str) -> Path:
        """The real place of a path that a model gave."""
        if "\x00" in path or len(path) > MAX_PATH_LENGTH:
            raise ToolFailure(f"{excerpt(path)!r} is no path.")
        try:
            real = Path(os.path.realpath(self.root / (path or ".")))
        except (OSError, ValueError) as error:
            raise ToolFailure(f"{excerpt(path)!r}: {excerpt(str(error))}") from None
        if self._allowed_folder(real) is None:
            raise ToolFailure(
                f"{excerpt(path, 200)} is outside the workspace {self.root}. "
                "Use a path inside; a person can allow another folder with `workspace.also` in punchlist.toml."
            )
        return real

    def _allowed_folder(self, real: Path) -> Path | None:
        """The folder that makes a place an inside one."""
        return next((folder for folder in self._allowed if real == folder or folder in real.parents), None)

    def display_path(self, real: Path) -> str:
        """How to call a place inside: relative to the root where that is possible."""
        return str(real.relative_to(self.root)) if self.root in real.parents else str(real)

    def open(self, real: Path, path: str) -> int:
        """Open a regular file for reading."""
        if real in self._allowed:
            raise ToolFailure(f"{excerpt(path, 200)} is no regular file.")
        folder = self.open_folder(real.parent, path)
        try:
            refuse_open_database(os.stat(real.name, dir_fd=folder, follow_symlinks=False), path)
            # Without waiting: a pipe with nobody at its other end must not hold us up.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            descriptor = os.open(real.name, flags, dir_fd=folder)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ToolFailure(f"{excerpt(path, 200)} is no regular file.")
        return descriptor

    def open_folder(self, real: Path, path: str, *, make: bool = False) -> int:
        """A folder to name files in (`dir_fd`), with all that leads to it made where it is missing."""
        base = self._allowed_folder(real)
        assert base is not None
        try:
            descriptor = os.open(base, _STEP)
            for name in real.relative_to(base).parts:
                descriptor = _step(descriptor, name, make)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        return descriptor

    def read_resource(self, path: str) -> Resources:
        return Resources(reads=frozenset({_key(self.locate(path))}))

    def write_resource(self, path: str) -> Resources:
        return Resources(writes=frozenset({_key(self.locate(path))}))


def refuse_open_database(file: os.stat_result, path: str) -> None:
    """Before a file is opened or replaced: our own database is none for tools."""
    if is_open_here(file):
        raise ToolFailure(
            f"{excerpt(path, 200)} is a database that is in use here: opening the file would break it. "
            "What is on the lists is told by list_todo and the other tools for them."
        )


def _step(folder: int, name: str, make: bool) -> int:
    """From one folder into the next; the first is let go."""
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        return os.open(name, _STEP, dir_fd=folder)
    finally:
        os.close(folder)


def _key(real: Path) -> str:
    return f"file:{real}"
