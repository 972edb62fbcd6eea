"""The tools that read, write, edit and list files of the workspace."""

from __future__ import annotations

import difflib
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.tool import Effect, ToolContext, ToolFailure
from punchlist.tools.command import run_program
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.syntax import lost_names, repeated_names, syntax_problem
from punchlist.tools.workspace import Workspace, refuse_open_database

MAX_READ_BYTES: Final = 1_000_000
MAX_EDIT_BYTES: Final = 5_000_000
MAX_DIFF_CELLS: Final = 4_000_000
"""Most pairs of lines to compare: the time of a diff grows with them."""
_SHORT_FILE: Final = 40
"""Lines of a file that a failed edit shows as a whole."""
_AROUND: Final = 5
"""Lines that a failed edit shows before and after the most similar one."""
_NAMED: Final = 5
"""Names of lost parts of a file that a result tells."""
_CONTEXT: Final = 3
_HUNK: Final = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
MAX_ENTRIES: Final = 1_000


def file_tools(workspace: Workspace) -> list[FunctionTool]:
    files = FileTools(workspace)
    return [
        FunctionTool(
            files.read_file,
            effect=Effect.READ,
            resources=lambda path, **_: workspace.read_resource(path),
        ),
        FunctionTool(
            files.write_file,
            effect=Effect.EDIT,
            resources=lambda path, **_: workspace.write_resource(path),
            preview=files.preview_write,
        ),
        FunctionTool(
            files.edit_file,
            effect=Effect.EDIT,
            resources=lambda path, **_: workspace.write_resource(path),
            preview=files.preview_edit,
        ),
        FunctionTool(files.list_directory, effect=Effect.READ),
    ]


