"""Policy: allow a call, ask a person, or deny it.

Rules come from the settings and from "always" answers. In this order:

1. A rule that denies wins, wherever it is. If it is not certain that it applies, a person is asked.
2. An "always" rule allows, since a person chose it.
3. Of the asking and allowing rules of the settings, the first match decides.
4. The mode decides.

A command line is parsed and every command in it is judged; the strictest verdict holds. What a rule allows has limits,
except in mode yolo: arguments that write or run something, paths outside the workspace and files that define what
agents do are asked about. So every doubt leads to a question, not to a run. Pure, except that paths are resolved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from punchlist.toolcalls.paths import PathResolver, protected_part
from punchlist.toolcalls.tool import AgentTool, Arguments, Effect

if TYPE_CHECKING:
    from punchlist.toolcalls.rule_match import CommandInLine


class Mode(StrEnum):
    PLAN = "plan"
    DEFAULT = "default"
    AUTO_EDIT = "auto-edit"
    YOLO = "yolo"


class RuleLifetime(StrEnum):
    """How long an "always" answer holds."""

    RUN = "run"
    SESSION = "session"
    PERMANENT = "permanent"


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


HARMLESS: Final = frozenset((":", "cd", "echo", "false", "printf", "pwd", "true"))
"""Programs that change nothing; they are allowed beside a command that a rule allows."""
_STRICTNESS: Final = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
_ALWAYS_ALLOWED: Final = {Effect.READ: Verdict.ALLOW, Effect.LIST: Verdict.ALLOW}
_BY_MODE: Final = {
    Mode.PLAN: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.DENY, Effect.EXECUTE: Verdict.DENY},
    Mode.DEFAULT: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.ASK, Effect.EXECUTE: Verdict.ASK},
    Mode.AUTO_EDIT: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.ALLOW, Effect.EXECUTE: Verdict.ASK},
    Mode.YOLO: dict.fromkeys(Effect, Verdict.ALLOW),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict for the calls that match all its conditions."""

    verdict: Verdict
    tool: str = "*"
    """The name of a tool, or a pattern with `*`."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Command prefixes as words; one of them, or one of `lines`, must match."""
    lines: tuple[tuple[str, ...], ...] = ()
    """Whole commands as words: nothing may follow them."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Patterns that the named arguments must match."""
    modes: frozenset[Mode] = frozenset(Mode)
    server: str | None = None
    fingerprint: str | None = None
    """Of the tool when the person chose "always": a tool that has changed since needs approval again."""
    folder: str | None = None
    """The folder that its paths start from; None for the root of the workspace."""
    why: str = ""
    source: str = "a rule"
    id: str | None = None
    """Of a stored "always" rule."""
    lifetime: RuleLifetime | None = None
    """Of an "always" rule; None for a rule of the settings."""
    project: str | None = None
    """The folder of the project that an "always" rule is for."""
    owner: str | None = None
    """The turn or process that a rule for one run belongs to."""
    text: str = field(init=False, repr=False, compare=False)
    """What the rule says. Written once, since every command of a line names the rule that decides about it."""
    programs: frozenset[str] = field(init=False, repr=False, compare=False)
    """The programs of its commands; empty if it covers others, or one by its path, which has several spellings."""

    def __post_init__(self) -> None:
        about = [self.tool if self.server is None else f"every tool of {self.server}"]
        about += [f"commands starting with {_joined(self.commands)}"] * bool(self.commands)
        about += [f"exactly {_joined(self.lines)}"] * bool(self.lines)
        about += [f"{name} = {pattern}" for name, pattern in self.arguments.items()]
        programs = frozenset(words[0] for words in (*self.commands, *self.lines) if words)
        named = self.verdict is Verdict.ALLOW and not any("/" in name for name in programs)
        object.__setattr__(self, "programs", programs if named else frozenset())
        object.__setattr__(self, "text", f"{self.verdict} {', '.join(about)} ({self.source})")

    def __str__(self) -> str:
        return self.text

    def may_cover(self, program: str) -> bool:
        """Whether it can apply to a program, so that most rules need no comparison of words."""
        return not self.programs or program in self.programs


def _joined(commands: Sequence[Sequence[str]]) -> str:
    return " / ".join(" ".join(words) for words in commands)


class PolicyDecision(NamedTuple):
    verdict: Verdict
    why: str
    rule: Rule | None = None


class JudgedPart(NamedTuple):
    """One part of a call, such as one command of a line, with its decision."""

    part: str
    decision: PolicyDecision
    command: CommandInLine | None = None


class _RuleForCall(NamedTuple):
    """A rule whose conditions about the tool and its arguments hold."""

    rule: Rule
    certain: bool
    always: bool = False
    """It comes from an "always" answer."""


class _Match(NamedTuple):
    rule: Rule
    certain: bool = True
    covered: int = 0
    """The number of words of the command that the rule names; 0 for a rule about the whole tool."""
    always: bool = False


