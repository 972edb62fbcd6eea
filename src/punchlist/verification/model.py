"""Values of verification. Items of every list carry a `Verification`, stored as one JSON text with the item.

The mark of a completed item is derived, never stored: accepted by a person or a Lead, else checked, else evidenced by
tool calls, else only claimed (V4).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from punchlist.kernel.text import excerpt, one_line

MAX_EVIDENCE: Final = 20
"""Calls kept per item: the last ones."""
MAX_OUTPUT_LENGTH: Final = 4_000
"""Characters of a check's output that are kept: the end of it."""
MAX_SUMMARY_LENGTH: Final = 200
MAX_FAILURE_LENGTH: Final = 500
"""Characters of what the next attempt is told about an earlier one."""


class Mark(StrEnum):
    """How far the completion of an item can be relied on, from weak to strong."""

    CLAIMED = "claimed"
    EVIDENCED = "evidenced"
    CHECKED = "checked"
    ACCEPTED = "accepted"


class CheckOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"
    """It timed out, was not allowed, or could not be started. The work may be right."""


@dataclass(frozen=True, slots=True)
class Check:
    """Decides whether an item is done. Exactly one of `command`, `file` and `metric` is set."""

    command: str | None = None
    """Passes if it exits with 0."""
    file: str | None = None
    """Passes if the file is not empty and contains `contains`."""
    contains: str | None = None
    metric: str | None = None
    """The slug of a mission's metric; passes if the metric meets its target."""
    timeout: float | None = None
    """Seconds, for a command."""
    by_person: bool = False
    """A person wrote it, so that it runs without approval."""

    @property
    def description(self) -> str:
        """One line for people and models. May contain any character: make it visible before showing it."""
        if self.command is not None:
            return self.command
        if self.file is not None:
            return f"{self.file} contains “{self.contains}”" if self.contains else f"{self.file} is not empty"
        return f"metric {self.metric} meets its target"


@dataclass(frozen=True, slots=True)
class CheckResult:
    outcome: CheckOutcome
    output: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceCall:
    """A successful tool call that was made for an item."""

    tool: str
    summary: str
    """Its arguments in one line."""
    call_id: str = ""
    changed: str = ""
    """What it changed, such as a path; empty if it only read."""


@dataclass(frozen=True, slots=True)
class Verification:
    check: Check | None = None
    result: CheckResult | None = None
    """The last run of the check."""
    evidence: tuple[EvidenceCall, ...] = ()
    accepted_by: str | None = None
    copied_from: str | None = None
    """The id of the item that this one takes over from an earlier turn (T14)."""
    failure: str = ""
    """The error of the first attempt, for the second one (C8)."""

    @property
    def failures(self) -> list[str]:
        """Why the item is still open, in one line each, for the next attempt."""
        found = [f"it failed: {self.failure}"] if self.failure else []
        if self.result is not None and self.has_failed:
            # Errors are usually at the end.
            found.append(f"its check failed: {one_line(self.result.output)[-MAX_FAILURE_LENGTH:]}")
        return found

    def failed(self, error: str) -> Verification:
        """After the work on the item has failed."""
        return replace(self, failure=one_line(error, MAX_FAILURE_LENGTH))

    @property
    def mark(self) -> Mark:
        """The mark of the item, if it is completed."""
        if self.accepted_by:
            return Mark.ACCEPTED
        if self.result is not None and self.result.outcome is CheckOutcome.PASSED:
            return Mark.CHECKED
        return Mark.EVIDENCED if self.evidence else Mark.CLAIMED

    @property
    def has_failed(self) -> bool:
        """The last run of the check has failed."""
        return self.result is not None and self.result.outcome is CheckOutcome.FAILED

    def passed_since(self, moment: str) -> bool:
        """Whether the check has passed since `moment`; what a person accepted is not checked any more."""
        if self.check is None or self.result is None or self.accepted_by:
            return False
        return self.result.outcome is CheckOutcome.PASSED and self.result.at >= moment

    def is_outdated(self, since: str, changed_at: str) -> bool:
        """Whether the check has passed since `since`, but before something was changed at `changed_at`."""
        return self.passed_since(since) and self.result is not None and self.result.at < changed_at

    @property
    def needs_check(self) -> bool:
        """Whether the check of a completed item is still to be run. A failed result is from before its completion."""
        if self.check is None or self.accepted_by:
            return False
        return self.result is None or self.result.outcome is CheckOutcome.FAILED

    def with_evidence(self, calls: Sequence[EvidenceCall]) -> Verification:
        return replace(self, evidence=tuple(calls)[-MAX_EVIDENCE:])

    def reopened(self) -> Verification:
        """What still applies after the item is open again: the work is verified anew."""
        return replace(self, result=None, evidence=(), accepted_by=None)

    def encode(self) -> str | None:
        """The form in which it is stored; None if there is nothing to store."""
        data = self.stored_json()
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True) if data else None

    def stored_json(self) -> dict[str, Any]:
        """The inverse of `from_json`."""
        data = self.as_json()
        if self.check is not None and self.check.by_person:
            data["checkByPerson"] = True
        if self.failure:
            data["failure"] = self.failure
        return data

    def as_json(self) -> dict[str, Any]:
        """The fields of an item in tools, commands and `run --json`; empty ones are omitted."""
        fields: dict[str, Any] = {
            "check": check_json(self.check) if self.check else None,
            "checkResult": result_json(self.result) if self.result else None,
            "evidence": [evidence_json(call) for call in self.evidence],
            "acceptedBy": self.accepted_by,
            "copiedFrom": self.copied_from,
        }
        return {name: value for name, value in fields.items() if value}