class FileTools:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def read_file(self, path: str, first_line: int = 1, lines: int | None = None) -> str:
        """Read a text file of the workspace. Read a long file in parts: first_line starts at 1."""
        if first_line <= 1 and lines is None:
            return self._read(path, MAX_READ_BYTES)
        with self._open(path) as file:
            return _as_text(_lines(file, path, max(first_line, 1), lines), path)

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace, replacing its content. Missing folders are created."""
        real = self._workspace.locate(path)
        before = self._replaced(real, path, content)
        name = self._workspace.display_path(real)
        if before == content:
            return f"{name} has this content already: nothing was changed."
        new = not os.path.exists(real)
        self._write(real, path, content)
        note = ""
        if problem := syntax_problem(path, content):
            note = f" But it cannot be parsed: {problem}."
        elif before is not None and (lost := lost_names(path, before, content)):
            note = (
                f" But {visible(_listed(lost))} {'is' if len(lost) == 1 else 'are'} gone. If not meant so, call "
                "write_file with the complete text of the file."
            )
        return f"{'Created' if new else 'Wrote'} {name}, {_size(content)}.{note}"

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace a part of a text file. `old` must match exactly, and only once unless replace_all is set: include
        enough of the surrounding text."""
        before, after = self._edited(path, old, new, replace_all)
        real = self._workspace.locate(path)
        self._write(real, path, after)
        count = before.count(_as_in(before, old)) if replace_all else 1
        return f"Replaced {count} occurrence{'s' if count > 1 else ''} in {self._workspace.display_path(real)}."

    def list_directory(self, path: str = ".") -> str:
        """List a folder of the workspace. Folders end with /, files have their size."""
        parent = self._workspace.open_folder(self._workspace.locate(path), path)
        try:
            folder = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=parent)
            try:
                with os.scandir(folder) as found:
                    entries = sorted((_entry(entry, folder) for entry in found), key=str.lower)
            finally:
                os.close(folder)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
        finally:
            os.close(parent)
        more = len(entries) - MAX_ENTRIES
        if more > 0:
            entries = [*entries[:MAX_ENTRIES], f"… and {more:,} more; use find_files to narrow the list"]
        return "\n".join(entries) or "(empty)"

    # --- previews ---------------------------------------------------------------------------------------

    def preview_write(self, path: str, content: str) -> str:
        real = self._workspace.locate(path)
        if not os.path.exists(real):
            return f"Create {self._workspace.display_path(real)}, {_size(content)}:\n\n{content}"
        self._replaced(real, path, content)
        return _diff(self._read(path, MAX_EDIT_BYTES), content, self._workspace.display_path(real))

    def preview_edit(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        before, after = self._edited(path, old, new, replace_all)
        return _diff(before, after, self._workspace.display_path(self._workspace.locate(path)))

    # --- implementation ---------------------------------------------------------------------------------

    def _edited(self, path: str, old: str, new: str, replace_all: bool) -> tuple[str, str]:
        if not os.path.exists(self._workspace.locate(path)):
            raise ToolFailure(f"{excerpt(path, 200)} does not exist. Call write_file with the text of the new file.")
        before = self._read(path, MAX_EDIT_BYTES)
        if not old:
            raise ToolFailure("old: must not be empty. Use write_file to replace a whole file.")
        if old == new:
            raise ToolFailure("old and new are identical: nothing would change.")
        piece = _as_in(before, old)
        count = before.count(piece)
        if count == 0:
            raise ToolFailure(f"The text to replace is not in {excerpt(path, 200)}.{_nearest(before, old)}")
        if count > 1 and not replace_all:
            raise ToolFailure(
                f"The text to replace is in {excerpt(path, 200)} {count} times. Include more of the surrounding text, "
                "or set replace_all."
            )
        after = before.replace(piece, _with_line_ends_of(before, piece, new))
        name = excerpt(path, 200)
        if (problem := syntax_problem(path, after)) and not syntax_problem(path, before):
            raise ToolFailure(
                f"Not changed: after this edit {name} could not be parsed: {problem}. {_better_call(before)}"
            )
        if repeated := repeated_names(path, before, after):
            raise ToolFailure(
                f"Not changed: after this edit {name} would define {_listed(repeated)} twice, since old is only a part "
                f"of what new replaces. {_better_call(before)}"
            )
        return before, after

    def _replaced(self, real: Path, path: str, content: str) -> str | None:
        """The text that `content` would replace, where there is one; refuses to replace what can be parsed by what
        cannot."""
        try:
            before = self._read(path, MAX_EDIT_BYTES) if os.path.isfile(real) else None
        except ToolFailure:
            return None
        if before is not None and (problem := syntax_problem(path, content)) and not syntax_problem(path, before):
            raise ToolFailure(
                f"Not written: {excerpt(path, 200)} could not be parsed then: {problem}. Call write_file with the "
                "complete text of the file and nothing else."
            )
        return before

    def _open(self, path: str) -> BinaryIO:
        return os.fdopen(self._workspace.open(self._workspace.locate(path), path), "rb")

    def _read(self, path: str, max_bytes: int) -> str:
        with self._open(path) as file:
            content = file.read(max_bytes + 1)
            if len(content) > max_bytes:
                raise ToolFailure(
                    f"{excerpt(path, 200)} has {os.fstat(file.fileno()).st_size:,} bytes, more than {max_bytes:,}. "
                    "Read a part of it with first_line and lines, or search it with search_text."
                )
        return _as_text(content, path)

    def _write(self, real: Path, path: str, content: str) -> None:
        """Atomic: write a new file beside the old one, then rename it."""
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise ToolFailure("content: contains a lone surrogate, which is not valid text.") from None
        if os.path.isdir(real):
            raise ToolFailure(f"{excerpt(path, 200)} is a folder.")
        folder = self._workspace.open_folder(real.parent, path, make=True)
        try:
            _replace(folder, real.name, data, path)
        except OSError as error:
            raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}. Nothing was changed.") from None
        finally:
            os.close(folder)


def _replace(folder: int, name: str, data: bytes, path: str) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        refuse_open_database(found, path)
        before = found.st_mode
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before):
        raise ToolFailure(f"{excerpt(path, 200)} is not a regular file.")
    new = f".{name[:50]}.{secrets.token_hex(6)}"
    # A new file gets the default permissions; an existing file keeps its own.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(new, flags, 0o666 if before is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if before is not None:
                os.fchmod(descriptor, stat.S_IMODE(before))
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _lines(file: BinaryIO, path: str, first: int, count: int | None) -> bytes:
    """A range of lines of a file of any size."""
    taken = bytearray()
    number = 1
    while (count is None or number < first + count) and (piece := file.readline(MAX_READ_BYTES)):
        if number >= first:
            taken += piece
        if len(taken) > MAX_READ_BYTES:
            raise ToolFailure(
                f"{excerpt(path, 200)}: these lines have more than {MAX_READ_BYTES:,} bytes. Read fewer lines."
            )
        number += piece.endswith(b"\n")
    return bytes(taken)


