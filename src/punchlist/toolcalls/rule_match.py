"""Whether a rule applies to one command of a line.

Allowing rules match exactly: these words, no assignment before the command, no redirection to a file, and paths by
what they really name. Asking and denying rules match broadly: the program can be given by its path or through a link,
options can have another order or form, and a command with unknown words is one that the rule may apply to.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final

from punchlist.toolcalls.expanded_command import ExpandedCommand, expand
from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.hidden_commands import MAX_FOUND, HiddenCommands, InnerCommand, hidden_commands
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.known_commands import is_known
from punchlist.toolcalls.shell.options import has_option, is_option, option_names, option_scope
from punchlist.toolcalls.shell.programs import (
    has_subcommands,
    is_known_subcommand,
    is_no_other_subcommand,
    program_of,
    runs_arguments,
    runs_script,
    same_subcommand,
    subcommand_at,
)

_VERSION: Final = re.compile(r"-?[0-9][0-9.]*\Z")
_GIT_SETTING: Final = re.compile(r"(?:alias|include|includeif|remote|branch|push)\.", re.IGNORECASE)
_MAX_NEAR: Final = 10
"""The words after a program in a text that can be its arguments."""
_MAX_DEPTH: Final = 3
"""Of texts in texts: `uv run sh -c 'ssh h "rm -rf x"'`."""


class CommandInLine:
    """A command, and the folders in which it can run."""

    def __init__(
        self, command: SimpleCommand, folders: Folders, paths: PathResolver, others: dict[SimpleCommand, CommandInLine]
    ) -> None:
        """`others` are the commands of the line and what they hide."""
        self.command = command
        self.folders = folders
        self.paths = paths
        self._others = others
        self._expanded: ExpandedCommand | None = None
        self._hides: dict[tuple[tuple[str, ...], str | None, int], bool] = {}
        self._letter = _only_letter(command.words)
        self._results: dict[tuple[tuple[str, ...], str | None], bool | None] = {}

    @cached_property
    def scope(self) -> str:
        return option_scope(self.command.words)

    @property
    def expanded(self) -> ExpandedCommand:
        if self._expanded is None:
            self._expanded = expand(self.command, self.folders)
        return self._expanded

    @cached_property
    def options(self) -> set[str]:
        return option_names(self.scope, self.command.words[1:])

    # --- allowing rules ---------------------------------------------------------------------------------

    def covered(self, prefixes: Sequence[Sequence[str]], lines: Sequence[Sequence[str]], folder: str | None) -> int:
        """The number of words that an allowing rule names; 0 if it does not cover the command."""
        command = self.command
        if command.assignments or command.writes or not command.words:
            return 0
        program = command.words[0]
        longest = 0
        for words in prefixes:
            if (words[0] == program or "/" in words[0]) and len(words) > longest and self._begins_with(words, folder):
                longest = len(words)
        if longest or not lines:
            return longest
        # In another folder, the same line can run another script or build file.
        for words in lines if self.folders.are_only_root else ():
            if command.complete and len(words) == len(command.words) and self._begins_with(words, folder):
                return len(words)
        return 0

    def _begins_with(self, words: Sequence[str], folder: str | None) -> bool:
        found = self.command.words[: len(words)]
        if found[1:] != tuple(words[1:]) or len(found) != len(words):
            return False
        if "/" not in words[0]:
            return found[0] == words[0]
        if "/" not in found[0] or not (self.folders.certain or found[0].startswith("/")):
            return False
        target = self.paths.resolve(words[0], folder)
        return all(real == target for real in self.folders.resolve(found[0]))

    # --- asking and denying rules -----------------------------------------------------------------------

    def may_be(self, words: tuple[str, ...], folder: str | None) -> bool | None:
        """Whether a command is one that these words mean; None when that is not certain."""
        if self._is_surely_not(words[0]):
            return False
        found = self._is(words, folder)
        return None if found is False and self._may_hide(words, folder) else found

    def _is_surely_not(self, wanted: str) -> bool:
        """Whether a look at the letters is enough: most commands have none of a rule's program."""
        if self._letter is None or "/" in wanted or wanted[:1].lower() == self._letter:
            return False
        return (hidden := self._hidden) is None or (not hidden.is_too_much and not _may_name(hidden, wanted))

    def _may_hide(self, words: tuple[str, ...], folder: str | None, depth: int = 0) -> bool:
        key = words, folder, depth
        if key not in self._hides:
            self._hides[key] = self._looks_hidden(words, folder, depth)
        return self._hides[key]

    def _looks_hidden(self, words: tuple[str, ...], folder: str | None, depth: int) -> bool:
        """Whether the command may run from its arguments or its input what these words mean."""
        if (hidden := self._hidden) is None:
            return False
        if hidden.is_too_much:
            return True
        if not _may_name(hidden, words[0]):
            return False
        if not hidden.is_certain:
            return True
        name = program_of(words[0])
        places = self._places_of(hidden.words, words[0], folder) if hidden.arguments else []
        mentions = list(itertools.islice(hidden.mentions(_VERSION.sub("", name) or name), MAX_FOUND + 1))
        if len(places) > MAX_FOUND or len(mentions) > MAX_FOUND:
            return True
        found = [*(hidden.words[at:] for at in places), *mentions]
        if any(self._as(self.command._replace(words=each))._is(words, folder) is not False for each in found):
            return True
        if len(words) > 1 and any(set(words[1:]) <= set(each[1:_MAX_NEAR]) for each in mentions):
            # `call("npm", env, ["publish"])` in another language.
            return True
        return any(self._contains(one, words, folder, depth) for one in hidden.parsed)

    def is_program(self, word: str, program: str) -> bool:
        """Whether a word names a program, which can be given by its path or a link."""
        return self._is_program(word, program, None) is not False

    def runs_hidden(self, program: str) -> bool:
        """Whether a text among the arguments runs a program: `ssh h 'program x'`."""
        hidden = self._hidden
        if hidden is None:
            return False
        mentioned = next(hidden.mentions(program), None) is not None
        return mentioned or any(self._contains(one, (program,), None, 0) for one in hidden.parsed)

    def in_texts(self) -> list[CommandInLine]:
        """The commands in the texts among the arguments: `cp x y` of `script -c 'cp x y'`."""
        return [self._as(inner.command) for inner in self._hidden.parsed] if self._hidden else []

    def _contains(self, inner: InnerCommand, words: tuple[str, ...], folder: str | None, depth: int) -> bool:
        """Whether a command in a text of the arguments may be, or may run, what the words mean."""
        command = self._as(inner.command)
        if command._is(words, folder) is not False:
            return True
        deeper = depth < _MAX_DEPTH and (inner.is_deep or runs_arguments(inner.command.words))
        return deeper and command._may_hide(words, folder, depth + 1)

    def _as(self, command: SimpleCommand) -> CommandInLine:
        """The same object for equal commands, so that each is looked at once."""
        found = self._others.get(command)
        if found is None:
            found = self._others[command] = CommandInLine(command, self.folders, self.paths, self._others)
        return found

    def _places_of(self, words: Sequence[str], wanted: str, folder: str | None) -> list[int]:
        """Where in the arguments a program begins: `rm` of `uv run rm -rf x`."""
        name = program_of(wanted)
        # Only a path can be another name of a program.
        likely = (
            at
            for at in range(1, len(words))
            if "/" in words[at] or "/" in wanted or words[at][:1].lower() == wanted[:1].lower()
        )
        places = (
            at
            for at in likely
            if self._is_program(words[at], wanted, folder) is not False or program_of(words[at]).startswith(f"{name}-")
        )
        return list(itertools.islice(places, MAX_FOUND + 1))

    @cached_property
    def _hidden(self) -> HiddenCommands | None:
        return hidden_commands(self.command)

    def _is(self, words: tuple[str, ...], folder: str | None) -> bool | None:
        if (words, folder) not in self._results:
            self._results[words, folder] = self._compare(words, folder)
        return self._results[words, folder]

    def _compare(self, words: tuple[str, ...], folder: str | None) -> bool | None:
        command = self.command
        if not command.words:
            # A plain assignment runs no program; an unknown program could be any.
            return False if command.complete and not self._reads_any_of(words) else None
        if command.words == ("exec",) and self._reads_any_of(words):
            return None
        runs_others = self._letter is None
        if (
            runs_others
            and (spelled_out := self._with_subcommand) is not None
            and (found := spelled_out._is(words, folder)) is not False
        ):
            return found
        program = self._is_program(command.words[0], words[0], folder)
        if not program and not runs_others:
            return program
        matches = self._has_arguments(words) if program else False
        results = [program if matches else matches if program else program]
        if runs_others:
            results += [self._is_program(word, words[0], folder, is_file=True) for word in self._scripts]
        if True in results:
            return True
        return None if None in results else False

    @cached_property
    def _scripts(self) -> list[str]:
        """The arguments that can be a script: `bash deploy.sh` runs deploy.sh."""
        words = self.command.words
        return [*(word for word in words[1:] if not is_option(word)), *self.command.reads] if runs_script(words) else []

    @cached_property
    def _with_subcommand(self) -> CommandInLine | None:
        """`git-push x` as `git push x`; None for other commands."""
        program, dash, subcommand = program_of(self.command.words[0]).partition("-")
        if not dash or not subcommand or not has_subcommands(program):
            return None
        words = (program, subcommand, *self.command.words[1:])
        return self._as(self.command._replace(words=words))

    def _is_program(self, word: str, wanted: str, folder: str | None, *, is_file: bool = False) -> bool | None:
        name = program_of(word)
        if "/" not in word and "/" not in wanted and not is_file:
            return _same_program(name, wanted)
        reals = self.folders.resolve(word) if "/" in word or is_file else []
        names = {name, *map(program_of, reals)}
        if "/" not in wanted:
            return any(_same_program(one, wanted) for one in names)
        target = self.paths.resolve(wanted, folder)
        if target in reals or ("/" not in word and wanted.startswith("/") and program_of(wanted) in names):
            return True
        uncertain = bool(reals) and not self.folders.certain and not word.startswith("/")
        same = any(_same_program(one, program_of(file)) for one in names for file in (wanted, target))
        return None if uncertain or same else False

    def _has_arguments(self, words: Sequence[str]) -> bool | None:
        options = [word for word in words[1:] if is_option(word)]
        plain = [word for word in words[1:] if not is_option(word)]
        if is_no_other_subcommand(self.command.words) and plain and plain[0] not in self.command.words:
            # Whatever the unknown arguments are, `git commit -m "$(…)"` is no `git push`.
            return False
        found = self._has_words(plain)
        if found and not all(self._has_option(option) for option in options):
            found = False
        return None if found is False and not self.command.complete else found

    def _has_option(self, option: str) -> bool:
        name, equals, value = option.partition("=")
        if not equals:
            return has_option(self.scope, self.options, option)
        words = self.command.words
        return option in words or (has_option(self.scope, self.options, name) and value in words)

    def _has_words(self, wanted: Sequence[str]) -> bool | None:
        words = self.command.words
        program = program_of(words[0])
        if wanted and has_subcommands(program) and (at := subcommand_at(words)) is not None:
            if at >= len(words):
                return False
            if program == "git" and _changes_settings(words, at):
                return None
            if same_subcommand(program, words[at]) != same_subcommand(program, wanted[0]):
                if (
                    program == "docker"
                    and words[at] in {"container", "image"}
                    and words[at + 1 : at + 2] == tuple(wanted[:1])
                ):
                    return True
                if not is_known_subcommand(program, words[at]):
                    return None
                # Some programs accept the beginning of a subcommand.
                return None if len(words[at]) > 1 and wanted[0].startswith(words[at]) else False
            words, wanted = words[at:], wanted[1:]
        rest = [*_with_values(words[1:]), *self.command.reads]
        if all(any(self._is_word(word, one) for word in rest) for one in wanted):
            return True
        return None if "?" in self.command.reads else False

    def _reads_any_of(self, wanted: Sequence[str]) -> bool:
        """Whether a redirection for other commands, as in `{ cat; } < x`, reads a file that a rule names."""
        return any(path == "?" or self._is_word(path, word) for path in self.command.reads for word in wanted[1:])

    def _is_link(self, name: str) -> bool:
        return any(os.path.islink(os.path.join(folder, name)) for folder in self.folders.known)

    def _is_word(self, word: str, wanted: str) -> bool:
        if word == wanted or (wanted.isdecimal() and word.isdecimal() and int(word) == int(wanted)):
            return True
        if "/" not in word and "/" not in wanted and not self._is_link(word):
            return False
        return self.paths.resolve(wanted) in self.folders.resolve(word)


