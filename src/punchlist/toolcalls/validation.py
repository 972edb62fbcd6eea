"""Letting a request in: does the tool exist, do the arguments fit, what does policy say? (S3, S4)"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final, NamedTuple

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.text import excerpt, json_type
from punchlist.toolcalls.approvals import ApprovalExpiry, ApprovalQuestion, approvable_prefixes
from punchlist.toolcalls.concurrency import find_cycle
from punchlist.toolcalls.model import CallError, ToolCallRequest
from punchlist.toolcalls.policy import Policy, PolicyDecision, Verdict, fingerprint
from punchlist.toolcalls.repeat_detection import REPEAT_LIMIT, RepeatDetector
from punchlist.toolcalls.tool import NO_RESOURCES, AgentTool, Arguments, Resources

Toolbox = Mapping[str, AgentTool]

MAX_ARGUMENTS_LENGTH: Final = 2_000_000
MAX_PREVIEW_LENGTH: Final = 20_000
MAX_PRIORITY: Final = 1_000_000
MAX_NAME_LENGTH: Final = 200
MAX_PROBLEMS: Final = 10
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class RejectedCall(NamedTuple):
    """A request that cannot become a call."""

    error: CallError
    key: str = ""


@dataclass(frozen=True, slots=True)
class ValidatedCall:
    """A request that fits its tool, and what policy says of it."""

    request: ToolCallRequest
    tool: AgentTool
    key: str
    """The same for the same call."""
    resources: Resources
    decision: PolicyDecision
    question: ApprovalQuestion | None = None


class CallValidator:
    """Decides on requests; keeps what it has to remember for that."""

    def __init__(
        self,
        tools: Toolbox,
        policy: Policy,
        *,
        expiry: ApprovalExpiry = ApprovalExpiry(),  # noqa: B008 - a value
        repeats: RepeatDetector | None = None,
        known: Mapping[str, str] | None = None,
    ) -> None:
        self._tools = tools
        self.policy = policy
        self._expiry = expiry
        self._repeats = repeats or RepeatDetector()
        self._known = dict(known or {})

    def admit(self, request: ToolCallRequest, now: datetime, *, counted: bool = True) -> ValidatedCall | RejectedCall:
        try:
            tool = self._tools.get(request.tool)
            if tool is None:
                return RejectedCall(unknown_tool(request.tool, self._tools))
            if abs(request.priority) > MAX_PRIORITY:
                raise InvalidInput(f"priority: must be between -{MAX_PRIORITY:,} and {MAX_PRIORITY:,}")
            written = _as_json(request.arguments)
            if problems := tool.problems(request.arguments):
                return RejectedCall(_wrong_arguments(tool, problems))
            resources = tool.resources(request.arguments)
            if request.resources is not NO_RESOURCES:
                resources |= request.resources
            key = f"{tool.name} {written}"
            decision = self._decide(tool, request.arguments, key, counted)
            if decision.verdict is not Verdict.ASK:
                return ValidatedCall(request, tool, key, resources, decision)
            return ValidatedCall(request, tool, key, resources, decision, self._question(tool, request, decision, now))
        except PunchlistError as error:
            return RejectedCall(CallError(error.code, str(error)))
        except Exception as error:
            told = excerpt(str(error), 1_000)
            return RejectedCall(CallError("tool_crashed", f"{request.tool} failed: {type(error).__name__}: {told}"))

    def readmit(self, admitted: ValidatedCall, arguments: Arguments, now: datetime) -> ValidatedCall:
        """The same call with other arguments, as a person wants it; policy's word against it stands."""
        changed = self.admit(replace(admitted.request, arguments=arguments), now, counted=False)
        if isinstance(changed, RejectedCall):
            raise InvalidInput(changed.error.message)
        if changed.decision.verdict is Verdict.DENY:
            raise InvalidInput(f"These arguments are not possible: {changed.decision.why}.")
        return changed

    def settle(self, admitted: ValidatedCall) -> None:
        """A person has seen this call and let it run: its repetitions and its tool are known."""
        self._repeats.reset(admitted.key)
        if (seen := fingerprint(admitted.tool)) is not None:
            self._known[admitted.tool.name] = seen

    def _decide(self, tool: AgentTool, arguments: Arguments, key: str, counted: bool) -> PolicyDecision:
        decision = self.policy.decide(tool, arguments)
        often = self._repeats.count(key, tool.effect) if counted else 0
        if decision.verdict is not Verdict.ALLOW:
            return decision
        if tool.server is not None and self._known.get(tool.name) not in {None, fingerprint(tool)}:
            return PolicyDecision(
                Verdict.ASK, f"what {tool.server} says of {tool.name} has changed since it was let run"
            )
        if often >= REPEAT_LIMIT:
            return PolicyDecision(Verdict.ASK, f"the same call was made {often} times with nothing in between: a loop?")
        return decision

    def _question(
        self, tool: AgentTool, request: ToolCallRequest, decision: PolicyDecision, now: datetime
    ) -> ApprovalQuestion:
        judged = self.policy.judge(tool, request.arguments)
        shown = tool.preview(request.arguments)
        if len(shown) > MAX_PREVIEW_LENGTH:
            shown = f"{shown[:MAX_PREVIEW_LENGTH]}\n… [{len(shown) - MAX_PREVIEW_LENGTH:,} characters more]"
        return ApprovalQuestion(
            text=shown,
            why=decision.why,
            asked_at=now,
            prefixes=approvable_prefixes(judged),
            server=tool.server,
            expires_at=self._expiry.deadline(now),
            on_expiry=self._expiry.action,
        )


