"""Runs one task in one arm and looks at the workspace afterwards."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.finish.arms import Arm, ArmView
from bench.finish.bare import run_bare
from bench.finish.faults import FaultDraws, FaultSet
from bench.finish.model import DONE, ScriptedModel
from bench.finish.task import Task
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.runtime import AgentRuntime
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor
from punchlist.models.model import Model
from punchlist.models.retry import RetryingModel
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool, Effect
from punchlist.tools.files import FileTools
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.settings import PolicySettings, ToolSettings
from punchlist.tools.tool_session import ToolSite, native_tools
from punchlist.tools.workspace import Workspace

_NUMBER: Final = re.compile(r"\d+")
MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of one run of one task."""

    arm: str
    faults: str
    seed: int
    task: str
    steps: int
    passed: int
    """Steps whose hidden test passes."""
    claimed: bool
    """The turn ended as completed and says of no item that it was left out; for the bare loop, the answer says that
    everything is done."""
    reason: str
    requests: int
    tokens: int
    seconds: float

    @property
    def whole(self) -> bool:
        return self.passed == self.steps

    @property
    def false_done(self) -> bool:
        return self.claimed and not self.whole


@dataclass(frozen=True, slots=True)
class Ended:
    claimed: bool
    reason: str


async def no_pause(seconds: float) -> None:
    del seconds


def run_scripted(task: Task, arm: Arm, faults: FaultSet, seed: int) -> Outcome:
    draws = FaultDraws(faults, seed, task.name)
    model = ScriptedModel(task, draws)
    with folder() as base:
        root = base / "work"
        task.prepare(root)
        start = perf_counter()
        read = WrongReads(Workspace(root), draws).tool() if faults.rates else None
        retried = RetryingModel(ArmView(model, arm), sleep=no_pause, jitter=lambda: 0.0)
        ended = asyncio.run(run_arm(task, arm, retried, base, read))
        seconds = perf_counter() - start
        passed = sum(task.passed(root))
    return Outcome(
        arm.name,
        faults.name,
        seed,
        task.name,
        len(task.steps),
        passed,
        ended.claimed,
        ended.reason,
        model.requests,
        model.usage.total,
        seconds,
    )


@contextmanager
def folder() -> Iterator[Path]:
    """A folder in memory, if there is one: no disk is measured here."""
    base = Path(tempfile.mkdtemp(prefix="punchlist-finish-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


async def run_arm(task: Task, arm: Arm, model: Model, base: Path, read: AgentTool | None = None) -> Ended:
    root = base / "work"
    replaced = [] if read is None else [read]
    if arm.agent is None:
        tools: dict[str, AgentTool] = {tool.name: tool for tool in native_tools(Workspace(root))}
        tools |= {tool.name: tool for tool in replaced}
        bare = await run_bare(model, list(tools.values()), root, task.instruction)
        return Ended(bare.text.startswith(DONE), bare.reason)
    with closing(open_store(str(base / "finish.db"))) as store:
        scope = Scope("finish", Actor(arm.agent.role, arm.agent.name))
        conversations = Conversations(store)
        model_for: Callable[[AgentDefinition], Model] = lambda _: model  # noqa: E731
        runtime = AgentRuntime(
            ToolSite(store, scope, root, ToolSettings(PolicySettings()), base / "outputs", {}),
            conversations,
            Plans(store),
            Checklists(store, conversations),
            model_for,
            Mode.YOLO,
            tools=replaced,
        )
        result = await runtime.run(arm.agent, task.instruction, CancelSignal())
        left_out = [item for item in result.items if item.status != "completed"]
        reason = f"{result.reason}, with cancelled items" if left_out and not result.open else str(result.reason)
        return Ended(reason == "completed", reason)


class WrongReads:
    """`read_file`, with a wrong number in some results."""

    def __init__(self, workspace: Workspace, draws: FaultDraws) -> None:
        self._workspace = workspace
        self._files = FileTools(workspace)
        self._draws = draws

    def tool(self) -> FunctionTool:
        def read_file(path: str, first_line: int = 1, lines: int | None = None) -> str:
            text = self._files.read_file(path, first_line, lines)
            if not self._draws.wrong_data():
                return text
            return _NUMBER.sub(lambda found: str(int(found[0]) + 1), text, count=1)

        return FunctionTool(
            read_file,
            description=FileTools.read_file.__doc__,
            effect=Effect.READ,
            resources=lambda path, **_: self._workspace.read_resource(path),
        )
