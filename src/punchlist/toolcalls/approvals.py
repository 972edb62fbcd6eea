"""Approvals: the question to a person, the possible answers, and their meaning. Pure."""

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
EXPIRED_MESSAGE: Final = "The question was not answered in time, so the call was not run. No person has decided this."


# Programs whose first argument is a subcommand: `git push` is not `git status`.
_WITH_SUBCOMMANDS: Final = frozenset(
    "apt brew bun cargo docker dotnet flutter gcloud gh git go gradle helm just kubectl make mvn npm nx pip pipx pnpm "  # noqa: SIM905
    "podman poetry rails rustup systemctl terraform uv yarn".split()
)
# Programs that run other programs: "always" covers exactly these words.
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
    """What happens to a question without an answer, and when."""

    action: OnExpiry = OnExpiry.WAIT
    after: timedelta | None = None

    def deadline(self, asked_at: datetime) -> datetime | None:
        return None if self.after is None or self.action is OnExpiry.WAIT else asked_at + self.after


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """What would happen, and why a person is asked."""

    text: str
    why: str
    asked_at: datetime
    prefixes: tuple[tuple[str, ...], ...] = ()
    """The command prefixes that "always for this prefix" would allow."""
    server: str | None = None
    expires_at: datetime | None = None
    on_expiry: OnExpiry = OnExpiry.WAIT

    @property
    def outcomes(self) -> list[ApprovalOutcome]:
        """The possible outcomes."""
        needs = {
            ApprovalOutcome.PROCEED_ALWAYS_PREFIX: self.prefixes,
            ApprovalOutcome.PROCEED_ALWAYS_SERVER: self.server,
        }
        return [outcome for outcome in ApprovalOutcome if needs.get(outcome, True)]


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    outcome: ApprovalOutcome
    actor: Actor
    arguments: Arguments | None = None
    """The arguments to use instead, for MODIFY."""
    reason: str = ""
    """For CANCEL: the model reads it."""

    @property
    def proceeds(self) -> bool:
        return self.outcome is not ApprovalOutcome.CANCEL


def approvable_prefixes(judged: Sequence[JudgedPart]) -> tuple[tuple[str, ...], ...]:
    """The command prefixes (program and subcommand) that would allow a line like this one."""
    asked = [part for part in judged if part.decision.verdict is Verdict.ASK]
    if not asked or not all(part.words for part in asked):
        return ()
    return tuple(dict.fromkeys(_prefix(part.words) for part in asked))


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    program = posixpath.basename(words[0])
    if program in _RUN_ANYTHING:
        return words
    rest = words[1:]
    if program not in _WITH_SUBCOMMANDS or not rest or rest[0].startswith("-"):
        return words[:1]
    return words[:3] if rest[0] in ("run", "exec") and len(rest) > 1 else words[:2]


def validate_answer(question: ApprovalQuestion, answer: ApprovalAnswer) -> None:
    """Raise InvalidInput for an answer that the question does not allow."""
    if answer.outcome not in question.outcomes:
        possible = ", ".join(question.outcomes)
        raise InvalidInput(f"outcome: {answer.outcome} is not possible for this question. Possible: {possible}.")
    if answer.outcome is ApprovalOutcome.MODIFY and answer.arguments is None:
        raise InvalidInput("arguments: required to modify a call")
    if problem := text.block_problem(answer.reason, max_length=MAX_REASON_LENGTH):
        raise InvalidInput(f"reason: {problem}")


def rules_from_answer(answer: ApprovalAnswer, question: ApprovalQuestion, tool: AgentTool) -> list[Rule]:
    """The session rules of an "always" answer."""
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
    """What the model reads when a person denies a call."""
    return f"{answer.actor.name} denied this call{f': {answer.reason}' if answer.reason else '.'}"
