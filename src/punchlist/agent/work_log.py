"""The calls of a turn in order: what was done for which item, and whether anything new was done.

It is rebuilt from the stored messages when a turn is resumed, so there is nothing of its own to store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from punchlist.agent.definitions import CHECKLIST_TOOL, DELEGATE, PLAN_TOOLS
from punchlist.checklist.lifecycle import ChecklistStatus, parse_status
from punchlist.kernel.events import canonical_json
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall
from punchlist.verification.model import EvidenceCall, evidence_call

LIST_TOOLS: Final = frozenset({*PLAN_TOOLS, CHECKLIST_TOOL})
"""Calls of these are not work: they only keep the list."""
NO_WORK: Final = "(It made no successful tool call.)"
"""The end of a worker's report if it did nothing: then delegating was no work either."""
_CHANGES: Final = {"write_file": "path", "edit_file": "path"}
"""Tools that change what one of their arguments names."""
_SUMMARY: Final = {"run_command": "command", "read_file": "path", "delegate": "mission", **_CHANGES}
"""Tools that are best described by one of their arguments."""

_DECODER: Final = json.JSONDecoder()


class _Step(NamedTuple):
    reply: int
    """Claims of one reply share what was done before it."""
    work: EvidenceCall | None = None
    starts: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()


class WorkLog:
    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._reply = 0
        self._made: set[tuple[str, str]] = set()
        self._checklist: Mapping[str, ChecklistStatus] = {}

    @property
    def amount(self) -> int:
        """The number of different calls that have succeeded. It grows with new work only (C5)."""
        return len(self._made)

    @property
    def all_work(self) -> tuple[EvidenceCall, ...]:
        """Every successful call in order, without those of list tools."""
        return tuple(step.work for step in self._steps if step.work is not None)

    def next_reply(self) -> None:
        self._reply += 1

    def record(self, calls: Iterable[RequestedCall], results: Iterable[CallReturn]) -> None:
        """Record calls of the current reply that have their results."""
        by_id = {result.call_id: result for result in results}
        for call in calls:
            result = by_id.get(call.id)
            if result is None or result.failed:
                continue
            if call.tool in LIST_TOOLS:
                self._steps.append(self._list_step(call, result))
            elif not (call.tool == DELEGATE and result.text.endswith(NO_WORK)):
                self._made.add((call.tool, _key(call.arguments)))
                self._steps.append(_Step(self._reply, describe_call(call)))

    def restore(self, messages: Sequence[Message]) -> None:
        """Record the calls of a turn that is resumed."""
        results = [message for message in messages if isinstance(message, CallReturn)]
        for message in messages:
            if isinstance(message, Reply):
                self.next_reply()
                self.record(message.calls, results)

    def evidence(self, item: str) -> tuple[EvidenceCall, ...]:
        """The successful calls since the item was started, or since an item was ended in an earlier reply.

        `item` is the id of a plan todo, or the content of a checklist item.
        """
        started = any(item in step.starts for step in self._steps)
        found: list[EvidenceCall] = []
        for step in reversed(self._steps):
            if item in step.starts or (not started and step.ends and step.reply < self._reply):
                break
            if step.work is not None:
                found.append(step.work)
        return tuple(reversed(found))

    def _list_step(self, call: RequestedCall, result: CallReturn) -> _Step:
        if call.tool == CHECKLIST_TOOL:
            return self._checklist_step(call.arguments)
        item = result_fields(result.text).get("id")
        if not isinstance(item, str) or call.tool not in ("start_todo", "complete_todo"):
            return _Step(self._reply)
        named = frozenset({item})
        return _Step(self._reply, starts=named) if call.tool == "start_todo" else _Step(self._reply, ends=named)

    def _checklist_step(self, arguments: Mapping[str, Any] | str) -> _Step:
        before, now = self._checklist, _statuses(arguments)
        self._checklist = now
        changed = {content: status for content, status in now.items() if before.get(content) is not status}
        return _Step(
            self._reply,
            starts=frozenset(c for c, status in changed.items() if status is ChecklistStatus.IN_PROGRESS),
            ends=frozenset(c for c, status in changed.items() if status is ChecklistStatus.COMPLETED),
        )


def describe_call(call: RequestedCall) -> EvidenceCall:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    chosen = arguments.get(_SUMMARY.get(call.tool, ""))
    summary = chosen if isinstance(chosen, str) else _key(call.arguments)
    changed = arguments.get(_CHANGES.get(call.tool, ""), "")
    return evidence_call(call.tool, " ".join(summary.split()), call.id, str(changed))


def _key(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return canonical_json(dict(arguments))
    except (TypeError, ValueError):
        return repr(arguments)


def result_fields(text: str) -> Mapping[str, Any]:
    """The fields in the result of a plan tool; notes may follow them."""
    try:
        found, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _statuses(arguments: Mapping[str, Any] | str) -> dict[str, ChecklistStatus]:
    todos = arguments.get("todos") if isinstance(arguments, Mapping) else None
    found: dict[str, ChecklistStatus] = {}
    for item in todos if isinstance(todos, list) else ():
        if isinstance(item, dict) and isinstance(item.get("content"), str) and isinstance(item.get("status"), str):
            status = parse_status(item["status"])
            if status is not None:
                found[item["content"].strip()] = status
    return found