NO_VERIFICATION: Final = Verification()


def decode(stored: str | None) -> Verification:
    """The inverse of `encode`. Raises ValueError, KeyError or TypeError for anything else."""
    return from_json(json.loads(stored)) if stored else NO_VERIFICATION


def from_json(data: Mapping[str, Any]) -> Verification:
    raw, result = data.get("check"), data.get("checkResult")
    return Verification(
        None if raw is None else check_from_json(raw, bool(data.get("checkByPerson"))),
        None if result is None else CheckResult(CheckOutcome(result["outcome"]), result["output"], result["at"]),
        tuple(
            EvidenceCall(call["tool"], call["summary"], call.get("callId", ""), call.get("changed", ""))
            for call in data.get("evidence", ())
        ),
        data.get("acceptedBy"),
        data.get("copiedFrom"),
        data.get("failure", ""),
    )


def check_from_json(raw: str | Mapping[str, Any], by_person: bool) -> Check:
    """The inverse of `check_json`."""
    fields = {"command": raw} if isinstance(raw, str) else raw
    return Check(**fields, by_person=by_person)


def verification_json(verification: Verification, *, completed: bool) -> dict[str, Any]:
    """The fields of an item in JSON, with the mark of a completed one (V4)."""
    return {**({"mark": verification.mark.value} if completed else {}), **verification.as_json()}


def check_json(check: Check) -> str | dict[str, Any]:
    """A command without a timeout is a string, as it is written in most cases (V2)."""
    fields = {
        "command": check.command,
        "file": check.file,
        "contains": check.contains,
        "metric": check.metric,
        "timeout": check.timeout,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return check.command if check.command is not None and list(given) == ["command"] else given


def result_json(result: CheckResult) -> dict[str, str]:
    return {"outcome": result.outcome.value, "output": result.output, "at": result.at}


def evidence_json(call: EvidenceCall) -> dict[str, str]:
    fields = {"tool": call.tool, "summary": call.summary, "callId": call.call_id, "changed": call.changed}
    return {name: value for name, value in fields.items() if value or name in ("tool", "summary")}


def check_result(outcome: CheckOutcome, output: str, at: str) -> CheckResult:
    """A result whose output is short enough to keep: errors are usually at the end."""
    kept = output if len(output) <= MAX_OUTPUT_LENGTH else "…" + output[1 - MAX_OUTPUT_LENGTH :]
    return CheckResult(outcome, kept, at)


def evidence_call(tool: str, summary: str, call_id: str, changed: str = "") -> EvidenceCall:
    return EvidenceCall(tool, excerpt(summary, MAX_SUMMARY_LENGTH), call_id, excerpt(changed, MAX_SUMMARY_LENGTH))
