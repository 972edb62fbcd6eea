"""Approvals: the question to a person, the possible answers, and their meaning. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.kernel.events import Actor
from punchlist.toolcalls.policy import PolicyDecision, Rule, RuleLifetime, Verdict, fingerprint
from punchlist.toolcalls.tool import AgentTool, Arguments

MAX_REASON_LENGTH: Final = 2_000
EXPIRED_MESSAGE: Final = "The question was not answered in time, so the call was not run. No person has decided this."


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
    lines: tuple[tuple[str, ...], ...] = ()
    """The whole commands that it would allow besides."""
    server: str | None = None
    expires_at: datetime | None = None
    on_expiry: OnExpiry = OnExpiry.WAIT

    @property
    def outcomes(self) -> list[ApprovalOutcome]:
        """The possible outcomes."""
        needs = {
            ApprovalOutcome.PROCEED_ALWAYS_PREFIX: self.prefixes or self.lines,
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
    lifetime: RuleLifetime = RuleLifetime.SESSION
    """Of the rule, for an "always" answer."""
    shown: str | None = None
    """The text that the person saw last, if it was shown anew; None for the text of the question."""

    @property
    def payload(self) -> dict[str, Any]:
        """For `handle_confirmation_response`."""
        return {
            "by": self.actor,
            "reason": self.reason,
            "arguments": self.arguments,
            "lifetime": self.lifetime,
            "shown": self.shown,
        }

    @property
    def proceeds(self) -> bool:
        return self.outcome is not ApprovalOutcome.CANCEL


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
    """The rules of an "always" answer."""
    rule = always_rule(answer.outcome, question, tool.name, fingerprint(tool))
    return [] if rule is None else [replace(rule, source=f"said by {answer.actor}", lifetime=answer.lifetime)]


def always_rule(
    outcome: ApprovalOutcome, question: ApprovalQuestion, tool: str, definition: str | None = None
) -> Rule | None:
    """What an "always" answer would allow; None for other answers."""
    match outcome:
        case ApprovalOutcome.PROCEED_ALWAYS_TOOL:
            return Rule(Verdict.ALLOW, tool, fingerprint=definition)
        case ApprovalOutcome.PROCEED_ALWAYS_PREFIX:
            return Rule(Verdict.ALLOW, tool, commands=question.prefixes, lines=question.lines)
        case ApprovalOutcome.PROCEED_ALWAYS_SERVER:
            return Rule(Verdict.ALLOW, server=question.server)
    return None


def permission_from_answer(answer: ApprovalAnswer) -> PolicyDecision:
    return PolicyDecision(Verdict.ALLOW, f"{answer.actor} said {answer.outcome.replace('_', ' ')}")


def denial_message(answer: ApprovalAnswer) -> str:
    """What the model reads when a person denies a call."""
    return f"{answer.actor.known_name} denied this call{f': {answer.reason}' if answer.reason else '.'}"
