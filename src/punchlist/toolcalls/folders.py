"""The folders in which the commands of a line can run, and what paths mean there."""

from __future__ import annotations

import os
import re
from typing import Final

from punchlist.toolcalls.glob_expansion import GlobExpansion
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.programs import program_of

_MAX_FOLDERS: Final = 8
_CHANGES_FOLDER: Final = frozenset(("cd", "chdir", "popd", "pushd"))
_HOME: Final = re.compile(r"~(?:/[\w./-]*)?\Z")
_RUN_ELSEWHERE: Final = frozenset(("doas", "env", "genv", "sudo"))
_FOLDER_OPTION: Final = re.compile(r"(?:-[a-zA-Z0-9]*[CD]|--chdir(?:=|\Z))(.*)", re.DOTALL)
_IN_EACH_FOLDER: Final = frozenset(("-execdir", "-okdir"))
_OTHER_SHELLS: Final = re.compile(r"(?:zsh|ksh|mksh|fish|t?csh|nu|elvish|xonsh)\Z")
_GLOB_SETTINGS: Final = frozenset(("BASHOPTS", "GLOBIGNORE", "SHELLOPTS"))


class Folders:
    """The folders in which the commands of a line can run: `cd` adds one, and an unknown one makes all uncertain."""

    def __init__(self, paths: PathResolver) -> None:
        self._paths = paths
        self.certain = True
        self.known: list[str] = [paths.root]
        self._resolved: dict[str, list[str]] = {}
        self.globs = GlobExpansion()
        self.globs_are_plain = True
        """No command of the line changes what patterns match: `shopt -s dotglob`."""

    @property
    def are_only_root(self) -> bool:
        return self.certain and len(self.known) == 1

    def after(self, command: SimpleCommand) -> None:
        """Take the effect of a command into account."""
        if not _GLOB_SETTINGS.isdisjoint(command.assignments) or _changes_globs(command):
            self.globs_are_plain = False
        if command.words and command.words[0] in _CHANGES_FOLDER:
            self._enter(command)
        elif command.words:
            self._run_elsewhere(command)

    def _enter(self, command: SimpleCommand) -> None:
        if command.words[0] == "popd" and command.complete:
            return  # to a folder that `pushd` has left
        arguments = [word for word in command.words[1:] if not word.startswith("-")]
        if not arguments and len(command.rest) == 1 and _HOME.match(command.rest[0].raw):
            self._add(os.path.expanduser(command.rest[0].raw))
            return
        if not command.complete or len(arguments) != 1 or "-" in command.words[1:]:
            self.certain = False
            return
        self._add(arguments[0])

    def _run_elsewhere(self, command: SimpleCommand) -> None:
        """Take into account that `env -C x`, `sudo -D x` and `find -execdir` run their command in another folder."""
        words = command.words
        program = program_of(words[0])
        if program in {"find", "gfind"} and not _IN_EACH_FOLDER.isdisjoint(words):
            self.certain = False
        for at, word in enumerate(words if program in _RUN_ELSEWHERE else (), start=1):
            if (option := _FOLDER_OPTION.match(word)) is None:
                continue
            if option[1] or at < len(words):
                self._add(option[1] or words[at])
            else:
                self.certain = False

    def _add(self, path: str) -> None:
        if len(self.known) > _MAX_FOLDERS:
            return
        more = [self._paths.resolve(path, folder) for folder in self.known]
        self.known = list(dict.fromkeys([*self.known, *more]))
        self._resolved.clear()
        if len(self.known) > _MAX_FOLDERS:
            self.certain = False

    def resolve(self, path: str) -> list[str]:
        """What a path can name, one for each folder."""
        if path not in self._resolved:
            found = os.path.expanduser(path) if path.startswith("~/") else path.removeprefix("~+/")
            anywhere = found.startswith("/") and "/cwd" not in found
            known = [self._paths.root] if anywhere else self.known
            self._resolved[path] = [self._paths.resolve(found, folder) for folder in known]
        return self._resolved[path]


def _changes_globs(command: SimpleCommand) -> bool:
    if not command.words:
        return False
    program = program_of(command.words[0])
    return (
        program == "shopt" or _OTHER_SHELLS.match(program) is not None or (program == "bash" and "-O" in command.words)
    )
