"""The run_command tool."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from punchlist.kernel import process_tree
from punchlist.kernel.process_runner import (
    CapturedProcess,
    ProcessExit,
    ProcessStartError,
    run_captured,
    run_process,
)
from punchlist.kernel.secrets import without_secrets
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.execution import output_file
from punchlist.toolcalls.tool import Effect, TimedOut, ToolContext, ToolFailure
from punchlist.tools import sandbox as sandbox_settings
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.output import MAX_OUTPUT_BYTES, BoundedOutput
from punchlist.tools.sandbox import SandboxSettings
from punchlist.tools.workspace import Workspace

DEFAULT_TIMEOUT: Final = 120.0
MAX_TIMEOUT: Final = 3_600.0


def command_tool(
    workspace: Workspace, redact: Callable[[str], str] = str, sandbox: SandboxSettings = sandbox_settings.DEFAULT
) -> FunctionTool:
    async def run_command(command: str, running: ToolContext, timeout: float = DEFAULT_TIMEOUT) -> ToolResult:
        """Run a shell command in the workspace folder and return its output. A command that runs longer than
        `timeout` seconds (default 120) is ended, and so is every process that it leaves running."""
        if not 0 < timeout <= MAX_TIMEOUT:
            raise ToolFailure(f"timeout: must be greater than 0 and at most {MAX_TIMEOUT:g} seconds.")
        if not command.strip() or "\x00" in command:
            raise ToolFailure("command: must be a command line.")
        environment = without_secrets(os.environ, sandbox.env_pass)
        arguments: Sequence[str] = _shell(command)
        if sandbox.is_on:
            arguments = await _in_sandbox(arguments, sandbox, workspace)
        return await run_program(arguments, workspace, running, timeout, redact, environment=environment)

    return FunctionTool(
        run_command,
        effect=Effect.EXECUTE,
        # The command has its own time limit, which the model can choose.
        time_limit=MAX_TIMEOUT + 60,
        preview=lambda command, **_: _preview(command, workspace, sandbox),
        command=lambda command, **_: command,
    )


def _preview(command: str, workspace: Workspace, sandbox: SandboxSettings) -> str:
    from punchlist.toolcalls.command_files import describe_files

    where = f"in {workspace.root}{' (sandbox)' if sandbox.is_on else ''}"
    return "\n".join(filter(None, (f"$ {command}\n\n{where}", describe_files(command, workspace.paths))))


def _shell(command: str) -> list[str]:
    return [shutil.which("bash") or "/bin/sh", "-c", "--", command]


def run_shell(
    command: str, workspace: Workspace, sandbox: SandboxSettings, seconds: float, max_output: int = 0
) -> CapturedProcess:
    """Run a command line outside of a turn, with the environment and the sandbox of `run_command`. Blocks.

    Raises `ProcessStartError`.
    """
    from punchlist.tools.sandbox_command import sandboxed_if_on

    return run_captured(
        sandboxed_if_on(_shell(command), sandbox, workspace.root, workspace.folders[1:]),
        folder=workspace.root,
        environment=without_secrets(os.environ, sandbox.env_pass),
        seconds=seconds,
        max_output=max_output,
        stop_at_max=False,
        merged=True,
    )


async def _in_sandbox(arguments: Sequence[str], sandbox: SandboxSettings, workspace: Workspace) -> Sequence[str]:
    from punchlist.tools.sandbox_command import SandboxUnavailable, sandboxed

    try:
        # In a thread: the first use starts a program.
        return await asyncio.to_thread(sandboxed, arguments, sandbox, workspace.root, workspace.folders[1:])
    except SandboxUnavailable as error:
        raise ToolFailure(str(error)) from None


async def run_program(
    arguments: Sequence[str],
    workspace: Workspace,
    running: ToolContext,
    timeout: float,
    redact: Callable[[str], str] = str,
    *,
    input: bytes = b"",
    environment: Mapping[str, str] | None = None,
    success_codes: Sequence[int] = (0,),
    folder: Path | None = None,
) -> ToolResult:
    """Run a program to its end or to its time limit; none of its processes outlives the call.

    `environment` is ours without secrets, and `folder` the root of the workspace, unless they are given.
    """
    file = output_file(running.output_folder, running.call_id) if running.output_folder else None
    output = BoundedOutput(file, running.output, redact)
    limit = _limit(timeout, running)
    # It is asked to end a little early, so that it is gone when its time is up.
    notice = min(process_tree.TERM_SECONDS, limit * 0.08)
    try:
        ended = await run_process(
            arguments,
            folder=folder or workspace.root,
            environment=without_secrets(os.environ) if environment is None else environment,
            mark=running.call_id,
            seconds=limit - notice,
            output=output.add,
            input=input,
            kill_after=notice / 2,
        )
    except ProcessStartError as error:
        raise ToolFailure(f"Cannot start {arguments[0]}: {error}.") from None
    finally:
        output.finish()
    result = output.result()
    printed = result.text or "(no output)"
    if ended.timed_out:
        raise TimedOut(f"The command exceeded its time limit of {round(limit, 1):g} s and was ended.\n\n{printed}")
    if problem := _problem(ended, output, success_codes):
        raise ToolFailure(f"{problem}\n\n{printed}")
    return result


def _limit(timeout: float, running: ToolContext) -> float:
    """The time limit of the program: its own, or the rest of the call's."""
    if running.deadline is None:
        return timeout
    return min(timeout, max(running.deadline - asyncio.get_running_loop().time(), 0.0))


def _problem(ended: ProcessExit, output: BoundedOutput, success_codes: Sequence[int]) -> str | None:
    if output.exceeded:
        return (
            f"The command printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB and was ended. "
            "Redirect its output to a file, or pipe it to `tail`."
        )
    if ended.code is not None and ended.code < 0:
        return f"The command was ended by signal {_signal(-ended.code)}."
    if ended.code not in success_codes:
        return f"The command ended with exit code {ended.code}."
    if ended.left_running:
        names = ", ".join(f"{process.name} ({process.pid})" for process in ended.left_running[:5])
        return f"The command left processes running, which were ended: {names}. A command must end what it starts."
    return None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
