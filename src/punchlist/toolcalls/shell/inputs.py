"""What a command does with its standard input: `grep` and `git commit -F -` take it as data, `python3 -` runs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.harmless_options import TAKES_DATA
from punchlist.toolcalls.shell.known_commands import is_known, known_command
from punchlist.toolcalls.shell.model import SimpleCommand
from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.programs import program_of
from punchlist.toolcalls.shell.risky_arguments import risky_argument

_PROSE: Final = frozenset(("git commit", "git notes", "git tag", "gh issue", "gh pr", "gh release"))
_STORES: Final = frozenset(("git am", "git apply"))
_FROM_INPUT: Final = frozenset(("-", "-F", "--file", "--file=-", "--body-file", "--body-file=-", "--notes-file"))
_FILTERS: Final = frozenset(("sed", "gsed", "awk", "gawk", "mawk", "nawk"))
"""Unless an argument is risky, such as `-f`, their scripts are among their arguments."""


@lru_cache(maxsize=64)
def takes_data(words: tuple[str, ...]) -> bool:
    """Whether a command surely runs nothing and writes nothing because of its input."""
    if not words:
        return True
    if risky_argument(words, 1) is not None:
        return False
    if program_of(words[0]) in _FILTERS:
        return "/" not in words[0]
    known = known_command(words)
    return known is not None and known.row.name in TAKES_DATA and is_known(words)


def reads_prose(command: SimpleCommand) -> bool:
    """Whether the texts that reach a command are surely a message, of a commit or a pull request, or a patch."""
    words = command.words
    if not words or "/" in words[0] or option_scope(words) not in _PROSE | _STORES:
        return False
    if option_scope(words) in _STORES:
        return True
    from_input = not _FROM_INPUT.isdisjoint(words)
    if command.fed and not from_input:
        # An editor may read it.
        return False
    return program_of(words[0]) == "gh" or is_known(tuple(word for word in words if word not in _FROM_INPUT))


def share_texts(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """The commands with the texts that others of their line pass to them, or write to files that they could run."""
    texts = [_output(command) for command in commands]
    if not any(texts):
        return list(commands)
    passed = [text for command, own in zip(commands, texts, strict=True) if command.feeds for text in own]
    written = [text for command, own in zip(commands, texts, strict=True) if _writes(command) for text in own]
    if any(command.fed and _writes(command) for command in commands):
        written += passed
    shared: list[SimpleCommand] = []
    for command in commands:
        more = (*written, *(passed if command.fed or not command.complete else ()))
        shared.append(command._replace(texts=tuple(dict.fromkeys((*command.texts, *more)))) if more else command)
    return shared


def _output(command: SimpleCommand) -> tuple[str, ...]:
    """The texts of the line that a command can print."""
    if command.words[:1] in {("echo",), ("printf",)} and (command.feeds or command.writes):
        printed = " ".join((*command.words[1:], *(word.raw for word in command.rest)))
        return (printed.replace("\\n", "\n").replace("\\t", "\t"),)
    return command.texts


def _writes(command: SimpleCommand) -> bool:
    """Whether a command can write what it prints or reads to a file."""
    return bool(command.writes) or (command.words[:1] not in {("echo",), ("printf",)} and not takes_data(command.words))
