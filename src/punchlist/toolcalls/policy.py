"""Policy: may this call run, must a person be asked, or is it out of the question? Pure.

Rules come from the settings and from the session ("always allow …"); in each list the first that
matches wins. A rule of the settings that denies is final; otherwise the session decides, since a
person said so; otherwise the settings; otherwise the mode.

A command line is taken apart and every command in it is judged; the strictest verdict holds. Rules
that allow are read literally: the words must be exactly these, nothing may be assigned in front of
the command and nothing redirected into a file. Rules that ask or deny are read generously: the
program may be given by its path, options may stand in between, and a line that cannot be seen
through is treated as if such a rule might apply. So every doubt ends in a question, not in a run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from punchlist.toolcalls.tool import AgentTool, Arguments, Effect

if TYPE_CHECKING:
    from punchlist.toolcalls.shell import SimpleCommand


class Mode(StrEnum):
    PLAN = "plan"
    DEFAULT = "default"
    AUTO_EDIT = "auto-edit"
    YOLO = "yolo"


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_STRICTNESS: Final = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
_FREE: Final = {Effect.READ: Verdict.ALLOW, Effect.LIST: Verdict.ALLOW}
_BY_MODE: Final = {
    Mode.PLAN: {**_FREE, Effect.EDIT: Verdict.DENY, Effect.EXECUTE: Verdict.DENY},
    Mode.DEFAULT: {**_FREE, Effect.EDIT: Verdict.ASK, Effect.EXECUTE: Verdict.ASK},
    Mode.AUTO_EDIT: {**_FREE, Effect.EDIT: Verdict.ALLOW, Effect.EXECUTE: Verdict.ASK},
    Mode.YOLO: dict.fromkeys(Effect, Verdict.ALLOW),
}
PROTECTED_PATHS: Final = ("*/punchlist.toml", "*/.punchlist", "*/.punchlist/*", "*/.git", "*/.git/*")
"""An agent that may edit must not be able to give itself more rights by editing these."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is said of calls that fit all that it names."""

    verdict: Verdict
    tool: str = "*"
    """A tool's name, or a pattern with `*`."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Beginnings of commands, as words; any of them."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Patterns that the named arguments must fit."""
    modes: frozenset[Mode] = frozenset(Mode)
    server: str | None = None
    fingerprint: str | None = None
    """Of the tool as it was when the person said always: one that has changed since is asked about again."""
    why: str = ""
    source: str = "a rule"

    def __str__(self) -> str:
        about = [self.tool if self.server is None else f"every tool of {self.server}"]
        about += [f"commands beginning with {' / '.join(' '.join(words) for words in self.commands)}"] * bool(
            self.commands
        )
        about += [f"{name} = {pattern}" for name, pattern in self.arguments.items()]
        return f"{self.verdict} {', '.join(about)} ({self.source})"


class PolicyDecision(NamedTuple):
    verdict: Verdict
    why: str
    rule: Rule | None = None


class JudgedPart(NamedTuple):
    """One part of a call, such as one command of a line, and what is said of it."""

    part: str
    words: tuple[str, ...]
    decision: PolicyDecision


def fingerprint(tool: AgentTool) -> str | None:
    """Of what a server says its tool does; None for our own tools, which change with us only."""
    found = getattr(tool, "fingerprint", None)
    return found if isinstance(found, str) else None


class Policy:
    def __init__(self, mode: Mode = Mode.DEFAULT, rules: Sequence[Rule] = (), session: Iterable[Rule] = ()) -> None:
        self.mode = mode
        self.rules = tuple(rules)
        self.session_rules = list(session)
        self._modes = {
            effect: PolicyDecision(verdict, _mode_says(mode, effect, verdict))
            for effect, verdict in _BY_MODE[mode].items()
        }

    def decide(self, tool: AgentTool, arguments: Arguments) -> PolicyDecision:
        if tool.command(arguments) is None:
            return self._judge(tool, arguments, None)
        return strictest(self.judge(tool, arguments))

    def judge(self, tool: AgentTool, arguments: Arguments) -> list[JudgedPart]:
        """Each part of a call with its own decision; never empty."""
        line = tool.command(arguments)
        if line is None:
            return [JudgedPart(tool.name, (), self._judge(tool, arguments, None))]
        from punchlist.toolcalls.shell import parse

        parsed = parse(line)
        judged = [
            JudgedPart(
                " ".join(command.words) or "(unknown program)", command.words, self._judge(tool, arguments, command)
            )
            for command in parsed.commands
        ]
        if parsed.unclear or not judged:
            decision = self._judge(tool, arguments, None)
            why = parsed.unclear or "there is no command in it"
            judged.append(JudgedPart(f"({why})", (), decision))
        return judged

    def _judge(self, tool: AgentTool, arguments: Arguments, command: SimpleCommand | None) -> PolicyDecision:
        if not self.rules and not self.session_rules:
            return self._by_mode(tool, arguments)
        settings = _first(self.rules, self.mode, tool, arguments, command)
        if settings is not None and settings.verdict is Verdict.DENY:
            return settings
        session = _first(self.session_rules, self.mode, tool, arguments, command)
        return session or settings or self._by_mode(tool, arguments)

    def _by_mode(self, tool: AgentTool, arguments: Arguments) -> PolicyDecision:
        decision = self._modes[tool.effect]
        if self.mode is Mode.YOLO:
            return decision
        if tool.server is not None and tool.effect is Effect.READ:
            return PolicyDecision(Verdict.ASK, f"that {tool.name} only reads is what its server says")
        if decision.verdict is Verdict.ALLOW and tool.effect is Effect.EDIT:
            for key in tool.resources(arguments).writes:
                if any(fnmatchcase(key, pattern) for pattern in PROTECTED_PATHS):
                    return PolicyDecision(Verdict.ASK, f"{key.partition(':')[2]} decides what agents may do")
        return decision


