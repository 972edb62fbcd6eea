"""The timeline of a run: every call to a model or a tool, with its start, duration, tokens and error.

A run can have tens of thousands of calls. Their times are read at once, without texts; the texts of one page follow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.runs import repository as run_repository
from punchlist.storage.store import Store, Transaction
from punchlist.views import activity_repository
from punchlist.views.activity_repository import CallTimes
from punchlist.views.call_text import call_summary

MAX_SIZE: Final = 500
_SUMMARY: Final = 300


class TimelineStep(NamedTuple):
    """One call."""

    number: int
    """Counted from 1 in the order of their starts."""
    id: str
    kind: str
    name: str
    agent: str
    offset: float
    """Seconds from the start of the run."""
    seconds: float
    failed: bool
    at: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    summary: str = ""
    """What a tool call is about, or why the call failed."""
    given: str = ""
    """The beginning of the arguments of a tool call."""
    returned: str = ""
    """The beginning of the result of a tool call."""


@dataclass(frozen=True, slots=True)
class RunTimeline:
    started_at: str | None
    seconds: float
    """From the first call to the end of the last one."""
    total: int
    """All calls of the run."""
    failures: int
    models: int
    shown: int
    """The calls that match the filter."""
    page: int
    pages: int
    steps: Sequence[TimelineStep]
    times: Sequence[tuple[float, bool]]
    """Start and failure of every call."""

    def bins(self, count: int) -> list[tuple[int, int]]:
        """Calls and failed calls in intervals of equal length."""
        if not self.times:
            return []
        found = [[0, 0] for _ in range(count)]
        whole = self.seconds or 1
        for offset, failed in self.times:
            place = found[min(int(offset / whole * count), count - 1)]
            place[0] += 1
            place[1] += failed
        return [(calls, failures) for calls, failures in found]


def read_timeline(
    store: Store, run_id: str, *, failed_only: bool = False, page: int = 1, size: int = 100
) -> RunTimeline:
    with store.read() as tx:
        run = run_repository.find(tx, run_id)
        if run is None:
            raise NotFound(f"There is no run {excerpt(run_id)!r}.")
        turns = [
            turn
            for id in mission_repository.turn_ids_of_run(tx, run_id)
            if (found := conversation_repository.find_turn(tx, id))
            for turn in conversation_repository.with_child_turns(tx, found)
        ]
        return _timeline(tx, {turn.id: turn.agent_id for turn in turns}, failed_only, page, min(size, MAX_SIZE))


def read_turn_timeline(
    store: Store, turn_id: str, *, failed_only: bool = False, page: int = 1, size: int = 100
) -> RunTimeline:
    """The timeline of one turn and of its workers' turns."""
    with store.read() as tx:
        found = conversation_repository.find_turn(tx, turn_id)
        turns = conversation_repository.with_child_turns(tx, found) if found else []
        return _timeline(tx, {turn.id: turn.agent_id for turn in turns}, failed_only, page, min(size, MAX_SIZE))


def _timeline(tx: Transaction, agents: dict[str, str], failed_only: bool, page: int, size: int) -> RunTimeline:
    calls: list[tuple[str, CallTimes]] = []
    for turn_id in agents:
        calls += [(turn_id, row) for row in activity_repository.model_call_times(tx, turn_id)]
        calls += [(turn_id, row) for row in activity_repository.tool_call_times(tx, turn_id)]
    calls.sort(key=lambda each: (each[1].started_at, each[1].id))
    if not calls:
        return RunTimeline(None, 0.0, 0, 0, 0, 0, 1, 1, [], [])
    first = calls[0][1].started_at
    start = parse_timestamp(first).timestamp()
    offsets = [parse_timestamp(call.started_at).timestamp() - start for _, call in calls]
    end = max(call.ended_at or call.started_at for _, call in calls)
    numbered = list(zip(range(1, len(calls) + 1), calls, offsets, strict=True))
    wanted = [each for each in numbered if each[1][1].failed] if failed_only else numbered
    pages = max(1, -(-len(wanted) // size))
    page = min(page, pages)
    steps = [
        _step(tx, number, agents[turn_id], call, offset)
        for number, (turn_id, call), offset in wanted[(page - 1) * size : page * size]
    ]
    return RunTimeline(
        first,
        parse_timestamp(end).timestamp() - start,
        len(calls),
        sum(1 for _, call in calls if call.failed),
        sum(1 for _, call in calls if call.kind == "model"),
        len(wanted),
        page,
        pages,
        steps,
        [(offset, bool(call.failed)) for (_, call), offset in zip(calls, offsets, strict=True)],
    )


def _step(tx: Transaction, number: int, agent: str, call: CallTimes, offset: float) -> TimelineStep:
    started = parse_timestamp(call.started_at).timestamp()
    seconds = parse_timestamp(call.ended_at).timestamp() - started if call.ended_at else 0.0
    given, returned = activity_repository.call_texts[call.kind](tx, call.id) or ("", "")
    step = TimelineStep(
        number, call.id, call.kind, call.name, agent, offset, seconds, bool(call.failed), call.started_at
    )
    if call.failed:
        step = step._replace(summary=_line(returned))
    if call.kind == "model":
        return step if call.failed else step._replace(**_usage(returned))
    return step._replace(summary=step.summary or _line(_summary(given)), given=given, returned=returned)


def _summary(arguments: str) -> str:
    try:
        return call_summary(json.loads(arguments))
    except (ValueError, AttributeError, RecursionError):
        # Long arguments are cut.
        return arguments


def _line(text: str) -> str:
    return " ".join(text.split())[:_SUMMARY]


def _usage(output: str) -> dict[str, Any]:
    """The tokens and the cost of a model request; replies stored by older versions have no cost."""
    try:
        found = json.loads(output)
        given, written = found["tokens"]
        return {"input_tokens": int(given), "output_tokens": int(written), "cost": float(found.get("cost") or 0.0)}
    except (ValueError, KeyError, TypeError):
        return {}
