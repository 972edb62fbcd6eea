"""Anything in any order: random calls, answers, cancellations and crashes, and what must hold all the same.

A script is made by hypothesis and played on a scheduler with a real store. A crash drops the scheduler
without a word; another one finds what it left, as another process would.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.contract.toolcalls import ANN, Desk, approval, is_schedulers, run, soon, steps, until, yes
from tests.unit.test_call_order import conflict

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, PunchlistError
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.lifecycle import NEW
from punchlist.storage.store import Store
from punchlist.toolcalls import repository
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.batch import CallBatch
from punchlist.toolcalls.lifecycle import ENDED, TOOL_CALL, CallAction, CallStatus
from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import Effect, Resources, ToolContext, ToolFailure
from punchlist.tools.function_tool import FunctionTool

LIMIT = 2


class Wanted(NamedTuple):
    """A call of a script. `after` counts back over the calls there are; `variant` makes some identical."""

    tool: str
    kind: str
    variant: int
    after: list[int]
    priority: int
    reads: list[str]
    writes: list[str]


KEYS = st.lists(st.sampled_from(["k1", "k2"]), max_size=2, unique=True)


def wanted(dependencies: int) -> st.SearchStrategy[Wanted]:
    return st.builds(
        Wanted,
        st.sampled_from(["read", "read", "write", "unknown"]),
        st.sampled_from(["quick", "hold", "fail", "crash"]),
        st.integers(0, 30),
        st.lists(st.integers(0, 5), max_size=dependencies),
        st.integers(-1, 1),
        KEYS,
        KEYS,
    )


def scripts(dependencies: int, length: int) -> st.SearchStrategy[list[tuple[str, Any]]]:
    index = st.integers(0, 9)
    step = st.one_of(
        st.tuples(st.just("schedule"), st.lists(wanted(dependencies), min_size=1, max_size=4)),
        st.tuples(st.just("open"), index),
        st.tuples(st.just("answer"), st.tuples(index, st.sampled_from(["yes", "always", "no"]))),
        st.tuples(st.just("answer_elsewhere"), st.tuples(index, st.sampled_from(["yes", "always", "no"]))),
        st.tuples(st.just("cancel"), index),
        st.tuples(st.just("signal"), index),
        st.tuples(st.just("cancel_all"), st.none()),
        st.tuples(st.just("settle"), st.none()),
        st.tuples(st.just("breathe"), st.integers(1, 4)),
        st.tuples(st.just("crash"), st.none()),
    )
    return st.lists(step, min_size=1, max_size=length)


OUTCOMES = {
    "yes": ApprovalOutcome.PROCEED_ONCE,
    "always": ApprovalOutcome.PROCEED_ALWAYS_TOOL,
    "no": ApprovalOutcome.CANCEL,
}


class World:
    """What the tools do, seen from outside."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.inside: dict[str, Resources] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.wrong: list[str] = []
        self.before: dict[str, list[str]] = {}
        """The earlier calls of the same batch that must have ended, by call."""
        self.is_open: Callable[[str], bool] = lambda _: False

    def tools(self) -> list[FunctionTool]:
        return [
            FunctionTool(self.read, effect=Effect.READ, resources=_keys),
            FunctionTool(self.write, effect=Effect.EXECUTE, resources=_keys),
        ]

    async def read(self, kind: str, variant: int, reads: list[str], writes: list[str], running: ToolContext) -> str:
        return await self._perform(kind, running.call_id, _keys(kind, variant, reads, writes))

    async def write(self, kind: str, variant: int, reads: list[str], writes: list[str], running: ToolContext) -> str:
        return await self._perform(kind, running.call_id, _keys(kind, variant, reads, writes))

    async def _perform(self, kind: str, id: str, mine: Resources) -> str:
        self.ran[id] += 1
        if len(self.inside) >= LIMIT:
            self.wrong.append(f"{id} began beside {sorted(self.inside)}")
        for other, keys in self.inside.items():
            if mine.writes & (keys.reads | keys.writes) or keys.writes & mine.reads:
                self.wrong.append(f"{id} began while {other} had its key")
        open_before = [other for other in self.before.get(id, ()) if self.is_open(other)]
        if open_before:
            self.wrong.append(f"{id} began before {open_before} had ended")
        self.inside[id] = mine
        try:
            if kind == "hold":
                await self.gates.setdefault(id, asyncio.Event()).wait()
            await asyncio.sleep(0)
        finally:
            del self.inside[id]
        if kind == "fail":
            raise ToolFailure("no luck")
        if kind == "crash":
            raise ZeroDivisionError
        return kind


def _keys(kind: str, variant: int, reads: list[str], writes: list[str]) -> Resources:
    return Resources(frozenset(reads), frozenset(writes))


def _conflict(one: Wanted, other: Wanted) -> bool:
    effects = {"read": Effect.READ, "write": Effect.EXECUTE}
    first, second = (
        (effects[call.tool], Resources(frozenset(call.reads), frozenset(call.writes))) for call in (one, other)
    )
    return conflict(first, second)


