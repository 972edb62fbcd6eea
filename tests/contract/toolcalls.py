"""A scheduler at work for the tests: on a store or without one, with tools that tell when they run.

Run as a program it is another process: one that has calls in hand and can be killed, or one that answers.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.conftest import ROOT
from tests.parent_death import end_with_parent

from punchlist.conversations.model import Scope
from punchlist.kernel.clock import Clock, system_clock
from punchlist.kernel.events import Actor, Event, Role
from punchlist.kernel.secrets import Redactor
from punchlist.storage import event_log
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.toolcalls import repository
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalExpiry, ApprovalOutcome
from punchlist.toolcalls.batch_writer import BatchWriter
from punchlist.toolcalls.execution import ExecutionEnvironment
from punchlist.toolcalls.listeners import AskPerson, Listeners
from punchlist.toolcalls.model import CompletedToolCall, ToolCall, ToolCallRequest, Transition
from punchlist.toolcalls.policy import Mode, Policy, Rule
from punchlist.toolcalls.repeat_detection import RepeatDetector
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, call_stream
from punchlist.toolcalls.tool import AgentTool, Effect, Resources, ToolContext, ToolFailure
from punchlist.toolcalls.validation import CallValidator
from punchlist.tools.function_tool import FunctionTool

ANN = Actor(Role.PERSON, "ann")
BOB = Actor(Role.PERSON, "bob")
AGENT = Scope("s", Actor(Role.SUPERVISOR, "test"))

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end, within bounds; and see that no task of the scheduler died without anybody noticing."""
    tasks: list[asyncio.Task[Any]] = []

    def keep(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
        tasks.append(asyncio.Task(coroutine, loop=loop, **more))
        return tasks[-1]

    with asyncio.Runner() as runner:
        runner.get_loop().set_task_factory(keep)  # type: ignore[arg-type]
        try:
            result = runner.run(asyncio.wait_for(work, 60))
        finally:
            # Looked at here, or each is reported when it is collected, in the middle of another test.
            died = [(task, task.exception()) for task in tasks if task.done() and not task.cancelled()]
    assert [(task, error) for task, error in died if error and is_schedulers(task)] == []
    return result


def is_schedulers(task: asyncio.Task[Any]) -> bool:
    name = getattr(task.get_coro(), "__qualname__", "")
    return name.startswith(("CoreToolScheduler._", "ApprovalWatcher._", "BatchWriter._"))


async def soon(work: Awaitable[T], seconds: float = 20) -> T:
    """What must come of itself."""
    return await asyncio.wait_for(work, seconds)


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """For what nobody tells: look again and again, within bounds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def request(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    id: str = "a",
    *,
    after: tuple[str, ...] = (),
    priority: int = 0,
    reads: str = "",
    writes: str = "",
    timeout: float | None = None,
) -> ToolCallRequest:
    """`reads` and `writes` are keys with blanks between them."""
    keys = Resources(frozenset(reads.split()), frozenset(writes.split()))
    return ToolCallRequest(name, arguments or {}, id, after, priority, keys, timeout)


class Workshop:
    """Tools, and a record of what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        """What was run, in the order in which it began."""
        self.inside: set[str] = set()
        """What runs now."""
        self.most_inside = 0
        self._gates: dict[str, asyncio.Event] = {}
        self._began: dict[str, asyncio.Event] = {}

    def began(self, name: str) -> asyncio.Event:
        return self._began.setdefault(name, asyncio.Event())

    def gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def enter(self, name: str) -> None:
        self.ran.append(name)
        self.inside.add(name)
        self.most_inside = max(self.most_inside, len(self.inside))
        self.began(name).set()

    async def look(self, at: str = "it") -> str:
        self.ran.append(at)
        return f"saw {at}"

    async def edit(self, path: str) -> str:
        self.ran.append(path)
        return f"changed {path}"

    async def work(self, on: str = "it", times: int = 1) -> dict[str, Any]:
        self.ran.append(on)
        return {"on": on, "times": times}

    async def shell(self, line: str) -> str:
        self.ran.append(line)
        return line

    async def hold(self, name: str) -> str:
        """Goes on until somebody opens the gate."""
        self.enter(name)
        try:
            await self.gate(name).wait()
        finally:
            self.inside.discard(name)
        return f"held {name}"

    async def ignore(self, name: str) -> str:
        """Does not listen when told to end."""
        self.enter(name)
        while not self.gate(name).is_set():
            with suppress(asyncio.CancelledError):
                await self.gate(name).wait()
        self.inside.discard(name)
        return "never mind"

    async def fail(self, why: str = "no luck") -> str:
        self.ran.append(why)
        raise ToolFailure(why)

    async def crash(self, why: str = "boom") -> str:
        raise ZeroDivisionError(why)

    async def speak(self, lines: list[str], running: ToolContext) -> str:
        for line in lines:
            running.output(line)
        return "spoken"

    def speak_elsewhere(self, lines: list[str], running: ToolContext) -> str:
        """Runs in a thread, since it is not asynchronous."""
        for line in lines:
            running.output(line)
        return threading.current_thread().name

    async def repeat(self, text: str, times: int) -> str:
        return text * times

    def tools(self) -> dict[str, AgentTool]:
        reading: list[Callable[..., Any]] = [self.look, self.hold, self.ignore, self.fail, self.crash]
        reading += [self.speak, self.speak_elsewhere, self.repeat]
        made = [FunctionTool(function, effect=Effect.READ) for function in reading]
        made += [
            FunctionTool(self.edit, effect=Effect.EDIT, resources=_file),
            FunctionTool(self.work),
            FunctionTool(self.shell, command=lambda line: line),
        ]
        return {one.name: one for one in made}


def _file(path: str) -> Resources:
    return Resources(writes=frozenset({f"file:{path}"}))


class ServerTool(FunctionTool):
    """A tool of an MCP server, which may come to say something else of itself."""

    def __init__(
        self, name: str = "srv_do", server: str = "srv", effect: Effect = Effect.READ, fingerprint: str = "1"
    ) -> None:
        super().__init__(self.serve, name=name, effect=effect)
        self.server = server
        self.fingerprint = fingerprint
        self.runs = 0

    async def serve(self, it: str = "") -> str:
        self.runs += 1
        return f"served {it}"


@dataclass
class Heard:
    """What listeners were told."""

    transitions: list[Transition] = field(default_factory=list)
    updates: list[ToolCall] = field(default_factory=list)
    completed: list[list[CompletedToolCall]] = field(default_factory=list)
    output: list[tuple[str, str]] = field(default_factory=list)
    all_over: asyncio.Event = field(default_factory=asyncio.Event)

    def listeners(self) -> Listeners:
        def complete(calls: Sequence[CompletedToolCall]) -> None:
            self.completed.append(list(calls))
            self.all_over.set()

        return Listeners(
            on_tool_calls_update=self.updates.extend,
            on_all_tool_calls_complete=complete,
            on_transition=self.transitions.append,
            on_output=lambda call_id, text: self.output.append((call_id, text)),
        )

    def way(self, call_id: str) -> list[str]:
        """The states that a call went through."""
        return [one.call.status.value for one in self.transitions if one.call.request.call_id == call_id]


class Desk:
    """A scheduler with all that goes with it. Use with `async with`."""

    def __init__(
        self,
        store: Store | None = None,
        mode: Mode = Mode.YOLO,
        *,
        rules: Sequence[Rule] = (),
        tools: Sequence[AgentTool] = (),
        ask: AskPerson | None = None,
        expiry: ApprovalExpiry = ApprovalExpiry(),  # noqa: B008 - a value
        concurrent: int = 16,
        ordered: bool = True,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
        turn_id: str | None = None,
        folder: Path | None = None,
        listeners: Listeners | None = None,
        time_limit: float = 120,
        scope: Scope = AGENT,
    ) -> None:
        self.shop = Workshop()
        self.heard = Heard()
        self.store = store
        box = {**self.shop.tools(), **{one.name: one for one in tools}}
        self.ledger = ToolCallService(store, scope, "/w", turn_id, redactor=redactor) if store else None
        self.recorder = BatchWriter(self.ledger, store) if self.ledger and store else None
        self.policy = Policy(mode, rules, self.ledger.session_rules() if self.ledger else ())
        known = self.ledger.fingerprints(list(box)) if self.ledger else {}
        repeats = RepeatDetector(self.ledger.history() if self.ledger else ())
        self.admission = CallValidator(box, self.policy, expiry=expiry, repeats=repeats, fingerprints=known)
        self.scheduler = CoreToolScheduler(
            validator=self.admission,
            journal=self.recorder,
            ask=ask,
            listeners=listeners or self.heard.listeners(),
            environment=ExecutionEnvironment(folder, redactor.text if redactor else str, time_limit),
            concurrent=concurrent,
            ordered=ordered,
            clock=clock or (store.clock if store else system_clock),
        )

    @property
    def ran(self) -> list[str]:
        return self.shop.ran

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self.scheduler.close(), 10)
        finally:
            if self.recorder is not None:
                self.recorder.close()

    async def do(self, *requests: ToolCallRequest) -> list[CompletedToolCall]:
        return await soon(self.scheduler.schedule(requests).ended())

    async def waiting(self, *requests: ToolCallRequest) -> list[ToolCall]:
        """Schedule, and wait until nothing goes on without a person."""
        return await soon(self.scheduler.schedule(requests).settled())

    async def say(
        self, call_id: str, outcome: ApprovalOutcome = ApprovalOutcome.PROCEED_ONCE, by: Actor = ANN, **payload: Any
    ) -> None:
        payload["by"] = by
        await soon(self.scheduler.handle_confirmation_response(call_id, None, outcome, payload=payload))

    async def heard_of(self, *call_ids: str) -> None:
        """Until these have ended."""
        await until(lambda: not {call.request.call_id for call in self.scheduler.calls} & set(call_ids))

    async def over(self) -> None:
        """Until nothing is open."""
        await soon(self.heard.all_over.wait())
        if self.recorder is not None:
            await self.recorder.flushed()


