"""Asks the person at the terminal to accept the acceptance criteria that a model drafted from `--until`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import discard_typed_keys, echo


def ask_criteria(drafted: Sequence[str], until: str) -> list[str]:
    """The criteria that the person accepts: the draft, an edited one, or the person's own words."""
    criteria = list(drafted)
    while True:
        numbered = [f"  {number}. {visible(line)}" for number, line in enumerate(criteria, 1)]
        echo("\n".join(["\nThe work is accepted when this is true:", "", *numbered, ""]), error=True)
        discard_typed_keys()
        typed = _line("Enter accepts, e edits, n uses your own words instead ")
        if typed is None or typed == "n":
            return [until]
        if typed in ("", "y", "yes"):
            return criteria
        if typed == "e":
            criteria = _edited(criteria) or criteria


def _line(prompt: str) -> str | None:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip().lower() if line else None


def _edited(criteria: Sequence[str]) -> list[str]:
    """Criteria from the editor, one per line; without an editor, typed ones."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "criteria.md"
            file.write_text("".join(f"{line}\n" for line in criteria), encoding="utf-8")
            subprocess.run([*shlex.split(editor), str(file)], check=False)
            lines = file.read_text(encoding="utf-8").splitlines()
    else:
        echo("One criterion per line; a command in backquotes at its end is run. An empty line ends it.", error=True)
        lines = list(iter(lambda: sys.stdin.readline().strip(), ""))
    return [line.strip() for line in lines if line.strip()]
