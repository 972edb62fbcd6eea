"""Takes a command line, as given to `bash -c` or `sh -c`, apart into every command that could run.

This is not a shell. It reads the part of bash's grammar whose meaning is certain, and says `unclear` about the rest:
what it does not understand, what is known only when it runs, and what bash and a plain sh would read differently.
Two kinds of trouble are kept apart. A doubt is noted and reading goes on; a stop (a syntax error, a limit) ends the
reading of that text, since from there on any guess about where quotes and words end could be wrong.

It reads every character once and goes down a bounded number of levels. Texts inside of texts (`bash -c '…'`, `…` in
backticks, here-documents) are read by a reader of their own and paid for from one budget, so hostile input cannot make
it slow. Code in other languages (`python -c`, `awk`, `sed`) and programs that run others by options of their own
(`git -c core.pager=…`, `tar --to-command`) are just commands: a policy has to know them by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.shell.commands import CommandParser
from punchlist.toolcalls.shell.parsed import MAX_LINE_LENGTH, ParseResult, SimpleCommand

__all__ = ["MAX_LINE_LENGTH", "UNREADABLE", "CommandLine", "SimpleCommand", "parse"]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNREADABLE: Final = "It cannot be read."


@dataclass(frozen=True, slots=True)
class CommandLine:
    commands: tuple[SimpleCommand, ...]  # every command that could run, in order
    unclear: str | None  # why not all of it can be judged


def parse(line: str) -> CommandLine:
    """Every command in `line`. Never raises; what cannot be judged is said in `unclear`."""
    if len(line) > MAX_LINE_LENGTH:
        return CommandLine((), f"The command is longer than {MAX_LINE_LENGTH} characters.")
    found = ParseResult()
    if control := _CONTROL.search(line):
        found.doubt(f"It has a control character: {excerpt(control[0])}")
    try:
        CommandParser(line, found).read_all()
    except Exception:  # a mistake of ours must not let a command through, nor end the scheduler
        found.doubt(UNREADABLE)
    found.conclude()
    return CommandLine(tuple(found.commands), found.unclear)
