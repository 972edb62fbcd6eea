"""The command that an installation writes down, and how our own entries are told from those of others."""

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
WINDOWS: Final = os.name == "nt"
_PROGRAM: Final = re.compile(r"(?:.*[\\/])?punchlist(?:\.exe)?(?:[@=<>~!\[].*)?", re.IGNORECASE | re.DOTALL)
"""As people start it: by name, by path, or by a name with a version, as in `uvx punchlist@1.2`."""
_WINDOWS_TOKEN: Final = re.compile(r'\\*"|[ \t]+|\\+|[^\\" \t]+')
"""Backslashes belong together with the quotation mark that follows them; elsewhere they mean nothing."""
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EntryCommand:
    """How Punchlist is started, and for which host's sake."""

    program: tuple[str, ...]
    host: str
    before: tuple[str, ...] = ()
    """How it was started when it was installed last: that was ours, too."""
    windows: bool = WINDOWS
    """Whether command lines are written as on Windows."""

    @property
    def server(self) -> list[str]:
        return [*self.program, "mcp", "--for", self.host]

    def hook(self, event: str) -> str:
        """For a shell, since that is what hosts give hooks to."""
        return quoted([*self.program, "hook", event, "--for", self.host], windows=self.windows)

    def is_server(self, words: Sequence[str]) -> bool:
        return self._more(words, "mcp") is not None

    def renewed(self, words: Sequence[str]) -> list[str]:
        """Our server's words as they are to be, with what somebody has added to them."""
        return [*self.server, *(self._more(words, "mcp") or ())]

    def hook_event(self, line: str) -> str | None:
        """Which of our events a hook's command is for; None if it is not ours."""
        words = self.words(line)
        events = (after for word, after in pairwise(words) if word == "hook")
        return next((event for event in events if self._more(words, "hook", event) is not None), None)

    def renewed_hook(self, event: str, line: str) -> str:
        more = self._more(self.words(line), "hook", event)
        return f"{self.hook(event)} {quoted(more, windows=self.windows)}" if more else self.hook(event)

    def words(self, line: str) -> list[str]:
        return split(line, windows=self.windows)

    def _more(self, words: Sequence[str], *ours: str) -> Sequence[str] | None:
        """What follows our words, if these are our program and those words; None if they are not."""
        tail = [*ours, "--for", self.host]
        for place in range(1, len(words) - len(tail) + 1):
            after = place + len(tail)
            if list(words[place:after]) == tail and self._is_program(words[:place]):
                return words[after:]
        return None

    def _is_program(self, words: Sequence[str]) -> bool:
        return tuple(words) in (self.program, self.before) or any(_PROGRAM.fullmatch(word) for word in words)


def quoted(words: Sequence[str], *, windows: bool = WINDOWS) -> str:
    return subprocess.list2cmdline(words) if windows else shlex.join(words)


def split(line: str, *, windows: bool = WINDOWS) -> list[str]:
    """What `quoted` made a line of; nothing if a quotation mark is left open."""
    try:
        return _split_for_windows(line) if windows else shlex.split(line)
    except ValueError:
        return []


def _split_for_windows(line: str) -> list[str]:
    """By the rules that `list2cmdline` quotes by, which are those of Microsoft's C library; `shlex` has others."""
    words, apart, inside = list[str](), True, False
    for token in _WINDOWS_TOKEN.findall(line):
        if not inside and not token.strip(" \t"):
            apart = True
            continue
        if apart:
            words.append("")
            apart = False
        if not token.endswith('"'):
            words[-1] += token
            continue
        pairs, single = divmod(len(token) - 1, 2)
        words[-1] += "\\" * pairs + '"' * single
        inside = inside if single else not inside
    if inside:
        raise ValueError("a quotation mark is left open")
    return words


def given(line: str, *, windows: bool = WINDOWS) -> tuple[str, ...]:
    """`--command`, as a person types it."""
    if found := _UNWRITABLE.search(line):
        raise InvalidInput(f"--command: must be one line of text; character {found.start() + 1} cannot be written.")
    words = split(line, windows=windows)
    if not words:
        raise InvalidInput(f"--command: {excerpt(line)!r} is no command. Say how Punchlist is started: punchlist")
    return tuple(words)


def own(environment: Mapping[str, str]) -> tuple[str, ...]:
    """How this installation is started from anywhere.

    By its name, if that finds it in every shell. A virtual environment is on the PATH only where it was activated, and
    the host may be started elsewhere: then by its path.
    """
    script = _script()
    if script is None:
        return (sys.executable, "-m", NAME)
    found = shutil.which(NAME, path=_lasting(environment.get("PATH", os.defpath)))
    if found and Path(found).resolve() == script.resolve():
        return (NAME,)
    if found_unwritable := _UNWRITABLE.search(str(script)):
        raise InvalidInput(
            f"{excerpt(str(script))}: a path with {found_unwritable.group()!r} cannot be written into settings. "
            "Name another command with --command."
        )
    return (str(script),)


def starts(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether the program that somebody wrote down is there."""
    return bool(words) and shutil.which(words[0], path=environment.get("PATH", os.defpath)) is not None


def _script() -> Path | None:
    name = f"{NAME}.exe" if WINDOWS else NAME
    started = Path(sys.argv[0])
    places = [Path(sysconfig.get_path("scripts")) / name, Path(sys.executable).parent / name, started.absolute()]
    return next((place for place in places if place.name == name and place.is_file()), None)


def _lasting(path: str) -> str:
    """The folders of a PATH that belong to no virtual environment."""
    folders = path.split(os.pathsep)
    return os.pathsep.join(one for one in folders if one and not (Path(one).parent / "pyvenv.cfg").exists())
