"""The rows of tool calls and approvals, the columns that each transition writes, and its event. Pure."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from punchlist.errors import StoreDamaged
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.events import Actor, Change, Role, compact_encoder
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt, visible_block
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, ApprovalQuestion, OnExpiry
from punchlist.toolcalls.lifecycle import ApprovalStatus, CallAction, CallStatus, UnfinishedCode
from punchlist.toolcalls.model import (
    CancelledToolCall,
    CompletedToolCall,
    ErroredToolCall,
    ExecutingToolCall,
    ScheduledToolCall,
    SuccessfulToolCall,
    ToolCallRequest,
    Transition,
)
from punchlist.toolcalls.policy import Rule, RuleLifetime, Verdict, fingerprint
from punchlist.toolcalls.tool import Resources
from punchlist.toolcalls.validation import MAX_ARGUMENTS_LENGTH

_MAX_NAME_LENGTH: Final = 200
_MAX_REASON_LENGTH: Final = 10_000
_ENCODE: Final = compact_encoder(default=repr)
_RULE_FIELDS: Final = (
    *("verdict", "tool", "commands", "lines", "server", "fingerprint", "source", "lifetime", "project", "owner"),
)
"""The fields of a rule that an "always" answer sets."""


class StoredCall(NamedTuple):
    """A row of `tool_calls`, without its checksum."""

    id: str
    conversation_id: str
    turn_id: str | None
    position: int
    tool: str
    arguments: str
    exact: str | None
    status: str
    effect: str | None
    fingerprint: str | None
    terms: str
    workspace: str
    owner: str
    result: str | None
    output_file: str | None
    error_code: str | None
    explanation: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None

    def checksum(self) -> int:
        parts = ["\x00" if value is None else value if type(value) is str else str(value) for value in self]
        return zlib.crc32("\x1f".join(parts).encode())

    @property
    def request(self) -> ToolCallRequest:
        """The request, with its exact arguments as long as the call has not ended."""
        terms = json.loads(self.terms)
        return ToolCallRequest(
            self.tool,
            json.loads(self.exact or self.arguments),
            self.id,
            tuple(terms.get("depends_on", ())),
            terms.get("priority", 0),
            Resources(frozenset(terms.get("reads", ())), frozenset(terms.get("writes", ()))),
            terms.get("timeout"),
        )

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"callId": self.id, "tool": self.tool, "status": self.status}
        if self.status == CallStatus.SUCCESS:
            shown["result"] = self.result
        elif self.explanation is not None:
            shown["error"] = {"code": self.error_code or self.status, "message": self.explanation}
        return shown


class StoredApproval(NamedTuple):
    """A row of `approvals`."""

    call_id: str
    conversation_id: str
    status: str
    question: str
    why: str
    prefixes: str
    server: str | None
    asked_at: str
    expires_at: str | None
    on_expiry: str
    outcome: str | None = None
    answered_by: str | None = None
    answered_at: str | None = None
    arguments: str | None = None
    reason: str = ""
    question_signature: str | None = None
    answer_signature: str | None = None

    @property
    def id(self) -> str:
        return self.call_id

    @property
    def as_question(self) -> ApprovalQuestion:
        covered = json.loads(self.prefixes)
        return ApprovalQuestion(
            self.question,
            self.why,
            parse_timestamp(self.asked_at),
            tuple(tuple(words) for words in covered if isinstance(words, list)),
            tuple(tuple(words["line"]) for words in covered if isinstance(words, dict)),
            self.server,
            parse_timestamp(self.expires_at) if self.expires_at else None,
            OnExpiry(self.on_expiry),
        )

    def is_due(self, now: datetime) -> bool:
        """Whether its time is up and an action is due."""
        expired = self.expires_at is not None and now >= parse_timestamp(self.expires_at)
        return expired and self.status == ApprovalStatus.PENDING and self.on_expiry != OnExpiry.WAIT

    @property
    def answer(self) -> ApprovalAnswer | None:
        if self.outcome is None or self.answered_by is None:
            return None
        role, _, name = self.answered_by.partition(":")
        arguments = json.loads(self.arguments) if self.arguments else None
        outcome, _, lifetime = self.outcome.partition(":")
        return ApprovalAnswer(
            ApprovalOutcome(outcome),
            Actor(Role(role), name),
            arguments,
            self.reason,
            RuleLifetime(lifetime or RuleLifetime.SESSION),
            self.question,
        )


def call_from_row(row: tuple[Any, ...]) -> StoredCall:
    call = StoredCall._make(row[:-1])
    if call.checksum() != row[-1]:
        raise StoreDamaged.not_as_written(f"Tool call {call.id!r}")
    return call


def new_call(transition: Transition, redactor: Redactor, **origin: Any) -> StoredCall:
    request = transition.call.request
    safe, exact = _arguments(request.arguments, redactor)
    return StoredCall(
        id=request.call_id,
        tool=to_storable_text(redactor.text(excerpt(request.tool, _MAX_NAME_LENGTH))),
        arguments=safe,
        exact=exact,
        status=CallStatus.VALIDATING.value,
        effect=None,
        fingerprint=None,
        terms=_ENCODE(_terms(request)),
        result=None,
        output_file=None,
        error_code=None,
        explanation=None,
        created_at=timestamp(transition.at),
        started_at=None,
        ended_at=None,
        **origin,
    )


def _terms(request: ToolCallRequest) -> dict[str, Any]:
    """The options of a request that are set."""
    terms = {
        "depends_on": request.depends_on,
        "priority": request.priority,
        "reads": sorted(request.resources.reads),
        "writes": sorted(request.resources.writes),
        "timeout": request.timeout,
    }
    return {name: value for name, value in terms.items() if value}


def changed_columns(transition: Transition, redactor: Redactor) -> dict[str, Any]:
    """The columns that a transition changes in the row of its call."""
    columns: dict[str, Any] = {"status": transition.call.status.value}
    match transition.call:
        case ScheduledToolCall(tool=tool) as call:
            if transition.action is CallAction.ACCEPT:
                columns |= {"effect": tool.effect.value, "fingerprint": fingerprint(tool)}
            elif transition.answer is not None and transition.answer.outcome is ApprovalOutcome.MODIFY:
                columns["arguments"], columns["exact"] = _arguments(call.request.arguments, redactor)
        case ExecutingToolCall():
            columns["started_at"] = timestamp(transition.call.started_at)
        case SuccessfulToolCall(result=result):
            columns |= {"result": to_storable_text(result.text), "output_file": result.output_file}
        case ErroredToolCall(error=error):
            columns |= {"error_code": error.code, "explanation": to_storable_text(redactor.text(error.message))}
        case CancelledToolCall(reason=reason, not_started=not_started):
            columns["explanation"] = to_storable_text(redactor.text(reason))
            if not_started:
                columns["error_code"] = UnfinishedCode.NOT_STARTED.value
    if isinstance(transition.call, CompletedToolCall):
        columns |= {"ended_at": timestamp(transition.call.ended_at), "exact": None}
    return columns


def event_data(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The changed columns as the event log keeps them: without secrets, and a result as its digest only."""
    data = {name: value for name, value in columns.items() if name not in {"exact", "status", "result"}}
    if columns.get("result") is not None:
        data["result_sha256"] = digest(columns["result"])
    return data


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def new_approval(call: StoredCall, question: ApprovalQuestion, redactor: Redactor) -> StoredApproval:
    return StoredApproval(
        call_id=call.id,
        conversation_id=call.conversation_id,
        status=ApprovalStatus.PENDING.value,
        question=to_storable_text(redactor.text(question.text)),
        why=to_storable_text(redactor.text(question.why)),
        # A redacted prefix matches no command, so a prefix that holds a secret allows nothing.
        prefixes=_ENCODE(redactor.value([*question.prefixes, *({"line": words} for words in question.lines)])),
        server=question.server,
        asked_at=timestamp(question.asked_at),
        expires_at=timestamp(question.expires_at) if question.expires_at else None,
        on_expiry=question.on_expiry.value,
    )


