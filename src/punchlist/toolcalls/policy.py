"""Policy: allow a call, ask a person, or deny it. Pure.

Rules come from the settings and from the session ("always allow …"); in each list the first match wins.
A denying rule of the settings is final; otherwise the session rules decide, since a person chose them;
otherwise the settings; otherwise the mode.

A command line is parsed and every command in it is judged; the strictest verdict holds. Allowing rules
match literally: exactly these words, no assignment before the command, no redirection to a file. Asking
and denying rules match generously: the program can be given by its path, options can come in between, and
a line that cannot be fully parsed is treated as if such a rule could apply. So every doubt leads to a
question, not to a run.
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
_ALWAYS_ALLOWED: Final = {Effect.READ: Verdict.ALLOW, Effect.LIST: Verdict.ALLOW}
_BY_MODE: Final = {
    Mode.PLAN: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.DENY, Effect.EXECUTE: Verdict.DENY},
    Mode.DEFAULT: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.ASK, Effect.EXECUTE: Verdict.ASK},
    Mode.AUTO_EDIT: {**_ALWAYS_ALLOWED, Effect.EDIT: Verdict.ALLOW, Effect.EXECUTE: Verdict.ASK},
    Mode.YOLO: dict.fromkeys(Effect, Verdict.ALLOW),
}
PROTECTED_PATHS: Final = ("*/punchlist.toml", "*/.punchlist", "*/.punchlist/*", "*/.git", "*/.git/*")
"""Files that define what agents may do: an agent that may edit must not extend its own permissions."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict for the calls that match all its conditions."""

    verdict: Verdict
    tool: str = "*"
    """The name of a tool, or a pattern with `*`."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Command prefixes as words; one of them must match."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Patterns that the named arguments must match."""
    modes: frozenset[Mode] = frozenset(Mode)
    server: str | None = None
    fingerprint: str | None = None
    """Of the tool when the person chose "always": a tool that has changed since needs approval again."""
    why: str = ""
    source: str = "a rule"

    def __str__(self) -> str:
        about = [self.tool if self.server is None else f"every tool of {self.server}"]
        about += [f"commands starting with {' / '.join(' '.join(words) for words in self.commands)}"] * bool(
            self.commands
        )
        about += [f"{name} = {pattern}" for name, pattern in self.arguments.items()]
        return f"{self.verdict} {', '.join(about)} ({self.source})"


class PolicyDecision(NamedTuple):
    verdict: Verdict
    why: str
    rule: Rule | None = None


class JudgedPart(NamedTuple):
    """One part of a call, such as one command of a line, with its decision."""

    part: str
    words: tuple[str, ...]
    decision: PolicyDecision


def fingerprint(tool: AgentTool) -> str | None:
    """A digest of the definition that an MCP server gives for a tool; None for local tools."""
    found = getattr(tool, "fingerprint", None)
    return found if isinstance(found, str) else None


class Policy:
    def __init__(self, mode: Mode = Mode.DEFAULT, rules: Sequence[Rule] = (), session: Iterable[Rule] = ()) -> None:
        self.mode = mode
        self.rules = tuple(rules)
        self.session_rules = list(session)
        self._modes = {
            effect: PolicyDecision(verdict, _mode_reason(mode, effect, verdict))
            for effect, verdict in _BY_MODE[mode].items()
        }

    def decide(self, tool: AgentTool, arguments: Arguments) -> PolicyDecision:
        if tool.command(arguments) is None:
            return self._judge(tool, arguments, None)
        return strictest(self.judge(tool, arguments))

    def judge(self, tool: AgentTool, arguments: Arguments) -> list[JudgedPart]:
        """The decision on each part of a call; never empty."""
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
            why = parsed.unclear or "it contains no command"
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
            return PolicyDecision(Verdict.ASK, f"only its server claims that {tool.name} does not change anything")
        if decision.verdict is Verdict.ALLOW and tool.effect is Effect.EDIT:
            for key in tool.resources(arguments).writes:
                if any(fnmatchcase(key, pattern) for pattern in PROTECTED_PATHS):
                    return PolicyDecision(Verdict.ASK, f"{key.partition(':')[2]} defines what agents may do")
        return decision


