"""Commands that people write as Markdown files: in their configuration folder and in `.punchlist/commands/`.

    ---
    description: Fix an issue
    argument-hint: NUMBER
    ---
    Fix issue $1. Recent commits:
    !`git log --oneline -5`

The file name is the command name. `$1` to `$9` are the arguments, `$ARGUMENTS` is all of them. The person confirms
shell commands before they run; arguments in them are quoted for the shell. A project may come from another
author, so its commands run only after the person has seen and trusted the content of the file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from punchlist.config import PROJECT_FOLDER
from punchlist.errors import InvalidInput
from punchlist.kernel.text import block_problem, excerpt, visible, visible_block
from punchlist.surfaces.tui.slash_commands.model import (
    CommandSource,
    ConfirmAction,
    ConfirmShellCommands,
    SlashCommand,
    SlashContext,
    SlashResult,
    SubmitPrompt,
)
from punchlist.surfaces.tui.slash_commands.shell_blocks import fence
from punchlist.trust import UnsafeFile, is_own, read_regular, user_folder

if TYPE_CHECKING:
    from punchlist.app import Services

FOLDER: Final = "commands"
MAX_BYTES: Final = 100_000
MAX_FILES: Final = 200
MAX_LINE: Final = 200
NOT_TRUSTED: Final = "not trusted yet"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_SHELL: Final = re.compile(r"!`([^`\n]+)`")
_ARGUMENT: Final = re.compile(r"\$(ARGUMENTS\b|[1-9](?![0-9]))")


@dataclass(frozen=True, slots=True)
class CommandFile:
    path: Path
    content: bytes
    """The bytes that were read: trust is given to them."""
    description: str
    argument_hint: str
    template: str

    @property
    def name(self) -> str:
        return self.path.stem

    def shell_commands(self, arguments: str) -> list[str]:
        """The shell commands of the template, each once."""
        return list(dict.fromkeys(_fill(found, arguments, quote=True) for found in _SHELL.findall(self.template)))

    def prompt(self, arguments: str, output: Mapping[str, str]) -> str:
        """The prompt with arguments and the output of the shell commands."""
        parts = _SHELL.split(self.template)
        # Every second part is a shell command. Output is inserted last, so nothing in it is replaced.
        filled = [
            f"\n{fence(output[_fill(part, arguments, quote=True)])}\n" if place % 2 else _fill(part, arguments)
            for place, part in enumerate(parts)
        ]
        text = "".join(filled).strip()
        if arguments and not _ARGUMENT.search(self.template):
            text = f"{text}\n\n{arguments}"
        return text


@dataclass(frozen=True, slots=True)
class CommandFolder:
    """What was found: commands, and problems for the person."""

    files: Sequence[CommandFile]
    problems: Sequence[str] = ()


def load_commands(services: Services, environment: Mapping[str, str]) -> tuple[list[SlashCommand], list[str]]:
    """The commands of the user and of the project, and what is wrong with files that are left out."""
    own = read_folder(user_folder(environment, "XDG_CONFIG_HOME", ".config") / FOLDER)
    commands = [_command(file, CommandSource.USER) for file in own.files]
    problems = list(own.problems)
    if services.settings.root is not None:
        found = read_folder(services.settings.root / PROJECT_FOLDER / FOLDER)
        problems += found.problems
        for file in found.files:
            trusted = services.trust.trusts(file.path, file.content)
            command = _command(file, CommandSource.PROJECT)
            commands.append(command if trusted else replace(command, unavailable=NOT_TRUSTED))
    return commands, problems


def read_folder(folder: Path) -> CommandFolder:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except OSError:
        return CommandFolder(())
    if not is_own(folder):
        return CommandFolder((), (f"{visible(folder)} belongs to another user, so its commands are left out.",))
    files: list[CommandFile] = []
    problems: list[str] = []
    for path in paths[:MAX_FILES]:
        try:
            files.append(parse_file(path, read_regular(path, MAX_BYTES)))
        except (OSError, UnsafeFile, InvalidInput) as problem:
            problems.append(f"{visible(path)}: {visible(problem)}")
    if len(paths) > MAX_FILES:
        problems.append(f"{visible(folder)}: only the first {MAX_FILES} of {len(paths)} files are commands.")
    return CommandFolder(files, problems)


def parse_file(path: Path, content: bytes) -> CommandFile:
    if not _NAME.fullmatch(path.stem):
        raise InvalidInput("the name of a command has lower-case letters, digits, - and _, at most 40.")
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text. Save it as UTF-8.") from None
    front = _FRONT_MATTER.match(text)
    fields = _fields(front.group(1)) if front else {}
    template = text[front.end() :] if front else text
    if problem := block_problem(template, max_length=MAX_BYTES, min_length=1):
        raise InvalidInput(f"the prompt {problem}.")
    first_line = template.strip().splitlines()[0]
    description = excerpt(fields.get("description") or first_line, MAX_LINE)
    hint = excerpt(fields.get("argument-hint") or fields.get("argument_hint") or "", 40)
    if not hint and _ARGUMENT.search(template):
        hint = "ARGUMENTS"
    return CommandFile(path, content, description, hint, template)


def _fields(front: str) -> dict[str, str]:
    """`key: value` lines. Unknown keys are ignored: other programs use the same files."""
    pairs = (line.partition(":") for line in front.splitlines() if ":" in line)
    return {key.strip().lower(): value.strip().strip("\"'") for key, _, value in pairs}


def _fill(text: str, arguments: str, *, quote: bool = False) -> str:
    words = _words(arguments)

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "ARGUMENTS":
            return shlex.join(words) if quote else arguments
        place = int(name) - 1
        word = words[place] if place < len(words) else ""
        return shlex.quote(word) if quote else word

    return _ARGUMENT.sub(value, text)


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        # A lone quotation mark, as in "don't".
        return arguments.split()


def _command(file: CommandFile, source: CommandSource) -> SlashCommand:
    def act(context: SlashContext, arguments: str) -> SlashResult:
        trust = context.services.trust
        if source is CommandSource.PROJECT and not trust.trusts(file.path, file.content):
            if not context.confirmed:
                question = f"{visible(file.path)} came with this project. Trust this command and run it?"
                return ConfirmAction(question, context.line, visible_block(file.content.decode(errors="replace")))
            trust.trust(file.path, file.content)
        wanted = file.shell_commands(arguments)
        if any(command not in context.shell_output for command in wanted):
            return ConfirmShellCommands(wanted, context.line)
        return SubmitPrompt(file.prompt(arguments, context.shell_output))

    return SlashCommand(file.name, file.description, act, argument_hint=file.argument_hint, source=source)
