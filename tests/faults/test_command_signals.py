"""A signal to Punchlist ends the commands that it runs (TRUST 13)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.tools import Agent, gone, running

# What the command line does in a process that runs a check in another thread.
IN_A_THREAD = """
import os, sys, threading
from pathlib import Path
from punchlist.kernel.process_runner import run_captured
from punchlist.surfaces.cli.main import _end_commands_on_signals

_end_commands_on_signals()
line = ["sh", "-c", sys.argv[1]]
run = lambda: run_captured(line, folder=Path("/"), environment=os.environ, seconds=60, max_output=100)
threading.Thread(target=run).start()
threading.Event().wait()
"""


# A busy machine: the command runs before this process continues.
JUST_STARTED = """
import os, signal, sys
from pathlib import Path
from punchlist.kernel import process_runner
from punchlist.surfaces.cli.main import _end_commands_on_signals

_end_commands_on_signals()

class Started(process_runner.subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        signal.pause()

process_runner.subprocess.Popen = Started
process_runner.run_captured(
    ["sh", "-c", sys.argv[1]], folder=Path("/"), environment=os.environ, seconds=60, max_output=100
)
"""


@pytest.fixture
def seconds() -> str:
    """How long the commands of a test sleep. No other test, and no other run of the tests, has the same."""
    return f"5000.{int.from_bytes(os.urandom(6)):015}"


def _started(needle: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 40
    while not running(needle):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


def _ends(process: subprocess.Popen[bytes], number: signal.Signals, needle: str) -> int:
    try:
        _started(needle, process)
        process.send_signal(number)
        code = process.wait(30)
        assert gone(needle, within=5)
        return code
    finally:
        process.kill()
        process.wait()
        for left in running(needle):
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_a_tool_call_ends_the_processes_of_its_command(
    project: Path, environment: dict[str, str], number: signal.Signals, seconds: str
) -> None:
    line = json.dumps({"command": f"setsid sleep {seconds} & env -i setsid sleep {seconds} & wait"})
    process = subprocess.Popen(
        [sys.executable, "-m", "punchlist", "tools", "call", "run_command", line, "--mode", "yolo"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert _ends(process, number, f"sleep\x00{seconds}") != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_commands_of_other_threads(number: signal.Signals, seconds: str) -> None:
    """Servers run checks in threads. The process still ends by the signal."""
    line = f"sleep {seconds} & env -i setsid sleep {seconds}; true"
    process = subprocess.Popen([sys.executable, "-c", IN_A_THREAD, line])
    assert _ends(process, number, f"sleep\x00{seconds}") == -number


def test_a_signal_ends_a_command_that_has_just_been_started(seconds: str) -> None:
    line = f"sleep {seconds} & env -i setsid sleep {seconds}; true"
    process = subprocess.Popen([sys.executable, "-c", JUST_STARTED, line])
    assert _ends(process, signal.SIGTERM, f"sleep\x00{seconds}") == -signal.SIGTERM


@pytest.mark.parametrize(
    "left", ["env -i setsid sleep SECONDS", "env -i setsid sh -c 'trap \"\" TERM; sleep SECONDS; sleep SECONDS'"]
)
def test_a_command_at_its_time_limit_leaves_no_process_without_mark_and_session(
    tmp_path: Path, left: str, seconds: str
) -> None:
    """The environment of `env -i` has no mark, and `setsid` leaves the session: they are found by their parents."""
    Agent(tmp_path).tries("run_command", command=f"{left.replace('SECONDS', seconds)} & wait", timeout=1.0)
    assert gone(f"sleep\x00{seconds}", within=5)