def fingerprint(tool: AgentTool) -> str | None:
    """A digest of the definition that an MCP server gives for a tool; None for local tools."""
    found = getattr(tool, "fingerprint", None)
    return found if isinstance(found, str) else None


class Policy:
    def __init__(
        self,
        mode: Mode = Mode.DEFAULT,
        rules: Sequence[Rule] = (),
        session: Iterable[Rule] = (),
        *,
        paths: PathResolver | None = None,
    ) -> None:
        """`session` are the "always" rules that apply. `paths` resolves the paths of the workspace; default: those
        of the current folder."""
        self._mode = mode
        self.rules = tuple(rules)
        self.session_rules = list(session)
        self.paths = paths or PathResolver(os.getcwd())
        self._on_change: list[Callable[[], None]] = []

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """Change the mode: the next decision follows it, and calls that wait for approval are judged again."""
        self._mode = mode
        for notify in list(self._on_change):
            notify()

    def on_change(self, notify: Callable[[], None]) -> None:
        self._on_change.append(notify)

    def decide(self, tool: AgentTool, arguments: Arguments) -> PolicyDecision:
        return strictest(self.judge(tool, arguments))

    def judge(self, tool: AgentTool, arguments: Arguments) -> list[JudgedPart]:
        """The decision on each part of a call; never empty."""
        line = tool.command(arguments)
        rules = self._rules_for(tool, arguments)
        if line is None:
            return [JudgedPart(tool.name, self._judge(tool, arguments, rules, None))]
        from punchlist.toolcalls.command_line import commands_of, drop_harmless

        parsed, commands = commands_of(line, self.paths)
        decisions = {each: self._judge(tool, arguments, rules, each, is_line=True) for each in dict.fromkeys(commands)}
        judged = [
            JudgedPart(" ".join(each.command.words) or "(unknown program)", decisions[each], each) for each in commands
        ]
        if parsed.unclear or not judged:
            why = parsed.unclear or "it contains no command"
            decision = self._judge(tool, arguments, rules, None, is_line=True)
            if decision.verdict is Verdict.ALLOW and self._mode is not Mode.YOLO and not parsed.is_whole:
                decision = PolicyDecision(Verdict.ASK, f"a part of it may exceed what is allowed. {why}")
            judged.append(JudgedPart(f"({why})", decision))
        return drop_harmless(judged, commands)

    def _judge(
        self,
        tool: AgentTool,
        arguments: Arguments,
        rules: Sequence[_RuleForCall],
        command: CommandInLine | None,
        *,
        is_line: bool = False,
    ) -> PolicyDecision:
        by_mode = self._by_mode(tool)
        matches = self._matches(rules, command, is_line)
        denying = [match for match in matches if match.rule.verdict is Verdict.DENY]
        if denying:
            match = next((match for match in denying if match.certain), denying[0])
            decision = _decision(match)
            return decision if match.certain else self._at_least(by_mode, decision)
        allowing = [match for match in matches if match.rule.verdict is Verdict.ALLOW]
        if allowing:
            return self._within_limits(allowing, tool, arguments, command)
        if matches:
            named = matches[0].rule.modes != frozenset(Mode)
            return _decision(matches[0]) if named else self._at_least(by_mode, _decision(matches[0]))
        if by_mode.verdict is Verdict.ALLOW and self._mode is not Mode.YOLO:
            return self._protected(tool, arguments) or by_mode
        return by_mode

    @staticmethod
    def _matches(rules: Sequence[_RuleForCall], command: CommandInLine | None, is_line: bool) -> list[_Match]:
        """The rules that apply: all that deny, and those that allow before the first of the settings that asks."""
        found: list[_Match] = []
        asked = False
        words = command.command.words if command else ()
        for each in rules:
            if each.rule.verdict is not Verdict.DENY and (asked or (words and not each.rule.may_cover(words[0]))):
                continue
            if match := _match(each, command, is_line):
                found.append(match)
                asked = asked or each.rule.verdict is Verdict.ASK
        return found

    @staticmethod
    def _at_least(by_mode: PolicyDecision, decision: PolicyDecision) -> PolicyDecision:
        """A question does not loosen what the mode denies."""
        return by_mode if by_mode.verdict is Verdict.DENY else decision

    def _within_limits(
        self, allowing: Sequence[_Match], tool: AgentTool, arguments: Arguments, command: CommandInLine | None
    ) -> PolicyDecision:
        """The first rule that allows the call within its limits, or the reason to ask."""
        problem: PolicyDecision | None = None
        for match in allowing:
            exceeded = None if self._mode is Mode.YOLO else self._limit(match, tool, arguments, command)
            if exceeded is None:
                return PolicyDecision(Verdict.ALLOW, _reason(match.rule), match.rule)
            problem = problem or exceeded
        assert problem is not None
        return problem

    def _limit(
        self, match: _Match, tool: AgentTool, arguments: Arguments, command: CommandInLine | None
    ) -> PolicyDecision | None:
        if command is None:
            return self._protected(tool, arguments)
        from punchlist.toolcalls.command_line import limit

        why = limit(command, match.covered, always=match.always)
        return None if why is None else PolicyDecision(Verdict.ASK, f"{why}, and {match.rule} does not cover that")

    def _protected(self, tool: AgentTool, arguments: Arguments) -> PolicyDecision | None:
        if tool.effect is not Effect.EDIT:
            return None
        for key in tool.resources(arguments).writes:
            path = key.removeprefix("file:")
            if protected_part(path):
                return PolicyDecision(Verdict.ASK, f"{path} defines what agents and tools do")
        return None

    def _by_mode(self, tool: AgentTool) -> PolicyDecision:
        if tool.server is not None and tool.effect is Effect.READ and self._mode is not Mode.YOLO:
            return PolicyDecision(Verdict.ASK, f"only its server claims that {tool.name} does not change anything")
        return _MODE_DECISIONS[self._mode, tool.effect]

    def _rules_for(self, tool: AgentTool, arguments: Arguments) -> list[_RuleForCall]:
        """The rules whose conditions about the tool and its arguments hold; those about commands are not looked at."""
        found: list[_RuleForCall] = []
        of_settings = len(self.session_rules)
        for number, rule in enumerate((*self.session_rules, *self.rules)):
            if self._mode not in rule.modes or not (rule.tool == tool.name or fnmatchcase(tool.name, rule.tool)):
                continue
            if rule.server is not None and rule.server != tool.server:
                continue
            allows = rule.verdict is Verdict.ALLOW
            if allows and _is_void(rule, self._mode, tool):
                continue
            results = list(self._argument_results(rule, tool, arguments, allows))
            if False not in results:
                found.append(_RuleForCall(rule, None not in results, always=number < of_settings))
        return found

    def _argument_results(
        self, rule: Rule, tool: AgentTool, arguments: Arguments, allows: bool
    ) -> Iterator[bool | None]:
        if not rule.arguments:
            return
        from punchlist.toolcalls.argument_match import ArgumentPattern, argument_value

        for name, pattern in rule.arguments.items():
            wanted = ArgumentPattern(name, pattern, rule.folder)
            value = arguments[name] if name in arguments else argument_value(tool.input_schema, arguments, name)
            yield wanted.allows(value, self.paths) if allows else wanted.may_apply(value, self.paths)


