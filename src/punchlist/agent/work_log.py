"""The calls of a turn in order: what was done for which item, and whether anything new was done.

A call counts for an item if it came after the item was added and, if the item was never started, after an item was
ended in an earlier reply. Each completed item needs a call of its own: one call proves one item.

The log is rebuilt from the stored messages when a turn is resumed, so there is nothing of its own to store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from punchlist.agent.definitions import CHECKLIST_TOOL, DELEGATE, PLAN_TOOLS
from punchlist.checklist.identity import match_items, replace_items
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import ChecklistItem
from punchlist.checklist.validation import parse_todos
from punchlist.errors import InvalidInput
from punchlist.kernel.events import canonical_json
from punchlist.kernel.ids import new_id
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall
from punchlist.plan.lifecycle import PlanStatus
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
    key: tuple[str, str] = ("", "")
    """Identical calls have the same key."""
    creates: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()


class WorkLog:
    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._reply = 0
        self._made: set[tuple[str, str]] = set()
        self._checklist: Sequence[ChecklistItem] | None = None
        """As the turn has written it; None as long as it is unknown."""
        self._spent: dict[int, int] = {}
        """The calls that prove a completed item: the number of the step, and the reply that completed the item."""

    def begin(self, checklist: Sequence[ChecklistItem]) -> None:
        """The turn begins with this checklist."""
        self._checklist = checklist

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
                key = (call.tool, _key(call.arguments))
                self._made.add(key)
                self._steps.append(_Step(self._reply, describe_call(call), key))

    def restore(self, messages: Sequence[Message]) -> None:
        """Record the calls of a turn that is resumed."""
        results = [message for message in messages if isinstance(message, CallReturn)]
        for message in messages:
            if isinstance(message, Reply):
                self.next_reply()
                self.record(message.calls, results)

    def evidence(self, items: Sequence[str | None]) -> list[tuple[EvidenceCall, ...]]:
        """The calls for each of the items that are about to be completed; none for an item without one of its own.

        An item is the id of a plan todo, or the content that an item of the checklist has so far; None stands for one
        that is only being added.
        """
        own = self._own_calls(items)
        return [
            ()
            if item is None or call is None
            else tuple(step.work for step in self._steps[self._begin(self._id(item)) :] if step.work is not None)
            for item, call in zip(items, own, strict=True)
        ]

    def is_shared(self, item: str) -> bool:
        """Whether there are calls for the item, although they prove others."""
        return any(step.work is not None for step in self._steps[self._begin(self._id(item)) :])

    def _own_calls(self, items: Sequence[str | None]) -> list[int | None]:
        """For each item the earliest call that proves no other one, by its number. Pure."""
        spent = dict(self._spent)
        found: list[int | None] = []
        for item in items:
            call = None if item is None else self._own_call(self._begin(self._id(item)), spent)
            if call is not None:
                spent[call] = self._reply
            found.append(call)
        return found

    def _own_call(self, begin: int, spent: Mapping[int, int]) -> int | None:
        # The same call twice in one reply is no more work than once.
        keys = {self._steps[number].key for number, reply in spent.items() if reply == self._reply}
        for number in range(begin, len(self._steps)):
            step = self._steps[number]
            if step.work is not None and number not in spent and step.key not in keys:
                return number
        return None

    def _begin(self, item: str) -> int:
        """The number of the first step that can be work on the item."""
        started = any(item in step.starts for step in self._steps)
        for number in range(len(self._steps), 0, -1):
            step = self._steps[number - 1]
            ended = step.ends and step.reply < self._reply and (not started or item in step.ends)
            if item in step.starts or item in step.creates or ended:
                return number
        return 0

    def _id(self, item: str) -> str:
        """The id by which the steps name the item."""
        return next((each.id for each in self._checklist or () if each.content == item), item)

    def _list_step(self, call: RequestedCall, result: CallReturn) -> _Step:
        if call.tool == CHECKLIST_TOOL:
            return self._checklist_step(call.arguments)
        fields = result_fields(result.text)
        if call.tool == "create_todo":
            return _Step(self._reply, creates=frozenset(_created(fields)))
        item = fields.get("id")
        if not isinstance(item, str) or call.tool not in ("start_todo", "complete_todo"):
            return _Step(self._reply)
        named = frozenset({item})
        if call.tool == "start_todo":
            return _Step(self._reply, starts=named)
        if fields.get("status") == PlanStatus.COMPLETED:
            self._spend([item])
        return _Step(self._reply, ends=named)

    def _checklist_step(self, arguments: Mapping[str, Any] | str) -> _Step:
        try:
            sent = parse_todos(arguments.get("todos") if isinstance(arguments, Mapping) else None)
            before = self._checklist or ()
            after = replace_items(sent, before, new_id)
        except InvalidInput:
            # A person has changed the list meanwhile, in a way that the log does not know.
            self._checklist = None
            return _Step(self._reply)
        is_known, self._checklist = self._checklist is not None, after
        steps = [(old, new) for old, new in match_items(before, after) if new is not None]
        changed = [(old, new) for old, new in steps if old is None or old.status is not new.status]
        created = {new.id for old, new in changed if old is None and is_known}
        started = {new.id for _, new in changed if new.status is ChecklistStatus.IN_PROGRESS}
        completed = [new.id for _, new in changed if new.status is ChecklistStatus.COMPLETED]
        self._spend([id for id in completed if id not in created])
        return _Step(self._reply, creates=frozenset(created), starts=frozenset(started), ends=frozenset(completed))

    def _spend(self, items: Sequence[str]) -> None:
        """The items are completed now."""
        self._spent |= {call: self._reply for call in self._own_calls(items) if call is not None}


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


def _created(fields: Mapping[str, Any]) -> Iterator[str]:
    created = fields.get("created")
    for item in created if isinstance(created, list) else ():
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            yield item["id"]