def strictest(judged: Sequence[JudgedPart]) -> PolicyDecision:
    return max((one.decision for one in judged), key=lambda decision: _STRICTNESS[decision.verdict])


def _mode_says(mode: Mode, effect: Effect, verdict: Verdict) -> str:
    what = {
        Effect.READ: "reading",
        Effect.LIST: "keeping the list",
        Effect.EDIT: "changing files",
        Effect.EXECUTE: "running things",
    }[effect]
    how = {Verdict.ALLOW: "is allowed", Verdict.ASK: "is asked about", Verdict.DENY: "is not possible"}[verdict]
    return f"{what} {how} in mode {mode}"


def _first(
    rules: Sequence[Rule], mode: Mode, tool: AgentTool, arguments: Arguments, command: SimpleCommand | None
) -> PolicyDecision | None:
    for rule in rules:
        verdict = _applies(rule, mode, tool, arguments, command)
        if verdict is not None:
            doubt = "" if verdict is rule.verdict else "it cannot be ruled out that this falls under: "
            return PolicyDecision(verdict, f"{doubt}{rule}{f': {rule.why}' if rule.why else ''}", rule)
    return None


def _applies(
    rule: Rule, mode: Mode, tool: AgentTool, arguments: Arguments, command: SimpleCommand | None
) -> Verdict | None:
    """The rule's verdict on a call, ASK where a stricter one may apply, None where it says nothing."""
    if mode not in rule.modes or not fnmatchcase(tool.name, rule.tool):
        return None
    if rule.server is not None and rule.server != tool.server:
        return None
    allows = rule.verdict is Verdict.ALLOW
    if allows and _too_loose(rule, mode, tool):
        return None
    if not all(_fits(arguments.get(name), pattern, allows) for name, pattern in rule.arguments.items()):
        return None
    if not rule.commands or tool.command(arguments) is None:
        return None if rule.commands else rule.verdict
    if command is None:
        return None if allows else Verdict.ASK
    if allows:
        return Verdict.ALLOW if any(_begins_exactly(command, words) for words in rule.commands) else None
    doubts = [_begins_about(command, words) for words in rule.commands]
    if True in doubts:
        return rule.verdict
    return Verdict.ASK if None in doubts else None


def _too_loose(rule: Rule, mode: Mode, tool: AgentTool) -> bool:
    """Plan mode only reads, unless a rule says so by the mode's name; a changed tool is a new one."""
    if mode is Mode.PLAN and tool.effect is not Effect.READ and rule.modes == frozenset(Mode):
        return True
    return rule.fingerprint is not None and rule.fingerprint != fingerprint(tool)


def _fits(value: Any, pattern: str, allows: bool) -> bool:
    if value is None:
        return False
    text = str(value)
    # `docs/../x` is not in docs; whoever denies means both ways of writing it.
    plain = posixpath.normpath(re.sub("^//+", "/", text)) if "/" in text else text
    if allows:
        return fnmatchcase(plain, pattern)
    return fnmatchcase(plain, pattern) or fnmatchcase(text, pattern)


def _begins_exactly(command: SimpleCommand, words: tuple[str, ...]) -> bool:
    return not command.assignments and not command.writes and command.words[: len(words)] == words


def _begins_about(command: SimpleCommand, words: tuple[str, ...]) -> bool | None:
    """Whether a command is meant by these words; None when it might be, once its unknown words are known."""
    if not command.words:
        # An assignment runs no program; a program without a name could be any.
        return False if command.complete else None
    if posixpath.basename(command.words[0]) != words[0]:
        return False
    rest = iter(command.words[1:])
    if all(word in rest for word in words[1:]):
        return True
    return False if command.complete else None
