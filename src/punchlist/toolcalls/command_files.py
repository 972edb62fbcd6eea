"""The files of the workspace that a command line runs or reads as instructions, such as `deploy.sh` in `sh deploy.sh`.

A person who approves the line approves these files too, so the question names them with their content's digest, and
changes when they do. A file that is only read as data (`cat notes.md`) does not count, and neither does what a script
or a build file refers to.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Final

from punchlist.kernel.text import visible
from punchlist.toolcalls.command_line import commands_of
from punchlist.toolcalls.path_arguments import path_pieces
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.rule_match import CommandInLine
from punchlist.toolcalls.shell.known_commands import reads_only
from punchlist.toolcalls.shell.programs import program_of

MAX_FILES: Final = 20
MAX_BYTES: Final = 5_000_000
_PACKAGE: Final = ("package.json",)
_READ_UNNAMED: Final = {
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "pnpx", "bun"), _PACKAGE),
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", "Justfile"),
    "rake": ("Rakefile",),
    "task": ("Taskfile.yml",),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}


def describe_files(line: str, paths: PathResolver) -> str:
    """One line for each file; empty if there is none."""
    _, commands = commands_of(line, paths)
    found: dict[str, None] = {}
    for command in commands:
        for path in _named(command):
            for real in command.folders.resolve(path):
                if real not in found and len(found) < MAX_FILES and paths.is_inside(real) and os.path.isfile(real):
                    found[real] = None
    return "\n".join(f"with {visible(paths.relative(real))} ({_state(real)})" for real in found)


def _named(each: CommandInLine) -> Iterator[str]:
    words, command = each.command.words, each.command
    if not words or (reads_only(words) and "/" not in words[0]):
        return
    if "/" in words[0]:
        yield words[0]
    for word in words[1:]:
        yield word
        yield from path_pieces(word)
    yield from (path for path in command.reads if path != "?")
    yield from _READ_UNNAMED.get(program_of(words[0]), ())


def _state(real: str) -> str:
    """The content's digest, so that a change cannot be hidden; of a large file, its size and time."""
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return "no regular file"
            if found.st_size > MAX_BYTES:
                return f"{found.st_size:,} bytes, changed at {found.st_mtime_ns}"
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"{len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()[:24]}"
