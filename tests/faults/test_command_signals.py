"""A signal to Punchlist ends the commands that it runs (TRUST 13)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_a_tool_call_ends_the_processes_of_its_command(
    project: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    needle = f"sleep\x00{5_000 + number}"
    line = json.dumps({"command": f"setsid sleep {5_000 + number} & env -i setsid sleep {5_000 + number} & wait"})
    process = subprocess.Popen(
        [sys.executable, "-m", "punchlist", "tools", "call", "run_command", line, "--mode", "yolo"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert _ends(process, number, needle) != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_commands_of_other_threads(number: signal.Signals) -> None:
    """Servers run checks in threads. The process still ends by the signal."""
    needle = f"sleep\x00{6_000 + number}"
    line = f"sleep {6_000 + number} & env -i setsid sleep {6_000 + number}; true"
    process = subprocess.Popen([sys.executable, "-c", IN_A_THREAD, line])
    assert _ends(process, number, needle) == -number


@pytest.mark.parametrize(
    "left", ["env -i setsid sleep 7001", "env -i setsid sh -c 'trap \"\" TERM; sleep 7001; sleep 7001'"]
)
def test_a_command_at_its_time_limit_leaves_no_process_without_mark_and_session(tmp_path: Path, left: str) -> None:
    """The environment of `env -i` has no mark, and `setsid` leaves the session: they are found by their parents."""
    Agent(tmp_path).tries("run_command", command=f"{left} & wait", timeout=1.0)
    assert gone("sleep\x007001", within=5)
