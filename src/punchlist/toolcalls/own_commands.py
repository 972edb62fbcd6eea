"""Finds commands that may run `punchlist` itself, which acts for the user: `python -m punchlist`, `uvx punchlist`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from punchlist.toolcalls.rule_match import CommandInLine
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.programs import (
    program_of,
    running_subcommand,
    runs_arguments,
    runs_elsewhere,
    runs_script,
)
from punchlist.toolcalls.shell.wrappers import may_run_anything

_NAME: Final = "punchlist"
_MODULE: Final = re.compile(r"-[A-Za-z]*?m(.*)", re.DOTALL)
_CODE: Final = re.compile(r"-[A-Za-z]*[ce]\Z")
_NAMED: Final = re.compile(r"(?<![\w/.-])punchlist(?![\w/-])")
_ALIAS: Final = re.compile(r"!\s*(?:\S*/)?punchlist(?![\w/-])")
_PACKAGE: Final = re.compile(r"(?:\A|[#:=])punchlist(?:[@=~<>!\[].*)?\Z", re.IGNORECASE)
"""`punchlist@latest`, `.#punchlist`, `p=punchlist`."""
_RUNS_MODULES: Final = re.compile(r"(?:python|pypy|ipython|coverage|debugpy|kernprof|pudb|scalene|viztracer)[0-9.]*\Z")
_NAMES_COMMANDS: Final = frozenset(("alias", "hash"))
_BLANK: Final = re.compile(r"[\s;&|()`]")
_KNOWN_NAME: Final = re.compile(r"/[\w.+-]+[\"']?\Z")


def may_run_punchlist(each: CommandInLine) -> bool:
    command, words = each.command, each.command.words
    if not words:
        return not command.complete and not _has_known_name(command.rest[0])
    if each.is_program(words[0], _NAME) or any(map(_ALIAS.search, words)):
        return True
    program = program_of(words[0])
    if _RUNS_MODULES.match(program) and (
        _runs_module(words, complete=command.complete) or any(map(_NAMED.search, command.texts))
    ):
        return True
    if command.texts and _in_text(each):
        return True
    runs = runs_arguments(words) or runs_script(words) or may_run_anything(program) or program in _NAMES_COMMANDS
    if not runs:
        return False
    if any(
        _PACKAGE.search(word) or (each.is_program(word, _NAME) and not _is_folder(each, word)) for word in words[1:]
    ):
        return True
    return _in_text(each) or (not command.complete and _runs_unknown(words))


def _in_text(each: CommandInLine) -> bool:
    """Whether a text that the command may run has it: `ssh h 'punchlist x'`."""
    command = each.command
    texts = (*(word for word in (*command.words[1:], *command.values) if _BLANK.search(word)), *command.texts)
    return any(_NAME in text.lower() for text in texts) and each.runs_hidden(_NAME)


def _has_known_name(word: WrapperWord) -> bool:
    """Whether the last part of an unknown program's path is known: `"$VENV/bin/python"`."""
    name = _KNOWN_NAME.search(word.raw)
    return word.single and name is not None and _NAME not in name[0].lower()


def _runs_module(words: Sequence[str], *, complete: bool) -> bool:
    for at, word in enumerate(words[1:], start=2):
        following = words[at] if at < len(words) else ""
        if _CODE.match(word) and _NAMED.search(following):
            return True
        if (option := _MODULE.match(word)) is None:
            continue
        module = option[1] or following
        if module.partition(".")[0] == _NAME or (not module and not complete):
            return True
    return False


def _is_folder(each: CommandInLine, word: str) -> bool:
    return "/" in word and all(map(os.path.isdir, each.folders.resolve(word)))


def _runs_unknown(words: Sequence[str]) -> bool:
    """Whether the program that a launcher runs is a word that is not known: `uvx $X`."""
    if runs_elsewhere(words) or not runs_arguments(words):
        return False
    start = (running_subcommand(words) or 0) + 1
    return all(word.startswith("-") for word in words[start:])
