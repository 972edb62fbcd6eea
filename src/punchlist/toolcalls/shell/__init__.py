"""Parses a command line, as given to `bash -c` or `sh -c`, into every command that could run.

This is not a shell. It parses the part of the bash grammar whose meaning is certain and reports the rest as `unclear`:
syntax it does not support, values known only at run time, and text that bash and a plain sh parse differently. There
are two kinds of problems. A doubt is recorded and parsing continues; `Unparsable` (a syntax error, a limit) ends the
parsing of that text, since any later guess about where quotes and words end could be wrong.

Every character is read once, and nesting is bounded. Nested scripts (`bash -c '…'`, backticks, here-documents) have
their own parser and share one budget, so hostile input cannot make it slow. Code in other languages (`python -c`,
`awk`, `sed`) and programs that run others by an option (`git -c core.pager=…`, `tar --to-command`) are plain commands:
a policy has to know them by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.shell.commands import CommandParser
from punchlist.toolcalls.shell.model import MAX_LINE_LENGTH, ParseResult, SimpleCommand

__all__ = ["MAX_LINE_LENGTH", "UNREADABLE", "CommandLine", "SimpleCommand", "parse"]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNREADABLE: Final = "It cannot be parsed."


@dataclass(frozen=True, slots=True)
class CommandLine:
    commands: tuple[SimpleCommand, ...]  # every command that could run, in order
    unclear: str | None  # why the line cannot be judged completely
    is_whole: bool = True  # False: it can have other commands


def parse(line: str) -> CommandLine:
    """Every command in `line`. Never raises; `unclear` says what cannot be judged."""
    if len(line) > MAX_LINE_LENGTH:
        return CommandLine((), f"The command is longer than {MAX_LINE_LENGTH} characters.", False)
    found = ParseResult()
    if control := _CONTROL.search(line):
        found.doubt(f"It contains a control character: {excerpt(control[0])}")
    try:
        CommandParser(line, found).read_all()
    except Exception:  # a bug here must not allow a command, nor end the scheduler
        found.is_whole = False
        found.doubt(UNREADABLE)
    found.conclude()
    return CommandLine(tuple(found.commands), found.unclear, found.is_whole)
