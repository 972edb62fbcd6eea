"""Reading, writing and editing files of the workspace."""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.tool import Effect, ToolFailure
from punchlist.tools.definition import FunctionTool
from punchlist.tools.workspace import Workspace

LARGEST_READ: Final = 1_000_000
LARGEST_EDIT: Final = 5_000_000
LARGEST_DIFF: Final = 500_000
MOST_ENTRIES: Final = 1_000


def file_tools(workspace: Workspace) -> list[FunctionTool]:
    files = Files(workspace)
    return [
        FunctionTool(
            files.read_file,
            effect=Effect.READ,
            resources=lambda path, **_: workspace.reading(path),
        ),
        FunctionTool(
            files.write_file,
            effect=Effect.EDIT,
            resources=lambda path, **_: workspace.writing(path),
            preview=files.preview_write,
        ),
        FunctionTool(
            files.edit_file,
            effect=Effect.EDIT,
            resources=lambda path, **_: workspace.writing(path),
            preview=files.preview_edit,
        ),
        FunctionTool(files.list_directory, effect=Effect.READ),
    ]


class Files:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def read_file(self, path: str, first_line: int = 1, lines: int | None = None) -> str:
        """Read a text file of the workspace. For a long one, ask for a part: first_line counts from 1."""
        text = self._read(path, LARGEST_READ if lines is None and first_line <= 1 else LARGEST_EDIT)
        if first_line <= 1 and lines is None:
            return text
        wanted = text.splitlines(keepends=True)[max(first_line, 1) - 1 :]
        return "".join(wanted if lines is None else wanted[: max(lines, 0)])

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace, replacing what was there. Folders are made as needed."""
        real = self._workspace.locate(path)
        new = not real.exists()
        self._write(real, path, content)
        return f"{'Created' if new else 'Wrote'} {self._workspace.shown(real)}, {_size(content)}."

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another. `old` must stand there exactly, and only once unless
        replace_all is set: give enough of its surroundings."""
        before, after = self._edited(path, old, new, replace_all)
        self._write(self._workspace.locate(path), path, after)
        count = before.count(_as_in(before, old)) if replace_all else 1
        return f"Replaced {count} place{'s' if count > 1 else ''} in {path}."

    def list_directory(self, path: str = ".") -> str:
        """List a folder of the workspace: folders end with /, files have their size."""
        real = self._workspace.locate(path)
        try:
            with os.scandir(real) as found:
                entries = sorted((_entry(one) for one in found), key=str.lower)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        more = len(entries) - MOST_ENTRIES
        told = [*entries[:MOST_ENTRIES], f"… and {more:,} more; find_files narrows it down"] if more > 0 else entries
        return "\n".join(told) or "(empty)"

    # --- what a person sees first -----------------------------------------------------------------------

    def preview_write(self, path: str, content: str) -> str:
        real = self._workspace.locate(path)
        if not real.exists():
            return f"Create {self._workspace.shown(real)}, {_size(content)}:\n\n{content}"
        return _diff(self._read(path, LARGEST_EDIT), content, self._workspace.shown(real))

    def preview_edit(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        before, after = self._edited(path, old, new, replace_all)
        return _diff(before, after, self._workspace.shown(self._workspace.locate(path)))

    # --- how ---------------------------------------------------------------------------------------------

    def _edited(self, path: str, old: str, new: str, replace_all: bool) -> tuple[str, str]:
        before = self._read(path, LARGEST_EDIT)
        if not old:
            raise ToolFailure("old: must not be empty; write_file replaces a whole file.")
        if old == new:
            raise ToolFailure("old and new are the same: nothing would change.")
        piece = _as_in(before, old)
        count = before.count(piece)
        if count == 0:
            raise ToolFailure(f"The text to replace is not in {excerpt(path, 200)}.{_nearest(before, old)}")
        if count > 1 and not replace_all:
            raise ToolFailure(
                f"The text to replace is in {excerpt(path, 200)} {count} times. Give more of its surroundings, "
                "or set replace_all."
            )
        return before, before.replace(piece, new if piece == old else new.replace("\n", "\r\n"))

    def _read(self, path: str, largest: int) -> str:
        real = self._workspace.locate(path)
        descriptor = self._workspace.open(real, path)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > largest:
                raise ToolFailure(
                    f"{excerpt(path, 200)} has {size:,} bytes, more than {largest:,}. "
                    "Read a part of it with first_line and lines, or search it with search_text."
                )
            content = file.read(largest)
        if b"\x00" in content[:8_192]:
            raise ToolFailure(f"{excerpt(path, 200)} is not text ({size:,} bytes).")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise ToolFailure(f"{excerpt(path, 200)} is not text in UTF-8 (at byte {error.start:,}).") from None

    def _write(self, real: Path, path: str, content: str) -> None:
        """All of it or nothing: into a new file beside it, which then takes its place."""
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise ToolFailure("content: half of a surrogate pair cannot be written as text.") from None
        if real.is_dir():
            raise ToolFailure(f"{excerpt(path, 200)} is a folder.")
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            # The folder may have been made through a link: look again.
            self._workspace.locate(str(real.parent))
            mode = real.stat().st_mode & 0o7777 if real.exists() else 0o666 & ~_umask()
            descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:50]}.")
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(name, mode)
            os.replace(name, real)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}. Nothing was changed.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _as_in(text: str, piece: str) -> str:
    """The piece with the line ends of the text: models write \\n whatever the file has."""
    if piece in text or "\r\n" not in text:
        return piece
    return piece.replace("\r\n", "\n").replace("\n", "\r\n")


def _nearest(text: str, piece: str) -> str:
    """Where something like it stands, for the model to look."""
    first = piece.strip().splitlines()[0].strip() if piece.strip() else ""
    lines = text.splitlines()[:20_000]
    close = difflib.get_close_matches(first, [line.strip() for line in lines], n=1, cutoff=0.6) if first else []
    for number, line in enumerate(lines, start=1):
        if close and line.strip() == close[0]:
            return f" Line {number} is close: {excerpt(line, 200)!r}. Blanks count; read the file again."
    return " Read the file again."


def _diff(before: str, after: str, name: str) -> str:
    if len(before) + len(after) > LARGEST_DIFF:
        return f"Replace {name} ({_size(before)}) by {_size(after)}; too large to show the difference."
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines) or f"{name}: no difference but in its line ends."


def _size(content: str) -> str:
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{lines:,} line{'' if lines == 1 else 's'}"


def _entry(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return f"{entry.name} -> {os.readlink(entry.path)}"
    if entry.is_dir(follow_symlinks=False):
        return f"{entry.name}/"
    return f"{entry.name}  {entry.stat(follow_symlinks=False).st_size:,}"
