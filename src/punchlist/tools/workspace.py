"""The folder that tools work in, and the walls around it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.tool import Resources, ToolFailure

LONGEST_PATH: Final = 4_096


class Workspace:
    """Paths stay inside the root, or a folder that was allowed, wherever symbolic links lead."""

    def __init__(self, root: Path, also: Iterable[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._allowed = (self.root, *(Path(os.path.realpath(folder.expanduser())) for folder in also))

    def locate(self, path: str) -> Path:
        """The real place of a path that a model gave."""
        if "\x00" in path or len(path) > LONGEST_PATH:
            raise ToolFailure(f"{excerpt(path)!r} is no path.")
        try:
            real = Path(os.path.realpath(self.root / (path or ".")))
        except (OSError, ValueError) as error:
            raise ToolFailure(f"{excerpt(path)!r}: {error}") from None
        self._check(real, path)
        return real

    def _check(self, real: Path, path: str) -> None:
        if not any(real == folder or folder in real.parents for folder in self._allowed):
            raise ToolFailure(
                f"{excerpt(path, 200)} is outside the workspace {self.root}. "
                "Use a path inside; a person can allow another folder with `workspace.also` in punchlist.toml."
            )

    def shown(self, real: Path) -> str:
        """How to call a place inside: relative to the root where that is possible."""
        return str(real.relative_to(self.root)) if self.root in real.parents else str(real)

    def open(self, real: Path, path: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file, and make sure that what was opened is inside: links may have changed since."""
        try:
            # Without waiting: a pipe with nobody at its other end must not hold us up.
            descriptor = os.open(real, flags | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolFailure(f"{excerpt(path, 200)} is no regular file.")
            link = f"/proc/self/fd/{descriptor}"
            if os.path.exists(link):
                self._check(Path(os.path.realpath(link)), path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def reading(self, path: str) -> Resources:
        return Resources(reads=frozenset({_key(self.locate(path))}))

    def writing(self, path: str) -> Resources:
        return Resources(writes=frozenset({_key(self.locate(path))}))


def _key(real: Path) -> str:
    return f"file:{real}"