def _as_text(content: bytes, path: str) -> str:
    if b"\x00" in content[:8_192]:
        raise ToolFailure(f"{excerpt(path, 200)} is not text.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ToolFailure(f"{excerpt(path, 200)} is not text in UTF-8 (at byte {error.start:,}).") from None


def _as_in(text: str, piece: str) -> str:
    """The piece with the line ends of the text, since models write either."""
    if piece in text:
        return piece
    lines = piece.replace("\r\n", "\n")
    return lines.replace("\n", "\r\n") if "\r\n" in text else lines


def _with_line_ends_of(text: str, piece: str, new: str) -> str:
    """The replacement with the line ends of the text that it replaces."""
    if "\r\n" in piece or ("\n" not in piece and "\r\n" in text and text.count("\r\n") == text.count("\n")):
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new if "\r\n" in text else new.replace("\r\n", "\n")


def _nearest(text: str, piece: str) -> str:
    """What the file has instead, and which call to make: models that only read what is wrong give up."""
    lines = text.replace("\r\n", "\n").splitlines()[:20_000]
    first = next((line.strip() for line in piece.splitlines() if line.strip()), "")
    close = difflib.get_close_matches(first, [line.strip() for line in lines], n=1, cutoff=0.5) if first else []
    found = next((number for number, line in enumerate(lines) if close and line.strip() == close[0]), None)
    if len(lines) <= _SHORT_FILE:
        shown, said = range(len(lines)), "It has these lines:"
    elif found is not None:
        shown = range(max(found - _AROUND, 0), min(found + _AROUND + 1, len(lines)))
        said = f"Line {found + 1} is the most similar one:"
    else:
        return " Read the file again."
    rows = "\n".join(f"{number + 1}: {visible_block(lines[number][:200])}" for number in shown)
    return f" {said}\n{rows}\n{_better_call(text)}"


def _better_call(text: str) -> str:
    """What to call in place of a failed edit of this text."""
    if text.count("\n") < _SHORT_FILE:
        return "The file is short: call write_file with its complete new text."
    return "Call edit_file again: old must be whole lines of the file, without line numbers, and new all lines instead."


def _diff(before: str, after: str, name: str) -> str:
    if before == after:
        return f"{name}: nothing changes; it has this content already."
    old, new = _rows(before), _rows(after)
    # Identical lines at both ends are skipped, so that the diff of a small change in a long file is fast.
    skipped = max(_common_prefix(old, new) - _CONTEXT, 0)
    old, new = old[skipped:], new[skipped:]
    left = max(min(_common_prefix(old[::-1], new[::-1]), len(old), len(new)) - _CONTEXT, 0)
    old, new = old[: len(old) - left], new[: len(new) - left]
    if len(old) * len(new) > MAX_DIFF_CELLS:
        return f"Replace {name} ({_size(before)}) by {_size(after)}; the diff is too large to show."
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=_CONTEXT)
    diff = "\n".join(_HUNK.sub(lambda found: _moved(found, skipped), line) for line in lines)
    return diff or f"{name}: only the line ends change."


def _rows(text: str) -> list[str]:
    rows = text.replace("\r\n", "\n").split("\n")
    return rows[:-1] if not rows[-1] else [*rows, "\\ No newline at end of file"]


