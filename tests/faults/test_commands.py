"""Commands that hang, flood, hide or are cancelled: time and memory are kept, nothing is left (trust tests 13, 14)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.faults.processes import ROOT
from tests.faults.tools import Agent, gone, leaving_nothing, requests, running, texts

from punchlist.kernel import process_tree
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    ExecutingToolCall,
    SuccessfulToolCall,
    ToolCallRequest,
)

_numbers = count(1)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    root = tmp_path / "work"
    root.mkdir()
    return Agent(root, output=tmp_path / "output", concurrent=100)


@pytest.fixture
def long() -> Iterator[str]:
    """How long to sleep so that it is known afterwards whose sleep it is; nothing of it is left for other tests."""
    seconds = f"9{os.getpid()}.{next(_numbers):06}"
    yield seconds
    for pid in running(seconds):
        os.kill(pid, 9)


async def pass_time(seconds: float) -> None:
    """Let the loop go round, once at least, until a moment that nobody can name."""
    until = time.perf_counter() + seconds
    await asyncio.sleep(0)
    while time.perf_counter() < until:
        await asyncio.sleep(0)


# --- output ------------------------------------------------------------------------------------------------------


def test_output_is_shown_before_the_command_ends(agent: Agent) -> None:
    os.mkfifo(agent.root / "gate")

    async def watch() -> None:
        batch = agent.scheduler().schedule(
            ToolCallRequest("run_command", {"command": "echo ready; cat gate; echo end"})
        )
        await agent.has_seen("ready\n")
        assert isinstance(batch.calls[0], ExecutingToolCall)
        assert "end" not in "".join(agent.seen)
        (agent.root / "gate").write_text("opened\n")
        assert texts(await batch) == ["ready\nopened\nend\n"]

    leaving_nothing(watch)
    assert "".join(agent.seen) == "ready\nopened\nend\n"


@pytest.mark.parametrize("ending", ["", "\n", "the last line has no end"])
def test_long_output_is_whole_on_disk(agent: Agent, ending: str) -> None:
    result = agent.gets("run_command", command=f"seq 100000; printf '{ending}'".replace("\n", "\\n"))
    whole = "".join(f"{number}\n" for number in range(1, 100_001)) + ending
    assert result.output_file is not None
    assert Path(result.output_file).read_text() == whole == "".join(agent.seen)
    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith(f"99999\n100000\n{ending}")
    assert len(result.text) <= 30_000


def test_a_command_that_fails_after_much_output_says_where_it_is(agent: Agent, tmp_path: Path) -> None:
    told = agent.fails("run_command", command="seq 100000; exit 3").message
    [file] = (tmp_path / "output").iterdir()
    assert told.startswith("The command ended with exit code 3.\n\n1\n2\n")
    assert told.endswith("99999\n100000\n")
    assert f"the full text is in {file}" in told
    assert told.count("characters omitted") == 1
    assert file.read_text().count("\n") == 100_000


def test_output_that_just_fits_is_told_whole(agent: Agent, tmp_path: Path) -> None:
    assert agent.runs("head -c 29000 /dev/zero | tr '\\0' x") == "x" * 29_000
    assert not (tmp_path / "output").exists()


def test_what_is_no_text_is_told_as_well_as_it_can_be(agent: Agent) -> None:
    assert agent.runs(r"printf 'caf\xe9 \xf0\x9f nul \0 \x1b[31m end'") == "caf\ufffd \ufffd nul \\x00 \x1b[31m end"


def test_a_character_that_comes_in_two_pieces_is_one(agent: Agent) -> None:
    os.mkfifo(agent.root / "gate")

    async def watch() -> list[str]:
        command = r"printf 'seen\n\xe2\x9c'; cat gate; printf '\x93\n'"
        batch = agent.scheduler().schedule(ToolCallRequest("run_command", {"command": command}))
        await agent.has_seen("seen")
        (agent.root / "gate").write_text("")
        return texts(await batch)

    assert asyncio.run(watch()) == ["seen\n✓\n"]


def test_a_line_without_end_is_kept_whole(agent: Agent) -> None:
    result = agent.gets("run_command", command="head -c 5000000 /dev/zero | tr '\\0' x")
    assert result.output_file is not None
    assert Path(result.output_file).read_text() == "x" * 5_000_000
    assert len(result.text) <= 30_000


def test_a_full_disk_costs_the_file_and_not_the_result(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "output").write_text("this is no folder")
    result = agent.gets("run_command", command="seq 100000")
    assert result.output_file is None
    assert result.text.endswith("100000\n")


FLOOD = """
    import asyncio, json, re, sys
    from pathlib import Path
    from tests.faults.tools import Agent
    from punchlist.kernel.secrets import Redactor

    def peak():
        return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text()).group(1)) * 1024

    root = Path(sys.argv[1])
    agent = Agent(root, redact=Redactor().text if sys.argv[3] else str, output=root / "output")
    # All that is loaded once is loaded, and buffers have been used.
    agent.tries("run_command", command="seq 200000; exit 1")
    agent._see = lambda *_: None
    agent.seen.clear()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    call = agent.tries("run_command", command=sys.argv[2])
    print(json.dumps({"grown": peak() - before, "told": call.error.message}))