# --- what is on record --------------------------------------------------------------------------------------


def stored(store: Store, call_id: str = "a") -> StoredCall:
    with store.read() as tx:
        found = repository.find_call(tx, call_id)
    assert found is not None
    return found


def approval(store: Store, call_id: str = "a") -> StoredApproval:
    with store.read() as tx:
        found = repository.find_approval(tx, call_id)
    assert found is not None
    return found


def steps(store: Store, call_id: str | None = None, session: str = AGENT.conversation_id) -> list[Event]:
    """The events of calls, of one or of all of a session."""
    with store.read() as tx:
        found = event_log.read_stream(tx, call_stream(session))
    return [event for event in found if call_id in (None, event.subject)]


def way(store: Store, call_id: str = "a") -> list[str | None]:
    return [event.to_status for event in steps(store, call_id)]


def yes(outcome: ApprovalOutcome = ApprovalOutcome.PROCEED_ONCE, by: Actor = ANN, **more: Any) -> ApprovalAnswer:
    return ApprovalAnswer(outcome, by, **more)


# --- another process ----------------------------------------------------------------------------------------


class OtherProcess:
    """Runs this module as a program: `hold` has one call running, one in line, one asked about; `answer` says yes."""

    def __init__(self, job: str, database: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.toolcalls", job, database, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> int:
        """`kill -9`; its exit status."""
        self.process.kill()
        self.process.communicate(timeout=60)
        return self.process.returncode

    def go(self) -> str:
        """Let it do its job; what it says of it."""
        out, _ = self.process.communicate("go\n", timeout=60)
        return out.strip()


async def _hold(store: Store) -> None:
    desk = Desk(store, Mode.DEFAULT, concurrent=1)
    batch = desk.scheduler.schedule(
        [
            request("hold", {"name": "x"}, "running"),
            request("hold", {"name": "y"}, "next"),
            request("work", {"on": "z"}, "asked"),
        ]
    )
    await desk.shop.began("x").wait()
    assert desk.recorder
    await desk.recorder.flushed()
    print("ready", flush=True)
    await batch


def main() -> None:
    job, database, *arguments = sys.argv[1:]
    store = open_store(database)
    if job == "hold":
        asyncio.run(_hold(store))
    else:
        print("ready", flush=True)
        sys.stdin.readline()
        print(Approvals(store).answer(arguments[0], yes(by=BOB)).status, flush=True)
    store.close()


if __name__ == "__main__":
    end_with_parent()
    main()
