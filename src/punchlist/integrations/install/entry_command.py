"""The command in our entries, and how an entry is recognised as ours."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt

NAME: Final = "punchlist"
DEFAULT_LISTS: Final = "plan"
"""An agent works better with one list than with two, and many hosts have a checklist of their own."""
WINDOWS: Final = os.name == "nt"
_PROGRAM: Final = re.compile(r"(?:.*[\\/])?punchlist(?:\.exe)?(?:[@=<>~!\[].*)?", re.IGNORECASE | re.DOTALL)
"""A name, a path, or a name with a version as in `uvx punchlist@1.2`."""
_WINDOWS_TOKEN: Final = re.compile(r'\\*"|[ \t]+|\\+|[^\\" \t]+')
"""Backslashes are special only before a quotation mark."""
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EntryCommand:
    """How a host starts Punchlist."""

    program: tuple[str, ...]
    host: str
    previous: tuple[str, ...] = ()
    """The program of the last installation, which also identifies our entries."""
    lists: str | None = None
    """The lists that a person chose with `--lists`."""
    windows: bool = WINDOWS

    @property
    def server(self) -> list[str]:
        return [*self._plain_server, "--lists", self.lists or DEFAULT_LISTS]

    @property
    def _plain_server(self) -> list[str]:
        return [*self.program, "mcp", "--for", self.host]

    def hook(self, event: str) -> str:
        """A command line, because hosts run hooks in a shell."""
        return quote([*self.program, "hook", event, "--for", self.host], windows=self.windows)

    def is_server(self, words: Sequence[str]) -> bool:
        return self._extra_arguments(words, "mcp") is not None

    def updated_server(self, words: Sequence[str]) -> list[str]:
        """Our server's command with the arguments that a person added, or chose earlier."""
        extra = self._extra_arguments(words, "mcp") or ()
        if self.lists is not None:
            extra = ["--lists", self.lists, *_without_option(extra, "--lists")]
        return [*self._plain_server, *extra]

    def offered_lists(self, words: Sequence[str]) -> str | None:
        """The lists that a server's command offers; None if the command is not ours."""
        extra = self._extra_arguments(words, "mcp")
        if extra is None:
            return None
        named = [following for word, following in pairwise(extra) if word == "--lists"]
        named += [word.partition("=")[2] for word in extra if word.startswith("--lists=")]
        return named[-1] if named else "both"

    def hook_event(self, line: str) -> str | None:
        """The event of one of our hooks; None if the command is not ours."""
        words = self.split(line)
        events = (following for word, following in pairwise(words) if word == "hook")
        return next((event for event in events if self._extra_arguments(words, "hook", event) is not None), None)

    def updated_hook(self, event: str, line: str) -> str:
        extra = self._extra_arguments(self.split(line), "hook", event)
        return f"{self.hook(event)} {quote(extra, windows=self.windows)}" if extra else self.hook(event)

    def split(self, line: str) -> list[str]:
        return split(line, windows=self.windows)

    def _extra_arguments(self, words: Sequence[str], *arguments: str) -> Sequence[str] | None:
        """The words after our program and these arguments; None if the command is not ours."""
        expected = [*arguments, "--for", self.host]
        for start in range(1, len(words) - len(expected) + 1):
            end = start + len(expected)
            if list(words[start:end]) == expected and self._is_program(words[:start]):
                return words[end:]
        return None

    def _is_program(self, words: Sequence[str]) -> bool:
        return tuple(words) in (self.program, self.previous) or any(_PROGRAM.fullmatch(word) for word in words)


def _without_option(words: Sequence[str], option: str) -> list[str]:
    """The words without an option and its value."""
    kept, value_follows = list[str](), False
    for word in words:
        if not value_follows and word != option and not word.startswith(f"{option}="):
            kept.append(word)
        value_follows = word == option
    return kept


def quote(words: Sequence[str], *, windows: bool = WINDOWS) -> str:
    return subprocess.list2cmdline(words) if windows else shlex.join(words)


def split(line: str, *, windows: bool = WINDOWS) -> list[str]:
    """The words of a command line; empty if a quotation mark is not closed."""
    try:
        return _split_windows(line) if windows else shlex.split(line)
    except ValueError:
        return []


def _split_windows(line: str) -> list[str]:
    """The inverse of `subprocess.list2cmdline`, by the rules of Microsoft's C library."""
    words, new_word, in_quotes = list[str](), True, False
    for token in _WINDOWS_TOKEN.findall(line):
        if not in_quotes and not token.strip(" \t"):
            new_word = True
            continue
        if new_word:
            words.append("")
            new_word = False
        if not token.endswith('"'):
            words[-1] += token
            continue
        pairs, single = divmod(len(token) - 1, 2)
        words[-1] += "\\" * pairs + '"' * single
        in_quotes = in_quotes if single else not in_quotes
    if in_quotes:
        raise ValueError("a quotation mark is not closed")
    return words


def parse_command(line: str, *, windows: bool = WINDOWS) -> tuple[str, ...]:
    """The words of `--command`."""
    if found := _UNWRITABLE.search(line):
        raise InvalidInput(f"--command: must be one line of text; character {found.start() + 1} cannot be written.")
    words = split(line, windows=windows)
    if not words:
        raise InvalidInput(
            f"--command: {excerpt(line)!r} is not a command. Give the command that starts Punchlist, such as: punchlist"
        )
    return tuple(words)


def default_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The command that starts this installation from any folder.

    The bare name, if every shell finds it. A virtual environment is on the PATH only where it is activated, and the
    host may start elsewhere, so then the path is used.
    """
    script = _script()
    if script is None:
        return (sys.executable, "-m", NAME)
    path = environment.get("PATH", os.defpath).split(os.pathsep)
    outside_venvs = os.pathsep.join(
        folder for folder in path if folder and not (Path(folder).parent / "pyvenv.cfg").exists()
    )
    found = shutil.which(NAME, path=outside_venvs)
    if found and Path(found).resolve() == script.resolve():
        return (NAME,)
    if unwritable := _UNWRITABLE.search(str(script)):
        raise InvalidInput(
            f"{excerpt(str(script))}: a path with {unwritable.group()!r} cannot be written to settings. "
            "Name another command with --command."
        )
    return (str(script),)


def is_executable(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    return bool(words) and shutil.which(words[0], path=environment.get("PATH", os.defpath)) is not None


def _script() -> Path | None:
    name = f"{NAME}.exe" if WINDOWS else NAME
    candidates = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    paths = [*(folder / name for folder in candidates), Path(sys.argv[0]).absolute()]
    return next((path for path in paths if path.name == name and path.is_file()), None)