"""


def flood(tmp_path: Path, command: str, redact: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FLOOD), str(tmp_path), command, redact],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(done.stdout)
    print("grown by", measured["grown"])
    assert measured["grown"] < 2_000_000
    assert len(measured["told"]) < 31_000
    assert "more than 50 MB and was ended" in measured["told"]
    sizes = [file.stat().st_size for file in (tmp_path / "output").iterdir()]
    assert max(sizes) >= 50_000_000


A_GIGABYTE = {"lines": "yes 'a line of text' | head -c 1G", "one line": "head -c 1G /dev/zero | tr '\\0' x"}


@pytest.mark.parametrize("command", A_GIGABYTE.values(), ids=A_GIGABYTE.keys())
def test_a_gigabyte_of_output_costs_little_memory(tmp_path: Path, command: str) -> None:
    flood(tmp_path, command, redact="")


@pytest.mark.soak
@pytest.mark.parametrize("command", A_GIGABYTE.values(), ids=A_GIGABYTE.keys())
def test_a_gigabyte_that_is_searched_for_secrets_costs_little_memory(tmp_path: Path, command: str) -> None:
    flood(tmp_path, command, redact="redact")


# --- time --------------------------------------------------------------------------------------------------------

STUBBORN = "trap '' TERM; sleep"


@pytest.mark.parametrize("whose", ["the command's", "the call's"])
def test_a_time_limit_is_kept_within_a_tenth(agent: Agent, long: str, whose: str) -> None:
    async def run(command: str, limit: float) -> float:
        own = {"timeout": limit} if whose == "the command's" else {}
        request = ToolCallRequest(
            "run_command", {"command": f"{command} {long}", **own}, timeout=None if own else limit
        )
        begun = time.perf_counter()
        [call] = await agent.scheduler().schedule(request)
        took = time.perf_counter() - begun
        assert isinstance(call, ErroredToolCall)
        assert call.error.code == "timed_out"
        # A busy machine may wake us a little late, however short the limit.
        assert limit * 0.9 <= took <= limit * 1.1 + 0.05
        return took / limit

    async def run_all() -> list[float]:
        cases = [(command, limit) for command in ("sleep", STUBBORN) for limit in (0.5, 1, 2)]
        return await asyncio.gather(*(run(*case) for case in cases))

    # What is loaded once is loaded.
    agent.runs("true")
    took = leaving_nothing(run_all)
    print([round(one, 3) for one in took])
    assert gone(long, 0)


def test_a_command_that_takes_too_long_says_what_it_printed(agent: Agent, long: str) -> None:
    told = agent.fails("run_command", command=f"echo one; printf two; sleep {long}", timeout=0.3)
    assert told.code == "timed_out"
    assert told.message == "The command exceeded its time limit of 0.3 s and was ended.\n\none\ntwo"


def test_a_command_may_close_its_output_and_go_on(agent: Agent) -> None:
    agent.runs("exec >&- 2>&-; sleep 0.2; touch done")
    assert (agent.root / "done").exists()


# --- what is left running ----------------------------------------------------------------------------------------

DAEMON = """
import os, sys
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
os.execlp('sleep', 'sleep', sys.argv[1][1:])
"""
LEFT_BEHIND = {
    "in the background": "sleep LONG &",
    "without our pipe": "sleep LONG >/dev/null 2>&1 </dev/null &",
    "nohup": "nohup sleep LONG >/dev/null 2>&1 &",
    "a session of its own": "setsid sleep LONG &",
    "a session of its own, grandchild": "(setsid sh -c 'sleep LONG & sleep LONG' >/dev/null 2>&1 &) &",
    "disowned": "sleep LONG & disown",
    "a daemon": f'{sys.executable} -c "{DAEMON}" xLONG >/dev/null 2>&1',
    "deaf": "(trap '' TERM HUP INT; sleep LONG; sleep LONG) &",
    "deaf, in a session of its own": "trap '' TERM; setsid sleep LONG &",
    "with an empty environment": "env -i sleep LONG &",
    "with an empty environment, in a group of its own": "set -m; env -i sleep LONG &",
    "with a false mark": "AAA=PUNCHLIST_CALL=x setsid sleep LONG &",
    "many": "for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep LONG & done",
}


@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
def test_nothing_that_a_command_leaves_runs_on(agent: Agent, long: str, command: str) -> None:
    async def run() -> None:
        begun = time.perf_counter()
        # The last command waits for a process with this argument, which it does not have itself.
        begun_too = f"until grep -qszx '[9]{long[1:]}' /proc/[0-9]*/cmdline; do :; done"
        line = f"{command.replace('LONG', long)}\n{begun_too}"
        [call] = await agent.scheduler().schedule(ToolCallRequest("run_command", {"command": line}))
        assert isinstance(call, ErroredToolCall), call
        assert "left processes running, which were ended: " in call.error.message
        assert "sleep (" in call.error.message
        assert time.perf_counter() - begun < 2

    leaving_nothing(run)
    assert gone(f"sleep\0{long}", 0)


def test_commands_that_leave_nothing_are_not_blamed(agent: Agent) -> None:
    async def run_many() -> None:
        lines = [f"sleep 0.0{number % 10} & wait; echo {number}" for number in range(60)]
        calls = await agent.scheduler().schedule(requests("run_command", [{"command": line} for line in lines]))
        assert texts(calls) == [f"{number}\n" for number in range(60)], calls

    leaving_nothing(run_many)


def test_a_command_that_is_ended_soon_after_its_start_is_found(agent: Agent, long: str) -> None:
    async def run() -> None:
        scheduler = agent.scheduler()
        for turn in range(1, 4):
            # A look at all processes that does not know the command yet.
            process_tree.still_running("nobody")
            line = f"trap '' TERM; echo ready; sleep {long}"
            batch = scheduler.schedule(ToolCallRequest("run_command", {"command": f"{line} # {turn}"}))
            await agent.has_seen("ready", turn)
            batch.cancel()
            await batch
            assert gone(long, 0)

    leaving_nothing(run)


# --- cancelled ---------------------------------------------------------------------------------------------------


def test_a_hundred_commands_cancelled_at_once_end_within_a_second(agent: Agent, long: str) -> None:
    async def run() -> float:
        line = f"trap '' TERM; sleep {long} & setsid sleep {long} & echo ready; wait"
        scheduler = agent.scheduler()
        lines = [{"command": f"{line} # {turn}"} for turn in range(100)]
        batch = scheduler.schedule(requests("run_command", lines), ordered=False)
        await agent.has_seen("ready\n", 100)
        assert len(running(long)) >= 200
        begun = time.perf_counter()
        scheduler.cancel_all()
        calls = await batch
        took = time.perf_counter() - begun
        assert all(isinstance(call, CancelledToolCall) for call in calls)
        assert gone(long, 0)
        return took

    took = leaving_nothing(run)
    print(f"cancelling took {took:.3f} s")
    assert took < 1


NASTY = [
    "sleep LONG",
    "trap '' TERM; sleep LONG",
    "setsid sleep LONG & sleep LONG",
    "(sleep LONG &) ; echo x",
    "while :; do sh -c 'sleep LONG & wait' & wait; done",
    "for i in 1 2 3 4 5; do setsid sh -c \"trap '' TERM; sleep LONG\" >/dev/null 2>&1 & done",
    "yes LONG",
    "seq 10000",
    "true",
]


async def cancel_at_random(agent: Agent, long: str, turns: int, seed: int) -> None:
    chance = random.Random(seed)
    for turn in range(turns):
        scheduler = agent.scheduler()
        lines = [f"{chance.choice(NASTY).replace('LONG', long)} # {turn} {number}" for number in range(4)]
        batch = scheduler.schedule(requests("run_command", [{"command": line} for line in lines]), ordered=False)
        await pass_time(chance.choice([0, 0.005, 0.02, 0.1, 0.4]) * chance.random())
        batch.cancel()
        calls = await batch
        assert gone(long, 0), (lines, calls, running(long))
        agent.seen.clear()


def test_commands_cancelled_at_random_moments_leave_nothing(agent: Agent, long: str) -> None:
    leaving_nothing(lambda: cancel_at_random(agent, long, 20, 13))


@pytest.mark.soak
def test_commands_cancelled_at_two_hundred_random_moments_leave_nothing(agent: Agent, long: str) -> None:
    leaving_nothing(lambda: cancel_at_random(agent, long, 200, random.randrange(10**6)))


def test_a_call_cancelled_while_it_clears_away_clears_away(agent: Agent, long: str) -> None:
    async def run() -> None:
        scheduler = agent.scheduler()
        for turn in range(1, 6):
            line = f"(trap '' TERM; exec setsid sleep {long}) >/dev/null 2>&1 & echo ready # {turn}"
            batch = scheduler.schedule(ToolCallRequest("run_command", {"command": line}))
            await agent.has_seen("ready", turn)
            await pass_time(0.05 * turn)
            batch.cancel()
            await batch
            assert gone(long, 0)

    leaving_nothing(run)


def test_a_program_that_ends_without_a_word_leaves_nothing(agent: Agent, long: str) -> None:
    async def run() -> None:
        scheduler = agent.scheduler()
        scheduler.schedule(ToolCallRequest("run_command", {"command": f"setsid sleep {long} & echo ready; wait"}))
        await agent.has_seen("ready")

    asyncio.run(run())
    assert gone(long, 5)


def test_closing_the_scheduler_ends_what_runs(agent: Agent, long: str) -> None:
    async def run() -> None:
        scheduler = agent.scheduler()
        batch = scheduler.schedule(
            ToolCallRequest("run_command", {"command": f"trap '' TERM; setsid sleep {long} & echo ready; wait"})
        )
        await agent.has_seen("ready")
        await scheduler.close()
        assert isinstance(batch.calls[0], CancelledToolCall)
        assert gone(long, 0)

    leaving_nothing(run)


def test_a_search_that_is_cancelled_leaves_nothing(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent.root / "file").write_bytes(b"a" * 60 + b"b\n")
    monkeypatch.setenv("PATH", str(tmp_path))

    async def run() -> None:
        batch = agent.scheduler().schedule(ToolCallRequest("search_text", {"pattern": "(a+)+$"}))
        await pass_time(0.1)
        batch.cancel()
        [call] = await batch
        assert not isinstance(call, SuccessfulToolCall)
        assert gone("searching.py", 0)

    leaving_nothing(run)
