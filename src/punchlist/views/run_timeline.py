"""The timeline of a run: every call to a model or a tool, with its start, duration, tokens and error.

A run can have tens of thousands of calls. The database counts them and selects a page of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.errors import NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.runs import repository as run_repository
from punchlist.storage.store import Store, Transaction
from punchlist.views import timeline_repository
from punchlist.views.call_text import call_summary
from punchlist.views.timeline_repository import CallTimes

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
    wait_offset: float = 0.0
    wait_seconds: float = 0.0
    """How long the call waited for a person's approval before it ran; until now if it still waits."""
    waits: bool = False


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
    more: bool
    """Whether calls follow those of this page."""
    bins: Sequence[tuple[int, int]] = ()
    """Calls and failed calls in intervals of equal length."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": str(self.steps[-1].number)} if self.more else {}
        fields = camel_json(self, "started_at", "seconds", "total", "failures", "models", "shown")
        return {**fields, "items": [camel_json(step) for step in self.steps], **more}


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Which calls of a timeline are read: a page by its number, or those after a call."""

    failed_only: bool = False
    page: int = 1
    size: int = 100
    after: int = 0
    """The number of the last call of the page before."""
    bins: int = 0
    """Into how many intervals the time is divided."""


def read_timeline(store: Store, run_id: str, place: TimelinePage = TimelinePage()) -> RunTimeline:
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
        return _timeline(tx, {turn.id: turn.agent_id for turn in turns}, place)


def read_turn_timeline(store: Store, turn_id: str, place: TimelinePage = TimelinePage()) -> RunTimeline:
    """The timeline of one turn and of its workers' turns."""
    with store.read() as tx:
        found = conversation_repository.find_turn(tx, turn_id)
        if found is None:
            raise NotFound(f"There is no turn {excerpt(turn_id)!r}.")
        turns = conversation_repository.with_child_turns(tx, found)
        return _timeline(tx, {turn.id: turn.agent_id for turn in turns}, place)


def _timeline(tx: Transaction, agents: dict[str, str], place: TimelinePage) -> RunTimeline:
    turn_ids = json.dumps(list(agents))
    found = timeline_repository.figures(tx, turn_ids=turn_ids, now=tx.now())
    assert found is not None
    if found.first is None or found.last is None:
        return RunTimeline(None, 0.0, 0, 0, 0, 0, 1, 1, [], False)
    clock = _CallClock(parse_timestamp(found.first).timestamp(), tx.now())
    seconds = clock.offset(found.last)
    shown = found.failures if place.failed_only else found.calls
    size = min(place.size, MAX_SIZE)
    pages = max(1, -(-shown // size))
    number = min(place.page, pages)
    skip, most = (number - 1) * size, size + 1
    if place.failed_only:
        calls = timeline_repository.failed_page(tx, turn_ids=turn_ids, after=place.after, most=most, skip=skip)
    else:
        calls = timeline_repository.page(tx, turn_ids=turn_ids, most=most, skip=max(skip, place.after))
    return RunTimeline(
        found.first,
        seconds,
        found.calls,
        found.failures,
        found.models,
        shown,
        number,
        pages,
        [_step(tx, agents[call.turn_id], call, clock) for call in calls[:size]],
        len(calls) > size,
        _bins(tx, turn_ids, found.first, seconds, place.bins) if place.bins else (),
    )


def _bins(tx: Transaction, turn_ids: str, first: str, seconds: float, count: int) -> list[tuple[int, int]]:
    found = [(0, 0)] * count
    for place, calls, failures in timeline_repository.bins(
        tx, turn_ids=turn_ids, first=first, seconds=seconds or 1.0, bins=count
    ):
        found[place] = calls, failures
    return found


class _CallClock(NamedTuple):
    """Moments of calls as seconds from the start of the run."""

    start: float
    now: str

    def offset(self, at: str) -> float:
        return parse_timestamp(at).timestamp() - self.start

    def wait_of(self, call: CallTimes) -> tuple[float, float]:
        """Start and duration of the wait for an approval."""
        if call.asked_at is None:
            return 0.0, 0.0
        until = self.now if call.waits else call.answered_at or call.ended_at or call.started_at
        begin = self.offset(call.asked_at)
        return begin, max(self.offset(until) - begin, 0.0)


def _step(tx: Transaction, agent: str, call: CallTimes, clock: _CallClock) -> TimelineStep:
    wait_offset, wait_seconds = clock.wait_of(call)
    # A call that was refused has not started.
    offset = max(clock.offset(call.started_at), wait_offset + wait_seconds)
    seconds = max(clock.offset(call.ended_at) - offset, 0.0) if call.ended_at else 0.0
    given, returned = timeline_repository.texts[call.kind](tx, call.id) or ("", "")
    step = TimelineStep(
        call.number, call.id, call.kind, call.name, agent, offset, seconds, bool(call.failed), call.started_at
    )
    if call.failed:
        step = step._replace(summary=_line(returned))
    if call.kind == "model":
        return step if call.failed else step._replace(**_usage(returned))
    step = step._replace(wait_offset=wait_offset, wait_seconds=wait_seconds, waits=bool(call.waits))
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
