"""The folder that tools work in; paths that lead out of it are refused.

`locate` resolves a path and checks that it is inside. `open` and `open_folder` then walk it step by step
without following links, so that a folder that was replaced by a link in between is not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.storage.sqlite import is_open_here
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.tool import Resources, ToolFailure

MAX_PATH_LENGTH: Final = 4_096
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """Keeps paths inside the root or an allowed folder, with symbolic links resolved."""

    def __init__(self, root: Path, extra_folders: Iterable[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._allowed = (self.root, *(Path(os.path.realpath(folder.expanduser())) for folder in extra_folders))

    @property
    def paths(self) -> PathResolver:
        """Resolves paths for the rules of the policy."""
        return PathResolver(self.root, self._allowed[1:])

    @property
    def folders(self) -> tuple[Path, ...]:
        """The root and the other allowed folders."""
        return self._allowed

    def locate(self, path: str) -> Path:
        """Resolve a path given by a model; refuse one that leads outside."""
        if "\x00" in path or len(path) > MAX_PATH_LENGTH:
            raise ToolFailure(f"{excerpt(path)!r} is not a path.")
        try:
            real = Path(os.path.realpath(self.root / (path or ".")))
        except (OSError, ValueError) as error:
            raise ToolFailure(f"{excerpt(path)!r}: {excerpt(str(error))}") from None
        if self._allowed_folder(real) is None:
            raise ToolFailure(f"{excerpt(path, 200)} is outside the workspace {self.root}. {self._instead(path)}")
        return real

    def _instead(self, path: str) -> str:
        """What to do about a path that is outside. Models that write absolute paths leave folders out."""
        parts = Path(path).parts
        for number in range(1, len(parts)):
            inside = Path(*parts[number:])
            if ".." not in inside.parts and (self.root / inside).exists():
                return f"Paths are relative to the workspace: use {excerpt(str(inside), 200)}."
        return "Use a path inside it, relative to it (`workspace.also` in punchlist.toml allows other folders)."

    def _allowed_folder(self, real: Path) -> Path | None:
        """The allowed folder that contains a path."""
        return next((folder for folder in self._allowed if real == folder or folder in real.parents), None)

    def display_path(self, real: Path) -> str:
        """The path relative to the root where possible."""
        return str(real.relative_to(self.root)) if self.root in real.parents else str(real)

    def open(self, real: Path, path: str) -> int:
        """Open a regular file for reading."""
        if real in self._allowed:
            raise ToolFailure(f"{excerpt(path, 200)} is not a regular file.")
        folder = self.open_folder(real.parent, path)
        try:
            refuse_open_database(os.stat(real.name, dir_fd=folder, follow_symlinks=False), path)
            # Non-blocking: opening a named pipe without a writer would hang.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            descriptor = os.open(real.name, flags, dir_fd=folder)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ToolFailure(f"{excerpt(path, 200)} is not a regular file.")
        return descriptor

    def open_folder(self, real: Path, path: str, *, make: bool = False) -> int:
        """Open a folder for use as `dir_fd`; with `make`, create the missing folders on the way."""
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
    """Refuse to open or replace a database file that this process uses."""
    if is_open_here(file):
        raise ToolFailure(
            f"{excerpt(path, 200)} is a database in use: opening it as a file would corrupt it. "
            "Use list_todo and the other list tools to read the lists."
        )


def _step(folder: int, name: str, make: bool) -> int:
    """Open a subfolder and close its parent."""
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        return os.open(name, _STEP, dir_fd=folder)
    finally:
        os.close(folder)


def _key(real: Path) -> str:
    return f"file:{real}"