def strictest(judged: Sequence[JudgedPart]) -> PolicyDecision:
    return max((part.decision for part in judged), key=lambda decision: _STRICTNESS[decision.verdict])


def _mode_reason(mode: Mode, effect: Effect, verdict: Verdict) -> str:
    what = {
        Effect.READ: "reading",
        Effect.LIST: "updating the list",
        Effect.EDIT: "changing files",
        Effect.EXECUTE: "running commands",
    }[effect]
    how = {Verdict.ALLOW: "is allowed", Verdict.ASK: "needs approval", Verdict.DENY: "is not allowed"}[verdict]
    return f"{what} {how} in mode {mode}"


def _first(
    rules: Sequence[Rule], mode: Mode, tool: AgentTool, arguments: Arguments, command: SimpleCommand | None
) -> PolicyDecision | None:
    for rule in rules:
        verdict = _applies(rule, mode, tool, arguments, command)
        if verdict is not None:
            doubt = "" if verdict is rule.verdict else "this rule may apply: "
            return PolicyDecision(verdict, f"{doubt}{rule}{f': {rule.why}' if rule.why else ''}", rule)
    return None


def _applies(
    rule: Rule, mode: Mode, tool: AgentTool, arguments: Arguments, command: SimpleCommand | None
) -> Verdict | None:
    """The verdict of a rule on a call; ASK when a stricter verdict could apply, None when the rule does not match."""
    if mode not in rule.modes or not fnmatchcase(tool.name, rule.tool):
        return None
    if rule.server is not None and rule.server != tool.server:
        return None
    allows = rule.verdict is Verdict.ALLOW
    if allows and _is_void(rule, mode, tool):
        return None
    if not all(_matches(arguments.get(name), pattern, allows) for name, pattern in rule.arguments.items()):
        return None
    if not rule.commands or tool.command(arguments) is None:
        return None if rule.commands else rule.verdict
    if command is None:
        return None if allows else Verdict.ASK
    if allows:
        return Verdict.ALLOW if any(_starts_with(command, words) for words in rule.commands) else None
    doubts = [_may_start_with(command, words) for words in rule.commands]
    if True in doubts:
        return rule.verdict
    return Verdict.ASK if None in doubts else None


def _is_void(rule: Rule, mode: Mode, tool: AgentTool) -> bool:
    """Whether an allowing rule does not count: in plan mode, unless it names that mode, and for a changed tool."""
    if mode is Mode.PLAN and tool.effect is not Effect.READ and rule.modes == frozenset(Mode):
        return True
    return rule.fingerprint is not None and rule.fingerprint != fingerprint(tool)


def _matches(value: Any, pattern: str, allows: bool) -> bool:
    if value is None:
        return False
    text = str(value)
    # `docs/../x` is not in docs; a denying rule matches both spellings.
    plain = posixpath.normpath(re.sub("^//+", "/", text)) if "/" in text else text
    if allows:
        return fnmatchcase(plain, pattern)
    return fnmatchcase(plain, pattern) or fnmatchcase(text, pattern)


def _starts_with(command: SimpleCommand, words: tuple[str, ...]) -> bool:
    return not command.assignments and not command.writes and command.words[: len(words)] == words


def _may_start_with(command: SimpleCommand, words: tuple[str, ...]) -> bool | None:
    """Whether these words match a command; None when its unknown words could make it match."""
    if not command.words:
        # A plain assignment runs no program; an unknown program could be any.
        return False if command.complete else None
    if posixpath.basename(command.words[0]) != words[0]:
        return False
    rest = iter(command.words[1:])
    if all(word in rest for word in words[1:]):
        return True
    return False if command.complete else None