def _common_prefix(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of identical lines at the beginning."""
    for number, (line, counterpart) in enumerate(zip(first, second, strict=False)):
        if line != counterpart:
            return number
    return min(len(first), len(second))


def _moved(hunk: re.Match[str], lines: int) -> str:
    at, length, now_at, now_length = hunk.groups(default="")
    return f"@@ -{int(at) + lines}{length} +{int(now_at) + lines}{now_length} @@"


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; at most five."""
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _size(content: str) -> str:
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{lines:,} line{'' if lines == 1 else 's'}"


def _entry(entry: os.DirEntry[str], folder: int) -> str:
    name = visible(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {visible(os.readlink(entry.name, dir_fd=folder))}"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        return f"{name}  {entry.stat(follow_symlinks=False).st_size:,}"
    except FileNotFoundError:
        return f"{name}  (deleted)"


TIMEOUT: Final = 30.0
MAX_MATCHES: Final = 500
MAX_PATTERN_LENGTH: Final = 1_000
_OPEN_FILES: Final = Path("/proc/self/fd")
"""The files that a process has open, on Linux."""
_PROGRAM: Final = Path(__file__).with_name("search_process.py")


def search_tools(workspace: Workspace, redact: Callable[[str], str] = str) -> list[FunctionTool]:
    async def find_files(pattern: str, running: ToolContext) -> str:
        """Find files of the workspace by a pattern such as *.py or src/**/test_*.py. A pattern without / matches in
        every folder. Hidden folders are skipped."""
        _check(pattern)
        found = await _python(workspace, running, redact, {"find": pattern, "limit": MAX_MATCHES})
        return found.text.strip() or "No file matches."

    async def search_text(pattern: str, running: ToolContext, path: str = ".") -> ToolResult | str:
        """Search the text files of the workspace, or of one folder or file in it, for a regular expression. Returns
        file, line number and line."""
        _check(pattern)
        where = workspace.locate(path)
        _check_place(where, path)
        # Relative, so that results have the paths that the model uses.
        place = os.path.relpath(where, workspace.root) if where.is_relative_to(workspace.root) else str(where)
        ripgrep = shutil.which("rg") if _OPEN_FILES.is_dir() and where.is_dir() else None
        if ripgrep is None:
            found = await _python(workspace, running, redact, {"search": pattern, "path": place, "limit": MAX_MATCHES})
            prefix = ""
        else:
            found = await _ripgrep(ripgrep, pattern, workspace, where, path, running, redact)
            prefix = "" if place == "." else f"{place}/"
        printed = found.text.replace("\r\n", "\n")
        text = _first(re.sub(r"^\./", lambda _: prefix, printed, flags=re.MULTILINE).rstrip("\n"))
        return ToolResult(text, output_file=found.output_file) if text else "No line matches."

    return [
        FunctionTool(find_files, effect=Effect.READ, time_limit=TIMEOUT + 5),
        FunctionTool(search_text, effect=Effect.READ, time_limit=TIMEOUT + 5),
    ]


async def _ripgrep(
    program: str,
    pattern: str,
    workspace: Workspace,
    where: Path,
    path: str,
    running: ToolContext,
    redact: Callable[[str], str],
) -> ToolResult:
    """Options that make ripgrep find what the Python search finds: no configuration, no ignore files.

    It starts in the folder that was opened step by step: a link that takes its place is not followed.
    """
    exclude = ["--no-config", "--no-ignore", "--hidden", "--glob=!.*/", "--glob=!node_modules/", "--no-messages"]
    output = ["--line-number", "--no-heading", "--with-filename", "--color=never", "--sort=path", "--crlf"]
    limits = ["--max-columns=300", "--max-columns-preview", f"--max-count={MAX_MATCHES}"]
    line = [program, *exclude, *output, *limits, "--regexp", pattern, "--", "."]
    folder = workspace.open_folder(where, path)
    try:
        opened = _OPEN_FILES / str(folder)
        return await run_program(line, workspace, running, TIMEOUT, redact, success_codes=(0, 1), folder=opened)
    finally:
        os.close(folder)


async def _python(
    workspace: Workspace, running: ToolContext, redact: Callable[[str], str], query: dict[str, str | int]
) -> ToolResult:
    sent = json.dumps(query).encode()
    program = [sys.executable, "-I", "-W", "ignore", str(_PROGRAM)]
    return await run_program(program, workspace, running, TIMEOUT, redact, input=sent)


def _first(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= MAX_MATCHES + 1:
        return text
    return "\n".join([*lines[:MAX_MATCHES], f"… more than {MAX_MATCHES} matches; narrow the search"])


def _check_place(where: Path, path: str) -> None:
    try:
        mode = where.stat().st_mode
    except OSError as error:
        raise ToolFailure(f"{excerpt(path, 200)}: {error.strerror or error}.") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ToolFailure(f"{excerpt(path, 200)} is neither a file nor a folder.")


def _check(pattern: str) -> None:
    if not pattern or len(pattern) > MAX_PATTERN_LENGTH or "\x00" in pattern:
        raise ToolFailure(f"pattern: must be 1 to {MAX_PATTERN_LENGTH} characters.")