def _arguments(arguments: Mapping[str, Any], redactor: Redactor) -> tuple[str, str | None]:
    """The redacted arguments, and the exact ones where they differ."""
    try:
        plain = dict(arguments)
        exact = _ENCODE(plain)
        redacted = redactor.value(plain)
        safe = exact if redacted == plain else _ENCODE(redacted)
    except (TypeError, ValueError, RecursionError):
        # The call is rejected; the record says what was wrong with it.
        return _ENCODE({"not JSON": type(arguments).__name__}), None
    if len(exact) > MAX_ARGUMENTS_LENGTH:
        return _ENCODE({"left out": f"{len(exact):,} characters"}), None
    return (safe, None) if safe == exact else (safe, exact)


def to_storable_text(text: str) -> str:
    """Text that both databases accept: without NUL and lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


@lru_cache(maxsize=256)
def event_reason(reason: str) -> str:
    """A reason that the event log accepts. Cached, since few different reasons occur."""
    return visible_block(reason)[:_MAX_REASON_LENGTH].strip()


def call_stream(conversation_id: str) -> str:
    return f"toolcalls:{conversation_id}"


def call_change(
    call: StoredCall, action: str, from_status: str | None, actor: Actor, reason: str, data: dict[str, Any]
) -> Change:
    return Change(
        stream=call_stream(call.conversation_id),
        conversation_id=call.conversation_id,
        actor=str(actor),
        action=action,
        subject=call.id,
        from_status=from_status,
        to_status=call.status,
        reason=reason,
        data=data,
    )


def rule_to_json(rule: Rule) -> str:
    return _ENCODE({name: getattr(rule, name) for name in _RULE_FIELDS})


def rule_from_json(text: str) -> Rule:
    stored = json.loads(text)
    stored["verdict"] = Verdict(stored["verdict"])
    for name in ("commands", "lines"):
        stored[name] = tuple(map(tuple, stored.get(name, ())))
    if stored.get("lifetime"):
        stored["lifetime"] = RuleLifetime(stored["lifetime"])
    return Rule(**stored)


def stored_outcome(answer: ApprovalAnswer) -> str:
    """The outcome, with the lifetime of its rule unless that is the session."""
    has_other = answer.outcome.startswith("proceed_always") and answer.lifetime is not RuleLifetime.SESSION
    return f"{answer.outcome}:{answer.lifetime}" if has_other else answer.outcome.value
