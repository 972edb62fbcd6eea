"""What "always" would cover, and the sentence that says so before it is chosen."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from punchlist.toolcalls.approvals import ApprovalQuestion, always_rule
from punchlist.toolcalls.policy import HARMLESS, JudgedPart, Policy, Rule, RuleLifetime, Verdict
from punchlist.toolcalls.tool import AgentTool, Arguments

Commands = tuple[tuple[str, ...], ...]


class Coverage(NamedTuple):
    prefixes: Commands = ()
    lines: Commands = ()


_NOTHING: Final = Coverage()


def offered_coverage(policy: Policy, tool: AgentTool, arguments: Arguments, judged: Sequence[JudgedPart]) -> Coverage:
    """The command prefixes and whole commands that would allow a line like this one; none if that is not possible.

    A known program is covered with its subcommand and its harmless options, any other command only as it was called,
    and `punchlist` never: it acts for the user.
    """
    asked = [part for part in judged if part.decision.verdict is Verdict.ASK]
    if not asked or any(part.command is None for part in asked):
        return _NOTHING
    coverage = _coverage(asked)
    if coverage == _NOTHING:
        return _NOTHING
    rule = Rule(Verdict.ALLOW, tool.name, commands=coverage.prefixes, lines=coverage.lines)
    trial = Policy(policy.mode, policy.rules, [*policy.session_rules, rule], paths=policy.paths)
    return coverage if trial.decide(tool, arguments).verdict is Verdict.ALLOW else _NOTHING


def _coverage(asked: Sequence[JudgedPart]) -> Coverage:
    from punchlist.toolcalls.command_line import is_harmless, limit
    from punchlist.toolcalls.shell.known_commands import covered_words, unknown_argument
    from punchlist.toolcalls.shell.programs import program_of

    prefixes: dict[tuple[str, ...], None] = {}
    lines: dict[tuple[str, ...], None] = {}
    for part in asked:
        assert part.command is not None
        command = part.command.command
        if is_harmless(part.command) and len(asked) > 1:
            continue
        words = command.words
        if not words or any(program_of(word) == "punchlist" for word in words):
            return _NOTHING
        count = covered_words(words)
        if count is not None and (unknown_argument(words, count) is None or limit(part.command, count)):
            # An argument that is always asked about leaves nothing to offer.
            prefixes[words[:count]] = None
        elif command.complete:
            # A program that is given by its path is bound to that file.
            program = part.command.paths.resolve(words[0]) if "/" in words[0] else words[0]
            lines[program, *words[1:]] = None
        else:
            return _NOTHING
    return Coverage(tuple(prefixes), tuple(lines))


_LIMITS: Final = (
    "without variables before the command, redirections to files, arguments that write or run something, and paths "
    "outside the workspace"
)
_ALWAYS_LIMITS: Final = (
    "with options that are known to write and run nothing, and without variables before the command, redirections to "
    "files and paths outside the workspace"
)
_HARMLESS: Final = ", ".join(sorted(filter(str.isalpha, HARMLESS)))


def always_coverage(question: ApprovalQuestion, tool: str) -> dict[str, str]:
    """What each "always" answer to a question covers, by its name: tool, prefix or server."""
    rules = {outcome: always_rule(outcome, question, tool) for outcome in question.outcomes}
    return {outcome.removeprefix("proceed_always_"): describe(rule) for outcome, rule in rules.items() if rule}


def describe(rule: Rule, *, of_settings: bool = False) -> str:
    """What a rule covers, in one sentence. Unless it is `of_settings`, it comes from an "always" answer."""
    allows = rule.verdict is Verdict.ALLOW
    if rule.server is not None:
        about = f"every call of every tool of the MCP server {rule.server}"
    elif rule.commands or rule.lines:
        prefixes = [f"every command that begins with `{_shown(words)}`" for words in rule.commands]
        about = ", ".join([*prefixes, *(f"exactly the command `{_shown(words)}`" for words in rule.lines)])
        about += f", {_LIMITS if of_settings else _ALWAYS_LIMITS}" if prefixes and allows else ""
        about += f", in lines with nothing else but loops and {_HARMLESS}" if allows else ""
    elif rule.tool == "*":
        about = "every call of every tool"
    else:
        about = f"every call of {rule.tool}"
    if rule.arguments:
        about += " with " + " and ".join(f"{name} = {pattern}" for name, pattern in rule.arguments.items())
    if rule.fingerprint is not None:
        about += " as its server defines it now"
    if rule.modes and len(rule.modes) < 4:
        about += f" in mode {', '.join(sorted(rule.modes))}"
    return about


def _shown(words: Sequence[str]) -> str:
    return shlex.join(words)


_HOW_LONG: Final = {
    RuleLifetime.RUN: "in this run",
    RuleLifetime.SESSION: "in this session of this project",
    RuleLifetime.PERMANENT: "permanently in this project",
}


def describe_lifetime(lifetime: RuleLifetime) -> str:
    return _HOW_LONG[lifetime]
