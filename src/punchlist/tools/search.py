"""The tools that find files by name and text in files: with ripgrep where it is installed, else with Python.

The Python search is a process of its own (`search_process.py`): a regular expression can run forever, and a
process can be ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.tool import Effect, ToolContext, ToolFailure
from punchlist.tools.command import run_program
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.workspace import Workspace

TIMEOUT: Final = 30.0
MAX_MATCHES: Final = 500
MAX_PATTERN_LENGTH: Final = 1_000
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
        ripgrep = shutil.which("rg")
        if ripgrep is None:
            found = await _python(workspace, running, redact, {"search": pattern, "path": place, "limit": MAX_MATCHES})
        else:
            line = _ripgrep(ripgrep, pattern, place)
            found = await run_program(line, workspace, running, TIMEOUT, redact, success_codes=(0, 1))
        text = _first(re.sub(r"^\./", "", found.text.replace("\r\n", "\n"), flags=re.MULTILINE).rstrip("\n"))
        return ToolResult(text, output_file=found.output_file) if text else "No line matches."

    return [
        FunctionTool(find_files, effect=Effect.READ, time_limit=TIMEOUT + 5),
        FunctionTool(search_text, effect=Effect.READ, time_limit=TIMEOUT + 5),
    ]


def _ripgrep(program: str, pattern: str, where: str) -> list[str]:
    """Options that make ripgrep find what the Python search finds: no configuration, no ignore files."""
    exclude = ["--no-config", "--no-ignore", "--hidden", "--glob=!.*/", "--glob=!node_modules/", "--no-messages"]
    output = ["--line-number", "--no-heading", "--with-filename", "--color=never", "--sort=path", "--crlf"]
    limits = ["--max-columns=300", "--max-columns-preview", f"--max-count={MAX_MATCHES}"]
    return [program, *exclude, *output, *limits, "--regexp", pattern, "--", where]


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