def unknown_tool(name: object, tools: Iterable[str]) -> CallError:
    known = sorted(tools)
    shown = excerpt(str(name))
    close = get_close_matches(str(name)[:MAX_NAME_LENGTH], known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    return CallError("unknown_tool", f"There is no tool {shown!r}.{hint} There are: {', '.join(known) or 'none'}.")


def _wrong_arguments(tool: AgentTool, problems: Sequence[str]) -> CallError:
    told = list(problems[:MAX_PROBLEMS])
    if len(problems) > len(told):
        told.append(f"… and {len(problems) - len(told)} more")
    return CallError("invalid_arguments", f"The arguments do not fit {tool.name}:\n" + "\n".join(told))


def _as_json(arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"arguments: must be an object, got {json_type(arguments)}")
    try:
        written = _ENCODER.encode(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"arguments: are not JSON ({excerpt(str(error))})") from None
    if len(written) > MAX_ARGUMENTS_LENGTH:
        raise InvalidInput(f"arguments: at most {MAX_ARGUMENTS_LENGTH:,} characters of JSON, got {len(written):,}")
    return written


def check_ids(requests: Sequence[ToolCallRequest], knows: Callable[[str], bool]) -> None:
    """Refuse a batch whose ids are not usable: that is the caller's mistake, not the model's."""
    ids = [request.call_id for request in requests]
    for call_id in ids:
        if not _ID.fullmatch(call_id):
            raise InvalidInput(f"call_id: must be 1 to 100 letters, digits or _.:-, got {excerpt(call_id)!r}")
        if knows(call_id):
            raise InvalidInput(f"call_id: {call_id!r} was used before")
    if len(set(ids)) < len(ids):
        raise InvalidInput("call_id: two requests of one batch have the same")


def invalid_dependencies(requests: Sequence[ToolCallRequest], knows: Callable[[str], bool]) -> dict[str, CallError]:
    """Requests that wait for something that will never come."""
    if not any(request.depends_on for request in requests):
        return {}
    ids = {request.call_id for request in requests}
    wrong = {
        request.call_id: CallError("invalid_arguments", f"depends_on: there is no call {excerpt(missing)!r}")
        for request in requests
        for missing in request.depends_on
        if missing not in ids and not knows(missing)
    }
    waits = {request.call_id: request.depends_on for request in requests}
    while round := find_cycle(waits):
        way = " → ".join([*round, round[0]])
        for call_id in round:
            wrong[call_id] = CallError("invalid_arguments", f"depends_on: these calls wait for each other: {way}")
            waits.pop(call_id)
    return wrong