def _only_letter(words: tuple[str, ...]) -> str | None:
    """The first letter of the program; None for a path, a script and `git-push`."""
    if not words or "/" in words[0] or "-" in words[0] or runs_script(words):
        return None
    return words[0][:1].lower()


def _may_name(hidden: HiddenCommands, wanted: str) -> bool:
    """Whether the program can be in the arguments. A script can be a link with another name."""
    return "/" in wanted or "." in wanted or hidden.may_name(_without_version(wanted))


@lru_cache(maxsize=512)
def _without_version(program: str) -> str:
    return _VERSION.sub("", program_of(program))


def commands_in(commands: Sequence[SimpleCommand], folders: Folders, paths: PathResolver) -> list[CommandInLine]:
    """The commands of a line. Equal ones are one object."""
    others: dict[SimpleCommand, CommandInLine] = {}
    found: list[CommandInLine] = []
    for command in commands:
        plain = command._replace(within="") if command.within else command
        each = others.get(plain)
        if each is None:
            each = others[plain] = CommandInLine(command, folders, paths, others)
        found.append(each)
    return found


@lru_cache(maxsize=1024)
def _same_program(name: str, wanted: str) -> bool:
    """Whether two names mean one program: python3 is also python, python3.12 and python3.13, but not python2."""
    wanted = wanted.lower()
    if name == wanted:
        return True
    plain, wanted_plain = _VERSION.sub("", name), _VERSION.sub("", wanted)
    if plain != wanted_plain or not plain:
        return False
    more = name.removeprefix(wanted)
    return name == plain or wanted == wanted_plain or (more != name and _VERSION.match(more.lstrip(".")) is not None)


_MAX_CLUSTER: Final = 12
"""Most letters of options in one word that are looked at for a value."""


def _with_values(words: Sequence[str]) -> Iterator[str]:
    """The words, and the values that are attached to options: `-XPOST` and `-sXPOST` have the value POST."""
    for word in words:
        yield word
        if word.startswith("--"):
            yield word.partition("=")[2]
        elif word.startswith("-"):
            yield from (word[at:] for at in range(2, min(len(word), _MAX_CLUSTER)))


def _changes_settings(words: tuple[str, ...], subcommand: int) -> bool:
    """Whether a git command sets an alias or what a push does, for itself or for later commands."""
    setting = words if words[subcommand] == "config" and not is_known(words) else words[:subcommand]
    return any(_GIT_SETTING.match(word) or word.startswith("--config-env") for word in setting)