class Play:
    """One script on one store, in a session of its own."""

    lives = count(1)
    sessions = count(1)

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.patch = patch
        self.session = f"s{next(self.sessions)}"
        self.world = World()
        self.ids: list[str] = []
        self.batches: list[CallBatch] = []
        self.signals: list[CancelSignal] = []
        self.begin()

    def begin(self) -> None:
        """Another life of the program."""
        self.owner = f"here:{next(self.lives)}:1"
        self.patch.setattr("punchlist.toolcalls.service.is_running", lambda owner: owner == self.owner)
        scope = Scope(self.session, Actor(Role.SUPERVISOR, "test"))
        self.desk = Desk(self.store, Mode.DEFAULT, tools=self.world.tools(), concurrent=LIMIT, scope=scope)
        assert self.desk.ledger
        self.desk.ledger._owner = self.owner
        self.world.is_open = self.desk.scheduler._calls.open.__contains__

    # --- steps --------------------------------------------------------------------------------------------

    async def schedule(self, calls: Sequence[Wanted]) -> None:
        new = [f"{self.session}-{len(self.ids) + number:03}" for number in range(len(calls))]
        known = self.ids + new
        requests = []
        for id, one in zip(new, calls, strict=True):
            after = tuple(known[-1 - back] for back in one.after if back < len(known))
            arguments = {"kind": one.kind, "variant": one.variant, "reads": one.reads, "writes": one.writes}
            requests.append(ToolCallRequest(one.tool, arguments, id, after, one.priority))
        self.ids += new
        if not any(one.after for one in calls):
            known_tools = [(id, one) for id, one in zip(new, calls, strict=True) if one.tool != "unknown"]
            for number, (id, one) in enumerate(known_tools):
                self.world.before[id] = [other for other, two in known_tools[:number] if _conflict(two, one)]
        self.signals.append(CancelSignal())
        self.batches.append(self.desk.scheduler.schedule(requests, self.signals[-1]))

    async def open(self, index: int) -> None:
        held = sorted(self.world.inside)
        if held:
            self.world.gates.setdefault(held[index % len(held)], asyncio.Event()).set()

    def _waiting(self) -> list[str]:
        return [
            call.request.call_id for call in self.desk.scheduler.calls if call.status is CallStatus.AWAITING_APPROVAL
        ]

    async def answer(self, what: tuple[int, str]) -> None:
        if waiting := self._waiting():
            with suppress(Conflict):
                await soon(
                    self.desk.scheduler.handle_confirmation_response(
                        waiting[what[0] % len(waiting)], None, OUTCOMES[what[1]], payload={"by": ANN}
                    )
                )

    async def answer_elsewhere(self, what: tuple[int, str]) -> None:
        await self.settle()
        if waiting := self._waiting():
            id = waiting[what[0] % len(waiting)]
            with suppress(Conflict):
                Approvals(self.store).answer(id, yes(OUTCOMES[what[1]]))
            await until(lambda: id not in self._waiting(), 5)

    async def cancel(self, index: int) -> None:
        if calls := self.desk.scheduler.calls:
            self.desk.scheduler.cancel(calls[index % len(calls)].request.call_id)

    async def signal(self, index: int) -> None:
        if self.signals:
            self.signals[index % len(self.signals)].set("signalled")

    async def cancel_all(self, _: None = None) -> None:
        self.desk.scheduler.cancel_all()

    async def settle(self, _: None = None) -> None:
        assert self.desk.recorder
        await soon(self.desk.recorder.flushed(), 5)

    async def breathe(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    async def crash(self, _: None = None) -> None:
        """Nothing more is written, everything that ran is gone."""
        assert self.desk.recorder
        for part, does in (
            (self.desk.recorder, "record"),
            # A commit that has begun is made; none begins.
            (self.desk.recorder, "_start_flush"),
            (self.desk.scheduler, "_finish"),
            (self.desk.scheduler, "_proceed"),
            (self.desk.scheduler, "_start"),
        ):
            setattr(part, does, _nothing)
        flush = self.desk.recorder._flush
        if flush is not None:
            with suppress(PunchlistError):
                await flush
        tasks = [task for task in asyncio.all_tasks() if is_schedulers(task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.desk.recorder.close()
        self.signals = []
        self.begin()
        assert self.desk.ledger
        self.desk.ledger.recover()
        with self.store.read() as tx:
            left = repository.open_calls(tx, self.session)
        requests = []
        for call in left:
            assert call.status == CallStatus.AWAITING_APPROVAL
            taken = self.desk.ledger.take_over(call.id)
            assert taken is not None
            requests.append(taken.request)
        # As one batch, like a resumed turn: so they take effect in their order.
        questions = {request.call_id: approval(self.store, request.call_id).as_question for request in requests}
        if requests:
            self.batches.append(self.desk.scheduler.schedule(requests, questions=questions))

    # --- and what must hold -------------------------------------------------------------------------------

    async def play(self, script: Sequence[tuple[str, Any]]) -> None:
        for name, what in script:
            await getattr(self, name)(what)
        await self.finish()
        self.judge()

    async def finish(self) -> None:
        async with asyncio.timeout(60):
            while self.desk.scheduler.calls:
                for id in list(self.world.inside):
                    self.world.gates.setdefault(id, asyncio.Event()).set()
                await self.settle()
                await self.answer((0, "yes"))
                await self.breathe(1)
        await self.settle()
        await self.desk.close()

    def judge(self) -> None:
        assert self.world.wrong == []
        events = steps(self.store, session=self.session)
        with self.store.read() as tx:
            rows = {call.id: call for call in repository.calls_of_conversation(tx, self.session)}
        allowed: set[str] = set()
        status: dict[str, str] = {}
        may_run: set[str] = set()
        shared: set[str] = set()
        for event in events:
            id = event.subject
            match event.action:
                case "always":
                    allowed.add(id)
                    continue
                case "take_over":
                    continue
            came = status.get(id, NEW)
            assert (event.from_status or NEW) == came, f"{id}: {event}"
            assert TOOL_CALL.table[came, CallAction(event.action)] == event.to_status
            status[id] = str(event.to_status)
            if event.action == CallAction.APPROVE:
                may_run.add(id)
            if event.reason.startswith("identical to "):
                shared.add(id)
        assert status == {id: row.status for id, row in rows.items()}
        assert all(one in ENDED for one in status.values())
        executed = {event.subject for event in events if event.action == CallAction.EXECUTE}
        for id, times in self.world.ran.items():
            assert times == 1, f"{id} ran {times} times"
            assert id in executed
            if rows[id].tool == "write":
                assert id in may_run or "write" in allowed, f"{id} ran without being asked about"
        for id, row in rows.items():
            if row.status == CallStatus.SUCCESS:
                assert id in shared or self.world.ran[id] == 1, f"{id} succeeded without running"


def _nothing(*_: object) -> None:
    """What a process does that is no more."""


def play(store: Store, script: Sequence[tuple[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run(Play(store, patch).play(script))


QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LONG = settings(QUICK, max_examples=3_000, derandomize=False, phases=list(Phase))


def read(kind: str = "quick", variant: int = 0, after: Sequence[int] = (), priority: int = 0) -> Wanted:
    return Wanted("read", kind, variant, list(after), priority, [], [])


def write(kind: str = "quick", variant: int = 0, after: Sequence[int] = (), keys: str = "") -> Wanted:
    return Wanted("write", kind, variant, list(after), 0, keys.split(), keys.split())


# Found by `make soak`: a denial is stored, the process ends before the call does, and another answer comes late.
ANSWERED_BEFORE_A_CRASH = [
    [
        ("schedule", [read("quick", 9, priority=1), write(after=[0, 0]), read(after=[0, 2], priority=1), read()]),
        ("schedule", [read(after=[0, 0])]),
        ("open", 0),
        ("answer_elsewhere", (1, "no")),
        ("crash", None),
    ],
    [
        ("schedule", [read("quick", 8), write()]),
        ("schedule", [read("quick", 2, priority=1), read()]),
        ("schedule", [read(after=[0, 0])]),
        ("answer_elsewhere", (1, "no")),
        ("crash", None),
        ("answer_elsewhere", (0, "always")),
    ],
]
# A crash while a commit is about to begin.
COMMIT_BEFORE_A_CRASH = [
    ("schedule", [write("hold", 4, keys="k1 k2"), read("hold", 4, [1, 0, 1])]),
    ("cancel", 4),
    ("crash", None),
    ("answer_elsewhere", (5, "yes")),
    ("schedule", [write("hold", 4, keys="k1 k2"), read("hold", 3, [1, 0, 1])]),
    ("breathe", 3),
    ("open", 1),
    ("crash", None),
    ("breathe", 4),
]

# Two writes that wait for approval when the process ends; one answer allows both.
ALWAYS_AFTER_A_CRASH = [("schedule", [write(), write(keys="k1")]), ("crash", None), ("answer", (0, "always"))]


@pytest.mark.spec("S1", "S4", "S5", "S6", "S7")
@QUICK
@given(script=scripts(dependencies=1, length=12))
@example(script=ANSWERED_BEFORE_A_CRASH[0])
@example(script=ANSWERED_BEFORE_A_CRASH[1])
@example(script=COMMIT_BEFORE_A_CRASH)
@example(script=ALWAYS_AFTER_A_CRASH)
def test_whatever_happens_in_whatever_order(store: Store, script: list[tuple[str, Any]]) -> None:
    play(store, script)


@pytest.mark.soak
@pytest.mark.spec("S1", "S4", "S5", "S6", "S7")
@LONG
@given(script=scripts(dependencies=3, length=40))
def test_whatever_happens_for_long(store: Store, script: list[tuple[str, Any]]) -> None:
    play(store, script)