def _match(each: _RuleForCall, command: CommandInLine | None, is_line: bool) -> _Match | None:
    """How a rule applies to one command of a line, or to a call without a line; None if it does not."""
    rule, certain, always = each
    if not rule.commands and not rule.lines:
        return _Match(rule, certain)
    if not is_line:
        return None
    if rule.verdict is Verdict.ALLOW:
        count = command.covered(rule.commands, rule.lines, rule.folder) if command else 0
        return _Match(rule, certain, count, always) if count else None
    results = [command.may_be(words, rule.folder) for words in rule.commands] if command else [None]
    if True in results:
        return _Match(rule, certain)
    return _Match(rule, certain=False) if None in results else None


def strictest(judged: Sequence[JudgedPart]) -> PolicyDecision:
    return max((part.decision for part in judged), key=lambda decision: _STRICTNESS[decision.verdict])


def _decision(match: _Match) -> PolicyDecision:
    """What an asking or denying rule decides: a doubt is a question."""
    if match.certain:
        return PolicyDecision(match.rule.verdict, _reason(match.rule), match.rule)
    return PolicyDecision(Verdict.ASK, f"this rule may apply: {_reason(match.rule)}", match.rule)


def _reason(rule: Rule) -> str:
    return f"{rule}{f': {rule.why}' if rule.why else ''}"


def _is_void(rule: Rule, mode: Mode, tool: AgentTool) -> bool:
    """Whether an allowing rule does not count: in plan mode, unless it names that mode, and for a changed tool."""
    if mode is Mode.PLAN and tool.effect is not Effect.READ and rule.modes == frozenset(Mode):
        return True
    return rule.fingerprint is not None and rule.fingerprint != fingerprint(tool)


def _mode_reason(mode: Mode, effect: Effect, verdict: Verdict) -> str:
    what = {
        Effect.READ: "reading",
        Effect.LIST: "updating the list",
        Effect.EDIT: "changing files",
        Effect.EXECUTE: "running commands",
    }[effect]
    how = {Verdict.ALLOW: "is allowed", Verdict.ASK: "needs approval", Verdict.DENY: "is not allowed"}[verdict]
    return f"{what} {how} in mode {mode}"


_MODE_DECISIONS: Final = {
    (mode, effect): PolicyDecision(verdict, _mode_reason(mode, effect, verdict))
    for mode, verdicts in _BY_MODE.items()
    for effect, verdict in verdicts.items()
}
