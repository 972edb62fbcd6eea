"""Processes that leave their session, their environment and their parents are found all the same (S4, S7, TRUST 13)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux returns orphans to a program")

DAEMON = """
import os, sys
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
os.execvpe(sys.argv[1], sys.argv[1:], {name: os.environ[name] for name in ("HOME", "PATH")})
"""
CLEARED = 'env -i HOME="$HOME" PATH="$PATH"'
LEAVES = {
    "setsid -f": f"{CLEARED} setsid -f PROGRAM",
    "setsid in the background": f"({CLEARED} setsid PROGRAM &)",
    "several times": f"(setsid sh -c '{CLEARED} setsid -f PROGRAM' & ) &",
    "a daemon": f"{shlex.quote(sys.executable)} -c {shlex.quote(DAEMON)} PROGRAM",
}
SLEEP = f"5{int.from_bytes(os.urandom(6)):015}."
"""How long orphans sleep: nothing else that runs has the same argument."""
SECRETLY = f"""
{shlex.quote(sys.executable)} -m punchlist token create z2 --role person > told 2>&1
echo code $? >> told
mv told ended
"""


@pytest.mark.spec("S4", "X11")
@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES.keys())
@pytest.mark.parametrize("starter", ["tools call", "run"])
def test_a_command_that_leaves_everything_behind_gets_no_rights(
    punchlist: Cli, project: Path, leave: str, starter: str
) -> None:
    (project / "secretly.sh").write_text(SECRETLY)
    command = f"{leave.replace('PROGRAM', 'sh secretly.sh')}\nuntil [ -e ended ]; do sleep 0.01; done"
    if starter == "run":
        call = [{"calls": [{"tool": "run_command", "arguments": {"command": command}}]}, "Done."]
        (project / "s.yaml").write_text(json.dumps(call))
        done = punchlist("run", "--mode", "yolo", "--model", "rehearsal:s.yaml", "Go.")
    else:
        done = punchlist("tools", "call", "run_command", json.dumps({"command": command}), "--mode", "yolo")
    told = (project / "ended").read_text()
    assert "inside an agent's tool call" in told, (told, done.stderr)
    assert told.endswith("code 1\n")
    assert json.loads(punchlist("token", "list", "--json").stdout) == []
    assert "refused: `punchlist token create`" in punchlist("status").stdout


COMMANDS = """
import asyncio, os, subprocess, sys, time
from pathlib import Path
from punchlist import kernel
from punchlist.kernel import orphans
from punchlist.toolcalls.model import ToolCallRequest
from tests.faults.tools import Agent, gone, running

kernel.is_program = sys.argv[2] == "program"
agent = Agent(Path(sys.argv[1]))

def schedule(command):
    return agent.scheduler().schedule(ToolCallRequest("run_command", {"command": command}))

def zombies():
    stats = [(entry / "stat").read_text().rpartition(")")[2].split() for entry in Path("/proc").glob("[0-9]*")
             if (entry / "stat").exists()]
    return [stat for stat in stats if stat[0] == "Z" and stat[1] == str(os.getpid())]

async def until(condition):
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0.002)

async def has(file):
    await until((agent.root / file).exists)

async def runs(needle):
    await until(lambda: running(needle))

LEAVE = "env -i setsid -f sh -c"
"""


def in_a_program(tmp_path: Path, script: str, kind: str = "program") -> None:
    done = subprocess.run(
        [sys.executable, "-c", (COMMANDS + textwrap.dedent(script)).replace("471", SLEEP), str(tmp_path), kind],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("S7")
@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES.keys())
def test_what_a_command_leaves_is_ended_with_it(tmp_path: Path, leave: str) -> None:
    (tmp_path / "leave.sh").write_text(f"trap : TERM; touch left; sleep {SLEEP}1; sleep {SLEEP}1\n")
    command = leave.replace("PROGRAM", "sh leave.sh")
    in_a_program(
        tmp_path,
        f"""
        told = agent.fails("run_command", command={command!r} + "\\nuntil [ -e left ]; do sleep 0.01; done")
        assert "left processes running, which were ended: " in told.message, told
        assert gone("sleep\\0004711", 0), running("sleep\\0004711")
        assert zombies() == []
        """,
    )


@pytest.mark.spec("S7")
def test_an_orphan_is_ended_with_the_last_command_that_can_have_left_it(tmp_path: Path) -> None:
    in_a_program(
        tmp_path,
        """
        async def run():
            earlier = schedule(f"{LEAVE} 'touch one; sleep 4712'; until [ -e end1 ]; do sleep 0.01; done")
            await has("one")
            await asyncio.sleep(0.05)
            later = schedule(f"{LEAVE} 'touch two; sleep 4713'; touch began; until [ -e end2 ]; do sleep 0.01; done")
            await runs("sleep\\0004713")
            await has("began")
            # The earlier orphan is not of the later command. The later one can be of both.
            (agent.root / "end1").touch()
            await earlier
            assert gone("sleep\\0004712", 5)
            assert running("sleep\\0004713")
            (agent.root / "end2").touch()
            await later
            assert gone("sleep\\0004713", 5)
            assert zombies() == []

        asyncio.run(run())
        """,
    )


@pytest.mark.spec("S7")
def test_processes_that_were_started_beside_commands_are_not_orphans(tmp_path: Path) -> None:
    in_a_program(
        tmp_path,
        """
        agent.runs("true")
        # In our session, and in one of its own.
        here = subprocess.Popen(["sleep", "4714"])
        started = []

        async def run():
            batch = schedule("touch began; until [ -e end ]; do sleep 0.01; done")
            await has("began")
            with orphans.starting() as add:
                started.append(subprocess.Popen(["sh", "-c", "sleep 4715 & wait"], start_new_session=True))
                add(started[0].pid)
            await runs("sleep\\0004715")
            (agent.root / "end").touch()
            await batch

        asyncio.run(run())
        assert len(running("sleep\\0004714") + running("sleep\\0004715")) == 2
        here.kill()
        os.killpg(started[0].pid, 9)
        # Their exit codes are still there.
        assert (here.wait(), started[0].wait()) == (-9, -9)
        """,
    )


@pytest.mark.spec("S7")
def test_orphans_that_end_while_a_command_runs_do_not_stay_as_zombies(tmp_path: Path) -> None:
    in_a_program(
        tmp_path,
        """
        async def run():
            line = "for i in 1 2 3 4 5; do (setsid -f true); done; touch began; until [ -e end ]; do sleep 0.01; done"
            batch = schedule(line)
            await has("began")
            await until(lambda: not zombies())
            (agent.root / "end").touch()
            await batch

        asyncio.run(run())
        """,
    )


@pytest.mark.spec("S7")
def test_a_program_that_uses_the_library_does_not_receive_orphans(tmp_path: Path) -> None:
    in_a_program(
        tmp_path,
        """
        agent.runs("true")
        nothing = subprocess.DEVNULL
        line = ["setsid", "-f", "sleep", "4716"]
        subprocess.run(line, stdin=nothing, stdout=nothing, stderr=nothing, check=True)
        asyncio.run(runs("sleep\\0004716"))
        (left,) = running("sleep\\0004716")
        parent = Path(f"/proc/{left}/stat").read_text().rpartition(")")[2].split()[1]
        os.kill(left, 9)
        assert parent != str(os.getpid())
        """,
        "library",
    )
