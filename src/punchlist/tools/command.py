"""Running a command line in the workspace."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from punchlist.kernel import child_processes
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.execution import output_file
from punchlist.toolcalls.tool import Effect, TimedOut, ToolContext, ToolFailure
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.output import LARGEST, BoundedOutput
from punchlist.tools.process import ToolProcess
from punchlist.tools.workspace import Workspace

TIMEOUT: Final = 120.0
LONGEST_TIMEOUT: Final = 3_600.0
_LAST_WORDS: Final = 0.2
"""Seconds for which output is read after the program has ended, while something it left still holds the pipe."""

# Nobody is there to page through anything or to type a password.
_QUIET: Final = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}


def command_tool(workspace: Workspace, redact: Callable[[str], str] = str) -> FunctionTool:
    async def run_command(command: str, running: ToolContext, timeout: float = TIMEOUT) -> ToolResult:
        """Run a shell command in the workspace's folder and give what it prints. A command that runs longer than
        `timeout` seconds (120) is ended, and so is everything that it leaves running."""
        if not 0 < timeout <= LONGEST_TIMEOUT:
            raise ToolFailure(f"timeout: must be more than 0 and at most {LONGEST_TIMEOUT:g} seconds.")
        if not command.strip() or "\x00" in command:
            raise ToolFailure("command: must be a command line.")
        shell = shutil.which("bash") or "/bin/sh"
        return await run_program([shell, "-c", "--", command], workspace, running, timeout, redact)

    return FunctionTool(
        run_command,
        effect=Effect.EXECUTE,
        # It keeps its own, which the model may choose.
        time_limit=LONGEST_TIMEOUT + 60,
        preview=lambda command, **_: f"$ {command}\n\nin {workspace.root}",
        command=lambda command, **_: command,
    )


async def run_program(
    arguments: Sequence[str],
    workspace: Workspace,
    running: ToolContext,
    timeout: float,
    redact: Callable[[str], str] = str,
    *,
    input: bytes = b"",
    fine: Sequence[int] = (0,),
) -> ToolResult:
    """Run a program to its end, or to its time limit; nothing of it is left running in any case."""
    file = output_file(running.folder, running.call_id) if running.folder else None
    output, mark = BoundedOutput(file, running.output, redact), running.call_id
    limit = _limit(timeout, running)
    environment = {**os.environ, **_QUIET, child_processes.MARK: mark}
    program = ToolProcess(arguments, folder=workspace.root, environment=environment, input=input, take=output.add)
    patience = child_processes.PATIENCE
    try:
        late = await _wait(program, output, _warned_at(limit))
        if late:
            patience = (limit - _warned_at(limit)) / 2
        left = child_processes.still_running(mark, program.pid, program.ended_at)
    finally:
        # Also when the call is cancelled.
        await _to_its_end(_clear_away(program, output, mark, patience))
    result = output.result()
    printed = result.text or "(no output)"
    if late:
        raise TimedOut(f"It took longer than its limit of {round(limit, 1):g} s and was ended.\n\n{printed}")
    if problem := _problem(program.code, output, left, fine):
        raise ToolFailure(f"{problem}\n\n{printed}")
    return result


def _limit(timeout: float, running: ToolContext) -> float:
    """Seconds that the program has: its own limit, or what is left of the call's."""
    if running.deadline is None:
        return timeout
    return min(timeout, max(running.deadline - asyncio.get_running_loop().time(), 0.0))


def _warned_at(limit: float) -> float:
    """When the program is told to end: a little early, so that it is gone when its time is up."""
    return limit - min(child_processes.PATIENCE, limit * 0.08)


async def _wait(program: ToolProcess, output: BoundedOutput, seconds: float) -> bool:
    """Wait until the program ends or prints too much; whether it took too long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    await asyncio.wait({program.ended, program.silent}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if program.silent.done() and not output.too_much:
        # It has closed its output, and may go on without.
        await asyncio.wait({program.ended}, timeout=until - loop.time())
    elif program.ended.done():
        await asyncio.wait({program.silent}, timeout=_LAST_WORDS)
    return not program.ended.done() and not output.too_much


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do it whole, and only then let it through that the call was cancelled in the meantime."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


async def _clear_away(program: ToolProcess, output: BoundedOutput, mark: str, patience: float) -> None:
    try:
        await child_processes.end_all(mark, program.pid, patience, program.started_at)
        await asyncio.wait({program.ended}, timeout=_LAST_WORDS)
    finally:
        program.close()
        output.finish()


def _problem(
    code: int | None, output: BoundedOutput, left: Sequence[child_processes.ChildProcess], fine: Sequence[int]
) -> str | None:
    if output.too_much:
        return f"It printed more than {LARGEST // 1_000_000} MB and was ended. Send its output to a file, or to `tail`."
    if code is not None and code < 0:
        return f"It was ended by signal {_signal(-code)}."
    if code not in fine:
        return f"It ended with exit code {code}."
    if left:
        names = ", ".join(f"{one.name} ({one.pid})" for one in left[:5])
        return f"It left processes running, which were ended: {names}. A command must end what it starts."
    return None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
