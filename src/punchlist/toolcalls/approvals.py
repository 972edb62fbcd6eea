"""Questions to a person before a call runs, the answers there are, and what an answer means. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.kernel.actors import Actor
from punchlist.toolcalls.policy import JudgedPart, PolicyDecision, Rule, Verdict, fingerprint
from punchlist.toolcalls.tool import AgentTool, Arguments

MAX_REASON_LENGTH: Final = 2_000
EXPIRED_MESSAGE: Final = "Nobody answered in time, so it was not run. That is no person's decision."


# Programs whose first argument says what they do: `git push` is not `git status`.
_WITH_SUBCOMMANDS: Final = frozenset(
    "apt brew bun cargo docker dotnet flutter gcloud gh git go gradle helm just kubectl make mvn npm nx pip pipx pnpm "  # noqa: SIM905
    "podman poetry rails rustup systemctl terraform uv yarn".split()
)
# Programs that run whatever they are given: always means these very words.
_RUN_ANYTHING: Final = frozenset(
    "awk bash deno env eval fish find ksh node nohup npx perl php python python3 ruby sh ssh sudo timeout uvx xargs "  # noqa: SIM905
    "zsh".split()
)


class ApprovalOutcome(StrEnum):
    PROCEED_ONCE = "proceed_once"
    PROCEED_ALWAYS_TOOL = "proceed_always_tool"
    PROCEED_ALWAYS_PREFIX = "proceed_always_prefix"
    PROCEED_ALWAYS_SERVER = "proceed_always_server"
    MODIFY = "modify"
    CANCEL = "cancel"


class OnExpiry(StrEnum):
    WAIT = "wait"
    DENY = "deny"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class ApprovalExpiry:
    """What happens to a question that nobody answers."""

    action: OnExpiry = OnExpiry.WAIT
    after: timedelta | None = None

    def deadline(self, asked_at: datetime) -> datetime | None:
        return None if self.after is None or self.action is OnExpiry.WAIT else asked_at + self.after


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """What a person is asked: what would happen, and why they are asked."""

    text: str
    why: str
    asked_at: datetime
    prefixes: tuple[tuple[str, ...], ...] = ()
    """The beginnings of commands that "always for this prefix" would allow."""
    server: str | None = None
    expires_at: datetime | None = None
    on_expiry: OnExpiry = OnExpiry.WAIT

    @property
    def outcomes(self) -> list[ApprovalOutcome]:
        """The answers that make sense for it."""
        not_these = set()
        if not self.prefixes:
            not_these.add(ApprovalOutcome.PROCEED_ALWAYS_PREFIX)
        if self.server is None:
            not_these.add(ApprovalOutcome.PROCEED_ALWAYS_SERVER)
        return [outcome for outcome in ApprovalOutcome if outcome not in not_these]


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    outcome: ApprovalOutcome
    actor: Actor
    arguments: Arguments | None = None
    """The arguments to use instead, for MODIFY."""
    reason: str = ""
    """Why not, for CANCEL: the model is told."""

    @property
    def proceeds(self) -> bool:
        return self.outcome is not ApprovalOutcome.CANCEL


def approvable_prefixes(judged: Sequence[JudgedPart]) -> tuple[tuple[str, ...], ...]:
    """What to allow so that a line like this one is not asked about again: program and subcommand."""
    asked = [one for one in judged if one.decision.verdict is Verdict.ASK]
    if not asked or not all(one.words for one in asked):
        return ()
    return tuple(dict.fromkeys(_beginning(one.words) for one in asked))


def _beginning(words: tuple[str, ...]) -> tuple[str, ...]:
    program = posixpath.basename(words[0])
    if program in _RUN_ANYTHING:
        return words
    rest = words[1:]
    if program not in _WITH_SUBCOMMANDS or not rest or rest[0].startswith("-"):
        return words[:1]
    return words[:3] if rest[0] in ("run", "exec") and len(rest) > 1 else words[:2]


def validate_answer(question: ApprovalQuestion, answer: ApprovalAnswer) -> None:
    """Refuse an answer that makes no sense for the question."""
    if answer.outcome not in question.outcomes:
        possible = ", ".join(question.outcomes)
        raise InvalidInput(f"outcome: {answer.outcome} is no answer to this question. Possible: {possible}.")
    if answer.outcome is ApprovalOutcome.MODIFY and answer.arguments is None:
        raise InvalidInput("arguments: are required to modify a call")
    if problem := text.block_problem(answer.reason, max_length=MAX_REASON_LENGTH):
        raise InvalidInput(f"reason: {problem}")


def rules_from_answer(answer: ApprovalAnswer, question: ApprovalQuestion, tool: AgentTool) -> list[Rule]:
    """What "always" means from now on in this session."""
    source = f"said by {answer.actor}"
    match answer.outcome:
        case ApprovalOutcome.PROCEED_ALWAYS_TOOL:
            return [Rule(Verdict.ALLOW, tool.name, fingerprint=fingerprint(tool), source=source)]
        case ApprovalOutcome.PROCEED_ALWAYS_PREFIX:
            return [Rule(Verdict.ALLOW, tool.name, commands=question.prefixes, source=source)]
        case ApprovalOutcome.PROCEED_ALWAYS_SERVER:
            return [Rule(Verdict.ALLOW, server=question.server, source=source)]
    return []


def permission_from_answer(answer: ApprovalAnswer) -> PolicyDecision:
    return PolicyDecision(Verdict.ALLOW, f"{answer.actor} said {answer.outcome.replace('_', ' ')}")


def denial_message(answer: ApprovalAnswer) -> str:
    """What the model reads when a person has said no."""
    return f"{answer.actor.name} said no{f': {answer.reason}' if answer.reason else '.'}"
