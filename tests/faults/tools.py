"""Our own tools as an agent uses them: through the scheduler, in a workspace; and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.processes import PATIENCE

from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.execution import ExecutionEnvironment
from punchlist.toolcalls.listeners import Journal, Listeners
from punchlist.toolcalls.model import (
    CallError,
    CompletedToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCallRequest,
)
from punchlist.toolcalls.policy import Mode, Policy
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.tools.sandbox import SandboxSettings
from punchlist.tools.tool_session import native_tools
from punchlist.tools.workspace import Workspace

T = TypeVar("T")


class Agent:
    """Uses tools in a folder. What it saw while they ran is in `seen`."""

    def __init__(
        self,
        root: Path,
        also: Iterable[Path] = (),
        *,
        workspace: Workspace | None = None,
        redact: Callable[[str], str] = str,
        output: Path | None = None,
        policy: Policy | None = None,
        concurrent: int = 10,
        env_pass: tuple[str, ...] = (),
        sandbox: SandboxSettings | None = None,
    ) -> None:
        self.root = root
        self.seen: list[str] = []
        self._more = asyncio.Event()
        self._tools = native_tools(
            workspace or Workspace(root, also), redact, sandbox or SandboxSettings(env_pass=env_pass)
        )
        self._policy = policy or Policy(Mode.YOLO)
        self._around = ExecutionEnvironment(output, redact)
        self._concurrent = concurrent
        self._journal: Journal | None = None

    def use(self, policy: Policy, journal: Journal) -> None:
        """From now on."""
        self._policy, self._journal = policy, journal

    def scheduler(self) -> CoreToolScheduler:
        return CoreToolScheduler(
            self._tools,
            self._policy,
            listeners=Listeners(on_output=self._see),
            environment=self._around,
            concurrent=self._concurrent,
            journal=self._journal,
        )

    def _see(self, _: str, text: str) -> None:
        self.seen.append(text)
        self._more.set()

    async def has_seen(self, text: str, times: int = 1) -> None:
        """Wait until live output has a text, so often."""
        async with asyncio.timeout(PATIENCE):
            while "".join(self.seen).count(text) < times:
                self._more.clear()
                await self._more.wait()

    def tries(self, tool: str, *, limit: float | None = None, **arguments: Any) -> CompletedToolCall:
        async def use() -> CompletedToolCall:
            [call] = await self.scheduler().schedule(ToolCallRequest(tool, arguments, timeout=limit))
            return call

        return asyncio.run(use())

    def gets(self, tool: str, **arguments: Any) -> ToolResult:
        call = self.tries(tool, **arguments)
        assert isinstance(call, SuccessfulToolCall), call
        return call.result

    def does(self, tool: str, **arguments: Any) -> str:
        """What the tool says, having succeeded."""
        return self.gets(tool, **arguments).text

    def fails(self, tool: str, **arguments: Any) -> CallError:
        """What the tool says, having failed in words of its own."""
        call = self.tries(tool, **arguments)
        assert isinstance(call, ErroredToolCall), call
        assert call.error.code != "tool_crashed", call.error
        return call.error

    def runs(self, command: str, **arguments: Any) -> str:
        return self.does("run_command", command=command, **arguments)


def requests(tool: str, arguments: Iterable[Mapping[str, Any]]) -> list[ToolCallRequest]:
    return [ToolCallRequest(tool, one) for one in arguments]


# --- what is left behind; looked at without any help of the code under test ------------------------------------


def running(needle: str) -> list[int]:
    """The processes that have a text in their command line, and are not zombies."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if needle.encode() in line:
                found.append(int(entry))
    return found


def gone(needle: str, within: float) -> bool:
    """Whether nothing runs any more that has a text in its command line, at the latest after some seconds."""
    until = time.monotonic() + within
    while running(needle):
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def zombies() -> list[int]:
    """Our own children that have ended and that nobody has asked for."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state, parent = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(entry))
    return found


def open_files() -> dict[int, str]:
    """Our descriptors and what they are."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found


def leaving_nothing(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do something on an event loop of its own: no task, descriptor or zombie is left afterwards."""

    async def watched() -> T:
        before = open_files()
        result = await work()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not tasks, tasks
        left = {number: file for number, file in open_files().items() if number not in before}
        assert not left, left
        assert not zombies()
        return result

    return asyncio.run(watched())


def texts(calls: Sequence[CompletedToolCall]) -> list[str]:
    return [call.result.text for call in calls if isinstance(call, SuccessfulToolCall)]
