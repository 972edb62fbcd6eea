"""Finding files by name and text in files: with ripgrep where it is installed, with Python elsewhere.

Python's search runs as a program of its own (`searching.py`): a pattern can keep it busy for ever,
and a program can be ended.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.states import Result
from punchlist.toolcalls.tool import Effect, Running, ToolFailure
from punchlist.tools.command import run_program
from punchlist.tools.definition import FunctionTool
from punchlist.tools.workspace import Workspace

TIMEOUT: Final = 30.0
MOST_MATCHES: Final = 500
LONGEST_PATTERN: Final = 1_000
_PROGRAM: Final = Path(__file__).with_name("searching.py")


def search_tools(workspace: Workspace) -> list[FunctionTool]:
    async def find_files(pattern: str, running: Running) -> str:
        """Find files of the workspace by a pattern such as *.py or src/**/test_*.py. A pattern without / is looked
        for in every folder. Hidden folders are left out."""
        _check(pattern)
        found = await _python(workspace, running, {"find": pattern, "most": MOST_MATCHES})
        return found.text.strip() or "No file fits."

    async def search_text(pattern: str, running: Running, path: str = ".") -> Result | str:
        """Search the text files of the workspace, or of one folder or file in it, for a regular expression. Gives
        file, line number and line."""
        _check(pattern)
        where = workspace.locate(path)
        if not where.exists():
            raise ToolFailure(f"{excerpt(path, 200)}: there is no such file or folder.")
        ripgrep = shutil.which("rg")
        if ripgrep is None:
            found = await _python(workspace, running, {"search": pattern, "path": str(where), "most": MOST_MATCHES})
        else:
            found = await run_program(_ripgrep(ripgrep, pattern, where), workspace, running, TIMEOUT, fine=(0, 1))
        text = found.text.replace(f"{workspace.root}/", "").strip()
        return Result(text, output_file=found.output_file) if text else "No line fits."

    return [
        FunctionTool(find_files, effect=Effect.READ, time_limit=TIMEOUT + 5),
        FunctionTool(search_text, effect=Effect.READ, time_limit=TIMEOUT + 5),
    ]


def _ripgrep(program: str, pattern: str, where: Path) -> list[str]:
    settings = ["--no-config", "--line-number", "--no-heading", "--with-filename", "--color=never", "--max-columns=300"]
    return [program, *settings, f"--max-count={MOST_MATCHES}", "--sort=path", "--regexp", pattern, "--", str(where)]


async def _python(workspace: Workspace, running: Running, asked: dict[str, str | int]) -> Result:
    sent = json.dumps({"root": str(workspace.root), **asked}).encode()
    return await run_program([sys.executable, "-I", str(_PROGRAM)], workspace, running, TIMEOUT, input=sent)


def _check(pattern: str) -> None:
    if not pattern or len(pattern) > LONGEST_PATTERN or "\x00" in pattern:
        raise ToolFailure(f"pattern: must be 1 to {LONGEST_PATTERN} characters.")
