"""Running one call: whatever the tool does, the answer is a result or an error in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import Any, Final

from punchlist.errors import PunchlistError, StoreBusy
from punchlist.kernel.text import excerpt
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.results import as_result, cut
from punchlist.toolcalls.states import CallError
from punchlist.toolcalls.tool import AgentTool, Arguments, ConnectionLost, Effect, TransientFailure

TIME_LIMIT: Final = 120.0
PAUSE: Final = 0.2
"""Seconds before a call that failed for a passing reason is tried again."""

Show = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """What calls run in: where long output goes, what must not be shown, how long they may take."""

    folder: Path | None = None
    redact: Callable[[str], str] = str
    time_limit: float = TIME_LIMIT


class RunningCall:
    """What the tool sees of its call (`tool.Running`)."""

    __slots__ = ("_loop", "_redact", "_show", "_thread", "call_id", "deadline", "folder")

    def __init__(
        self,
        call_id: str,
        around: ExecutionEnvironment,
        deadline: float | None,
        show: Show,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.call_id = call_id
        self.folder = around.folder
        self.deadline = deadline
        self._redact = around.redact
        self._show = show
        self._loop = loop
        self._thread = get_ident()

    def output(self, text: str) -> None:
        if get_ident() == self._thread:
            self._show(self.call_id, self._redact(text))
        else:
            self._loop.call_soon_threadsafe(self._show, self.call_id, self._redact(text))


async def execute(
    tool: AgentTool, arguments: Arguments, running: RunningCall, around: ExecutionEnvironment
) -> ToolResult | CallError:
    try:
        value = await _run(tool, arguments, running)
        return as_result(value, redact=around.redact, keep=lambda text: _keep(around.folder, running.call_id, text))
    except PunchlistError as error:
        return CallError(error.code, cut(around.redact(str(error))).text)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        told = excerpt(around.redact(str(error)), 1_000)
        return CallError("tool_crashed", f"{tool.name} failed: {type(error).__name__}{f': {told}' if told else ''}")


async def _run(tool: AgentTool, arguments: Arguments, running: RunningCall) -> Any:
    """Once more where the failure passes and nothing can be done twice (C8)."""
    try:
        return await tool.run(arguments, running)
    except (TransientFailure, ConnectionLost, ConnectionError, StoreBusy) as failure:
        if not isinstance(failure, TransientFailure) and tool.effect is not Effect.READ:
            raise
        running.output(f"{failure} Trying once more.\n")
        await asyncio.sleep(PAUSE)
        return await tool.run(arguments, running)


def _keep(folder: Path | None, call_id: str, text: str) -> Path | None:
    """The file with the whole text; None when it cannot be kept, which must not lose the result."""
    if folder is None:
        return None
    path = output_file(folder, call_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError:
        return None
    return path


def output_file(folder: Path, call_id: str) -> Path:
    return folder / f"{call_id}.txt"
