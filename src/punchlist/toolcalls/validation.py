"""Validates requests: does the tool exist, do the arguments fit its schema, what does the policy decide? (S3, S4)"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.text import excerpt, json_type
from punchlist.toolcalls.always import offered_coverage
from punchlist.toolcalls.approvals import ApprovalExpiry, ApprovalQuestion
from punchlist.toolcalls.concurrency import find_cycle
from punchlist.toolcalls.model import CallError, ToolCallRequest
from punchlist.toolcalls.policy import Policy, PolicyDecision, Verdict, fingerprint
from punchlist.toolcalls.repeat_detection import RepeatDetector
from punchlist.toolcalls.tool import NO_RESOURCES, AgentTool, Arguments, Resources

Toolbox = Mapping[str, AgentTool]

MAX_ARGUMENTS_LENGTH: Final = 2_000_000
MAX_PREVIEW_LENGTH: Final = 20_000
CHANGED: Final = "it has changed since it was approved"
MAX_PRIORITY: Final = 1_000_000
MAX_NAME_LENGTH: Final = 200
MAX_PROBLEMS: Final = 10
_HUNK: Final = re.compile(r"^@@ .*? @@", re.MULTILINE)
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class ValidatedCall:
    """A valid request with its tool, and the decision of the policy."""

    request: ToolCallRequest
    tool: AgentTool
    key: str
    """Identical calls have the same key."""
    resources: Resources
    decision: PolicyDecision
    question: ApprovalQuestion | None = None
    problem: CallError | None = None
    """Why a person cannot be asked about it yet, such as a diff of a file that an earlier call will create."""


class CallValidator:
    """Validates the requests of one session."""

    def __init__(
        self,
        tools: Toolbox,
        policy: Policy,
        *,
        expiry: ApprovalExpiry = ApprovalExpiry(),  # noqa: B008 - a value
        repeats: RepeatDetector | None = None,
        fingerprints: Mapping[str, str] | None = None,
    ) -> None:
        self._tools = tools
        self.policy = policy
        self._expiry = expiry
        self._repeats = repeats or RepeatDetector()
        self._fingerprints = dict(fingerprints or {})

    def validate(
        self, request: ToolCallRequest, now: datetime, *, count_repeat: bool = True
    ) -> ValidatedCall | CallError:
        """The valid call, or why the request is rejected."""
        try:
            tool = self._tools.get(request.tool)
            if tool is None:
                # A tool that only the program calls is none for a model.
                known = [name for name, tool in self._tools.items() if getattr(tool, "is_offered", True)]
                return unknown_tool(request.tool, known)
            if abs(request.priority) > MAX_PRIORITY:
                raise InvalidInput(f"priority: must be between -{MAX_PRIORITY:,} and {MAX_PRIORITY:,}")
            encoded = _encode(request.arguments)
            if problems := tool.problems(request.arguments):
                return _invalid_arguments(tool, problems)
            resources = tool.resources(request.arguments)
            if request.resources is not NO_RESOURCES:
                resources |= request.resources
            key = f"{tool.name} {encoded}"
            decision = self._decide(tool, request.arguments, key, count_repeat and not request.by_loop)
            valid = ValidatedCall(request, tool, key, resources, decision)
            return self._with_question(valid, now) if decision.verdict is Verdict.ASK else valid
        except PunchlistError as error:
            return CallError(error.code, str(error))
        except Exception as error:
            detail = excerpt(str(error), 1_000)
            return CallError("tool_crashed", f"{request.tool} failed: {type(error).__name__}: {detail}")

    def revalidate(self, validated: ValidatedCall, arguments: Arguments, now: datetime) -> ValidatedCall:
        """The same call with the arguments that a person gave. A denial by the policy still holds."""
        changed = self.validate(replace(validated.request, arguments=arguments), now, count_repeat=False)
        problem = changed if isinstance(changed, CallError) else changed.problem
        if problem is not None:
            raise InvalidInput(problem.message)
        assert isinstance(changed, ValidatedCall)
        if changed.decision.verdict is Verdict.DENY:
            raise InvalidInput(f"The policy denies these arguments: {changed.decision.why}.")
        return changed

    def judge_again(self, validated: ValidatedCall, now: datetime) -> CallError | None:
        """Refuse a call that needed no approval when it came, and needs it after the calls before it have run.

        An earlier call can have put a link at the path that this one writes to.
        """
        again = self.validate(validated.request, now, count_repeat=False)
        if isinstance(again, CallError):
            return again
        if again.decision.verdict in {Verdict.ALLOW, validated.decision.verdict}:
            return again.problem
        return CallError(
            "changed",
            f"The call was not run: after the calls before it, the policy no longer allows it ({again.decision.why}). "
            "Call it again if it is still needed.",
        )

    def unanswered(
        self, validated: ValidatedCall, approved: str | None, redact: Callable[[str], str], now: datetime
    ) -> ValidatedCall | None:
        """The call with a question that a person has not answered yet; None if it may run.

        `approved` is what a person was shown. An earlier call can have changed the file of a diff, or a script.
        """
        if validated.decision.verdict is not Verdict.ASK:
            return None
        again = self.validate(validated.request, now, count_repeat=False)
        if isinstance(again, CallError) or again.question is None:
            return None
        if approved is None:
            return again
        if comparable(redact(again.question.text)) == comparable(redact(approved)):
            return None
        return replace(again, question=replace(again.question, why=f"{CHANGED} ({again.question.why})"))

    def mark_approved(self, validated: ValidatedCall) -> None:
        """A person approved this call: accept its repetitions and the current definition of its tool."""
        self._repeats.reset(validated.key)
        if (seen := fingerprint(validated.tool)) is not None:
            self._fingerprints[validated.tool.name] = seen

    def _decide(self, tool: AgentTool, arguments: Arguments, key: str, count_repeat: bool) -> PolicyDecision:
        decision = self.policy.decide(tool, arguments)
        loop = self._repeats.problem(key, tool.effect) if count_repeat else None
        if decision.verdict is not Verdict.ALLOW:
            return decision
        if tool.server is not None and self._fingerprints.get(tool.name) not in {None, fingerprint(tool)}:
            return PolicyDecision(
                Verdict.ASK, f"{tool.server} has changed the definition of {tool.name} since its approval"
            )
        return PolicyDecision(Verdict.ASK, f"{loop}: a loop?") if loop else decision

    def _with_question(self, valid: ValidatedCall, now: datetime) -> ValidatedCall:
        try:
            return replace(valid, question=self._question(valid, now))
        except PunchlistError as error:
            return replace(valid, problem=CallError(error.code, str(error)))

    def _question(self, valid: ValidatedCall, now: datetime) -> ApprovalQuestion:
        tool, request = valid.tool, valid.request
        judged = self.policy.judge(tool, request.arguments)
        coverage = offered_coverage(self.policy, tool, request.arguments, judged)
        return ApprovalQuestion(
            text=question_text(tool, request.arguments),
            why=valid.decision.why,
            asked_at=now,
            prefixes=coverage.prefixes,
            lines=coverage.lines,
            server=tool.server,
            expires_at=self._expiry.deadline(now),
            on_expiry=self._expiry.action,
        )


def question_text(tool: AgentTool, arguments: Arguments) -> str:
    """What a person reads before approving a call. Computed again, it shows whether a file has changed since."""
    shown = tool.preview(arguments)
    if len(shown) > MAX_PREVIEW_LENGTH:
        shown = f"{shown[:MAX_PREVIEW_LENGTH]}\n… [{len(shown) - MAX_PREVIEW_LENGTH:,} more characters]"
    return shown


def comparable(text: str) -> str:
    """A question as it is compared: a hunk of a diff can move, and a text is stored without control characters."""
    return _HUNK.sub("@@", text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00"))


def unknown_tool(name: object, tools: Iterable[str]) -> CallError:
    known = sorted(tools)
    close = get_close_matches(str(name)[:MAX_NAME_LENGTH], known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    return CallError(
        "unknown_tool", f"There is no tool {excerpt(str(name))!r}.{hint} Available: {', '.join(known) or 'none'}."
    )


def _invalid_arguments(tool: AgentTool, problems: Sequence[str]) -> CallError:
    lines = list(problems[:MAX_PROBLEMS])
    if len(problems) > len(lines):
        lines.append(f"… and {len(problems) - len(lines)} more")
    return CallError("invalid_arguments", f"The arguments do not fit {tool.name}:\n" + "\n".join(lines))


def _encode(arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"arguments: must be an object, got {json_type(arguments)}")
    try:
        encoded = _ENCODER.encode(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"arguments: are not JSON ({excerpt(str(error))})") from None
    if len(encoded) > MAX_ARGUMENTS_LENGTH:
        raise InvalidInput(f"arguments: at most {MAX_ARGUMENTS_LENGTH:,} characters of JSON, got {len(encoded):,}")
    return encoded


def check_ids(requests: Sequence[ToolCallRequest], is_used: Callable[[str], bool]) -> None:
    """Reject a batch with unusable ids: the caller chooses them, not the model."""
    ids = [request.call_id for request in requests]
    for call_id in ids:
        if not _ID.fullmatch(call_id):
            raise InvalidInput(f"call_id: must be 1 to 100 letters, digits or _.:-, got {excerpt(call_id)!r}")
        if is_used(call_id):
            raise InvalidInput(f"call_id: {call_id!r} is already in use")
    if len(set(ids)) < len(ids):
        raise InvalidInput("call_id: two requests of one batch have the same id")


def invalid_dependencies(requests: Sequence[ToolCallRequest], is_used: Callable[[str], bool]) -> dict[str, CallError]:
    """Requests that depend on calls that do not exist, or on themselves in a cycle."""
    if not any(request.depends_on for request in requests):
        return {}
    ids = {request.call_id for request in requests}
    invalid = {
        request.call_id: CallError("invalid_arguments", f"depends_on: there is no call {excerpt(missing)!r}")
        for request in requests
        for missing in request.depends_on
        if missing not in ids and not is_used(missing)
    }
    dependencies = {request.call_id: request.depends_on for request in requests}
    while cycle := find_cycle(dependencies):
        path = " → ".join([*cycle, cycle[0]])
        for call_id in cycle:
            invalid[call_id] = CallError("invalid_arguments", f"depends_on: these calls depend on each other: {path}")
            dependencies.pop(call_id)
    return invalid
