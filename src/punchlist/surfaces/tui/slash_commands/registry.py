"""Finds, completes and runs slash commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.kernel.text import did_you_mean, excerpt
from punchlist.surfaces.tui.slash_commands.model import (
    MessageLevel,
    ShowMessage,
    SlashCommand,
    SlashContext,
    SlashResult,
)

PREFIX: Final = "/"
MAX_COMPLETIONS: Final = 50


@dataclass(frozen=True, slots=True)
class SlashCompletion:
    """One candidate. `line` is the whole line after it was chosen."""

    line: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class FoundCommand:
    command: SlashCommand
    path: str
    """The names from the top, such as `todos add`."""
    arguments: str


class SlashRegistry:
    """The commands by name. An earlier command hides later ones of the same name: files cannot replace built-ins."""

    def __init__(self, commands: Iterable[SlashCommand]) -> None:
        self._commands: dict[str, SlashCommand] = {}
        for command in commands:
            self._commands.setdefault(command.name, command)

    @property
    def commands(self) -> Sequence[SlashCommand]:
        return sorted(self._commands.values(), key=lambda command: command.name)

    def run(self, line: str, context: SlashContext) -> SlashResult:
        """Run a line. Every problem becomes a message that says what to do."""
        found = self.find(line)
        if isinstance(found, ShowMessage):
            return found
        if found.command.action is None:
            names = ", ".join(each.name for each in found.command.sub_commands)
            return problem(f"/{found.path} needs one of: {names}.")
        try:
            return found.command.action(replace(context, line=line.strip()), found.arguments)
        except PunchlistError as error:
            return problem(str(error))

    def find(self, line: str) -> FoundCommand | ShowMessage:
        """The command of a line, or a message that suggests a similar one."""
        name, rest = _split(line.strip().removeprefix(PREFIX))
        command = self._commands.get(name)
        if command is None:
            hint = did_you_mean(name, self._commands).replace("mean ", "mean /")
            return problem(f"There is no command /{excerpt(name)}.{hint} /help lists the commands.")
        path = name
        while command.sub_commands:
            word, after = _split(rest)
            sub = next((each for each in command.sub_commands if each.name == word), None)
            if sub is None:
                break
            command, path, rest = sub, f"{path} {word}", after
        if rest and command.sub_commands and not command.argument_hint:
            names = [each.name for each in command.sub_commands]
            word, _ = _split(rest)
            hint = did_you_mean(word, names)
            return problem(f"/{path} has no {excerpt(word)!r}.{hint} There are: {', '.join(names)}.")
        return FoundCommand(command, path, rest)

    def complete(self, line: str, context: SlashContext) -> list[SlashCompletion]:
        """Candidates for the word at the end of a line that begins with a slash."""
        if not line.startswith(PREFIX) or "\n" in line:
            return []
        name, blank, rest = line.removeprefix(PREFIX).partition(" ")
        if not blank:
            return [_candidate("", each) for each in _matching(name, self.commands)][:MAX_COMPLETIONS]
        command, path = self._commands.get(name), name
        while command is not None:
            word, blank, after = rest.lstrip().partition(" ")
            if not blank:
                return _candidates(command, path, word, context)[:MAX_COMPLETIONS]
            command = next((each for each in command.sub_commands if each.name == word), None)
            path, rest = f"{path} {word}", after
        return []


def problem(text: str) -> ShowMessage:
    return ShowMessage(text, MessageLevel.ERROR)


def _split(text: str) -> tuple[str, str]:
    """The first word, in lower case, and the rest."""
    parts = text.strip().split(maxsplit=1)
    return (parts[0].lower() if parts else ""), (parts[1].strip() if len(parts) > 1 else "")


def _matching(word: str, commands: Iterable[SlashCommand]) -> list[SlashCommand]:
    """Names that begin with the word, then names that contain it."""
    word = word.lower()
    found = [command for command in commands if word in command.name]
    return sorted(found, key=lambda command: not command.name.startswith(word))


def _candidates(command: SlashCommand, path: str, word: str, context: SlashContext) -> list[SlashCompletion]:
    subs = [_candidate(f"{path} ", each) for each in _matching(word, command.sub_commands)]
    values = command.values(context) if command.values is not None else ()
    return subs + [
        SlashCompletion(f"{PREFIX}{path} {value}", value, "")
        for value in values
        if word.lower() in value.lower() and value != word
    ]


def _candidate(path: str, command: SlashCommand) -> SlashCompletion:
    more = " " if command.argument_hint or command.sub_commands else ""
    label = f"{PREFIX}{command.name}" if not path else command.name
    description = f"{command.description} ({command.unavailable})" if command.unavailable else command.description
    return SlashCompletion(f"{PREFIX}{path}{command.name}{more}", label, description)
