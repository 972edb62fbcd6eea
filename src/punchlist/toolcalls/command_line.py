"""Judges the commands of one line: where each runs, what limits an allowed one has, and which ones change nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.own_commands import may_run_punchlist
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.policy import HARMLESS, JudgedPart, PolicyDecision, Verdict
from punchlist.toolcalls.protected_writes import protected_write
from punchlist.toolcalls.rule_match import CommandInLine, commands_in
from punchlist.toolcalls.shell import CommandLine, parse
from punchlist.toolcalls.shell.inputs import share_texts, takes_data
from punchlist.toolcalls.shell.known_commands import unknown_argument
from punchlist.toolcalls.shell.programs import program_of, runs_arguments, runs_elsewhere
from punchlist.toolcalls.shell.risky_arguments import risky_argument
from punchlist.toolcalls.shell.wrappers import may_run_anything
from punchlist.toolcalls.workspace_limits import limit_exceeded

if TYPE_CHECKING:
    from punchlist.toolcalls.shell import SimpleCommand

# A shell variable with such a name changes no program; `PATH` and `http_proxy` do.
_LOCAL_NAME: Final = re.compile(r"(?!.*proxy\Z|(?:cd|f|man|module_)?path\Z)[a-z_][a-z0-9_]*\Z")


def commands_of(line: str, paths: PathResolver) -> tuple[CommandLine, list[CommandInLine]]:
    parsed = parse(line)
    folders = Folders(paths)
    # A loop can run an earlier command after a later `cd`: every command can run in every folder of the line.
    for command in dict.fromkeys(parsed.commands):
        folders.after(command)
    return parsed, commands_in(share_texts(parsed.commands), folders, paths)


def limit(each: CommandInLine, covered: int, *, always: bool = False) -> str | None:
    """Why a person is asked about a command that a rule allows; a rule about the whole tool covers 0 words.

    `always`: the rule comes from an "always" answer. It covers only arguments and input that are known to be harmless.
    """
    command, expanded = each.command, each.expanded
    if not covered:
        if may_run_punchlist(each):
            return "punchlist acts for you"
        return protected_write(command, expanded, 0, each.folders) or _protected_in_text(each)
    if argument := risky_argument(expanded.words, covered):
        return f"{excerpt(argument, 60)} can write files or run programs"
    if always and (argument := unknown_argument(expanded.words, covered, more=not command.complete)):
        return f"{excerpt(argument, 60)} is not known to be harmless"
    if always and command.fed and not takes_data(expanded.words):
        return "it gets input, which can say what it runs"
    return limit_exceeded(command, expanded, covered, each.paths, each.folders)


def _protected_in_text(each: CommandInLine) -> str | None:
    """Why a command in the arguments of a launcher may write a protected file: `script -c 'cp x g?/config'`."""
    words = each.command.words
    if not words or runs_elsewhere(words) or not (runs_arguments(words) or may_run_anything(program_of(words[0]))):
        return None
    found = (protected_write(inner.command, inner.expanded, 0, each.folders) for inner in each.in_texts())
    return next(filter(None, found), None)


def drop_harmless(judged: Sequence[JudgedPart], commands: Sequence[CommandInLine]) -> list[JudgedPart]:
    """Allow parts that change nothing, such as `cd src` or `echo done`, beside a part that a rule allows."""
    if all(part.decision.verdict is not Verdict.ASK for part in judged):
        return list(judged)
    harmless = [is_harmless(each) for each in commands]
    harmless += [False] * (len(judged) - len(harmless))
    others = [part.decision for part, skip in zip(judged, harmless, strict=True) if not skip]
    if not any(decision.rule is not None and decision.verdict is Verdict.ALLOW for decision in others):
        return list(judged)
    allowed = PolicyDecision(Verdict.ALLOW, "it changes nothing")
    return [
        part._replace(decision=allowed)
        if skip and part.decision.rule is None and part.decision.verdict is Verdict.ASK
        else part
        for part, skip in zip(judged, harmless, strict=True)
    ]


def is_harmless(each: CommandInLine) -> bool:
    """Whether a command changes nothing and tells nothing to another program."""
    command = each.command
    if command.writes or command.reads:
        return False
    if not command.words:
        return command.complete and bool(command.assignments) and all(map(_LOCAL_NAME.match, command.assignments))
    if command.assignments or command.words[0] not in HARMLESS:
        return False
    return command.words[0] != "cd" or _stays(each, command)


def _stays(each: CommandInLine, command: SimpleCommand) -> bool:
    return each.folders.certain and command.complete and all(map(each.paths.is_inside, each.folders.known))
