"""MCP servers that work, hang, lie and die: real processes, on pipes and on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from punchlist.errors import ConfigError
from punchlist.toolcalls.tool import AgentTool, Effect, ToolFailure
from punchlist.tools.mcp.process import LineBuffer
from punchlist.tools.mcp.servers import McpServer, McpServers, McpTool, ReconnectPolicy

SCRIPTS = Path(__file__).parent / "mcp_servers"
BOUND = 30.0


class StoppedTime:
    """A clock that only a pause moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def reconnect(self, **knobs: float) -> ReconnectPolicy:
        return ReconnectPolicy(clock=self.clock, sleep=self.sleep, **knobs)


class Call:
    call_id = "call"
    output_folder = None
    deadline = None

    def output(self, text: str) -> None:
        raise AssertionError(text)


def plain(*manners: str, **settings: Any) -> McpServer:
    return McpServer(**{"name": "s", "command": (sys.executable, str(SCRIPTS / "plain.py"), *manners)} | settings)


def modern(**settings: Any) -> McpServer:
    return McpServer(**{"name": "s", "command": (sys.executable, str(SCRIPTS / "modern.py"))} | settings)


@contextmanager
def over_http(port: int = 0, *, older: bool = False) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server on loopback, and its address."""
    command = [sys.executable, str(SCRIPTS / "modern.py"), "http", str(port), *(["older"] if older else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await story

    asyncio.run(bounded())


@asynccontextmanager
async def opened(*servers: McpServer, reconnect: ReconnectPolicy | None = None) -> AsyncIterator[dict[str, McpTool]]:
    async with McpServers(servers, reconnect=reconnect) as mcp:
        tools, notes = await mcp.tools()
        assert notes == []
        yield {tool.name: tool for tool in tools}


async def call(tool: McpTool, **arguments: Any) -> Any:
    return await tool.run(arguments, Call())


async def failure(tool: McpTool, **arguments: Any) -> str:
    with pytest.raises(ToolFailure) as failed:
        await call(tool, **arguments)
    return str(failed.value)


async def started(tool: McpTool, tools: Mapping[str, McpTool], **arguments: Any) -> asyncio.Task[Any]:
    """A call that the server has read: it reads in order, and has answered the one behind."""
    task = asyncio.create_task(call(tool, **arguments))
    await asyncio.sleep(0)
    await call(tools["s__echo"])
    return task


def notes_of(server: McpServer, reconnect: ReconnectPolicy | None = None) -> list[str]:
    notes: list[str] = []

    async def story() -> None:
        async with McpServers([server], reconnect=reconnect) as mcp:
            notes.extend((await mcp.tools())[1])

    run(story())
    return notes


def ended(pid: int) -> bool:
    """Whether the process is gone, or is within the bound."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], 5)[0])
    finally:
        os.close(watch)


# --- it works ---------------------------------------------------------------------------------------


def test_an_mcp_tool_is_an_agent_tool() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            tool: AgentTool = tools["s__echo"]
            assert (tool.server, tool.command({}), tool.description) == ("s", None, "The tool echo.")
            assert not tool.resources({}).writes
            assert tool.time_limit is not None
            assert tool.time_limit > 140

    run(story())


def test_a_server_of_the_older_protocol_is_called_through_pipes() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert int(await call(tools["s__echo"])) > 0

    run(story())


def test_a_server_of_the_newer_protocol_is_called_through_pipes() -> None:
    async def story() -> None:
        async with opened(modern()) as tools:
            assert await call(tools["s__add"], a=1, b=2) == {"total": 3}

    run(story())


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
def test_a_server_of_either_protocol_is_called_over_http(older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHEESE_TOKEN", "stilton-and-cheddar")

    async def story(url: str) -> None:
        async with opened(McpServer("s", url=url, headers={"X-Token": "Bearer ${CHEESE_TOKEN}"})) as tools:
            assert await call(tools["s__add"], a=1, b=2) == {"total": 3}
            assert await call(tools["s__header"], name="x-token") == "Bearer stilton-and-cheddar"

    with over_http(older=older) as (url, _):
        run(story(url))


def test_a_server_that_exits_at_an_unknown_first_message_is_greeted_the_older_way() -> None:
    async def story() -> None:
        async with opened(plain("strict")) as tools:
            assert int(await call(tools["s__echo"])) > 0

    run(story())


def test_the_sdk_is_not_imported_until_it_is_needed() -> None:
    slow = {"mcp", "pydantic", "jsonschema", "anyio"}
    code = f"import sys, punchlist.tools.mcp.servers; print({slow} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_nothing_is_started_until_tools_are_asked_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with McpServers([plain("starts", cwd=tmp_path)]) as mcp:
            assert not (tmp_path / "starts").exists()
            await mcp.tools()
            assert len((tmp_path / "starts").read_text().split()) == 1

    run(story())


def test_structured_content_comes_before_text_and_other_blocks_become_notes() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert await call(tools["s__echo"], value=[1, None]) == {"value": [1, None]}
            assert (await call(tools["s__pictures"])).splitlines() == [
                "one",
                "[image/png, 4 bytes]",
                "[audio/wav\\x1b, 3 bytes]",
                "[resource file:///x]",
                "[resource file:///y, text/plain]",
                "inside",
                "[resource file:///b, a/b, 3 bytes]",
            ]

    run(story())


def test_calls_of_many_tasks_share_one_process() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert len(set(await asyncio.gather(*(call(tools["s__echo"]) for _ in range(50))))) == 1

    run(story())


def test_only_a_tool_that_says_so_reads() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert tools["s__look"].effect is Effect.READ
            assert {tools[name].effect for name in ("s__echo", "s__touch")} == {Effect.EXECUTE}

    run(story())


def test_a_preview_shows_the_arguments_and_nothing_acts_on_the_terminal() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert tools["s__echo"].preview({"a": ["é\x1b[2J", 1]}) == '{\n  "a": [\n    "é\\u001b[2J",\n    1\n  ]\n}'
            assert tools["s__echo"].preview({"a": "\u202e"}) == '{\n  "a": "\\u202e"\n}'

    run(story())


# --- lists ------------------------------------------------------------------------------------------


def test_all_pages_of_a_list_are_read() -> None:
    async def story() -> None:
        async with opened(plain("pages")) as tools:
            assert list(tools) == ["s__t0", "s__t1", "s__t2", "s__t3", "s__t4"]

    run(story())


def test_a_list_without_end_is_cut_and_said_so() -> None:
    async def story() -> None:
        async with McpServers([plain("pages-for-ever")]) as mcp:
            tools, notes = await mcp.tools()
        assert len(tools) == 1000
        assert notes == ["MCP server 's': the list of tools is too long. The first 1,000 are offered."]

    run(story())


def test_a_list_of_empty_pages_is_cut_and_said_so() -> None:
    [note] = notes_of(plain("empty-pages"))
    assert note == "MCP server 's': the list of tools is too long. The first 0 are offered."


def test_hostile_names_and_descriptions_are_made_safe() -> None:
    async def story() -> None:
        async with McpServers([plain("hostile")]) as mcp:
            tools, notes = await mcp.tools()
        names = [tool.name for tool in tools]
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
        assert len(set(names)) == len(names) == 10
        assert names[:4] == ["s__a_b", "s__a_b_2", "s__a_b_3", "s__a_b_4"]
        by_name = {tool.name: tool for tool in tools}
        assert by_name["s__a_b_2"].description == "\\x1b]0;owned\\x07\\u202eright to left"
        assert len(by_name["s__much"].description) == 4000
        assert by_name["s__wide"].input_schema == {"type": "object"}
        assert notes == [
            "MCP server 's': the input schema of s__wide is longer than 100,000 characters. "
            "The tool is offered without it."
        ]

    run(story())


def test_a_list_that_changed_is_seen_when_asked_again() -> None:
    async def story() -> None:
        async with McpServers([modern()]) as mcp:
            before, _ = await mcp.tools()
            await call({tool.name: tool for tool in before}["s__grow"])
            after, _ = await mcp.tools()
            assert {tool.name for tool in after} - {tool.name for tool in before} == {"s__late"}

    run(story())


def test_a_changed_description_changes_the_fingerprint(tmp_path: Path) -> None:
    async def story() -> None:
        async with McpServers([plain("describes-from-file", cwd=tmp_path)]) as mcp:
            prints = []
            # The last two differ only behind what is shown.
            for text in ("Says it again.", "Says it again.", "Sends it away.", "x" * 5000, "x" * 5001):
                (tmp_path / "description").write_text(text)
                [tool], _ = await mcp.tools()
                prints.append(tool.fingerprint)
        assert re.fullmatch("[0-9a-f]{64}", prints[0])
        assert prints[0] == prints[1]
        assert len(set(prints)) == 4

    run(story())


# --- arguments --------------------------------------------------------------------------------------


def test_wrong_arguments_show_the_path_to_the_field() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            order = tools["s__order"]
            assert order.problems({"items": [{"title": "a"}], "count": None}) == []
            assert order.problems({}) == ["items: is required"]
            assert order.problems({"items": [{"title": "a"}, {}, {"title": 3}], "count": "x", "much\x1b": 1}) == [
                "items[1].title: is required",
                "items[2].title: must be string, got a number",
                "count: must be integer, got text; or must be null, got text",
                "arguments: Additional properties are not allowed ('much\\x1b' was unexpected)",
            ]
            assert len(order.problems({"items": [{}] * 100})) == 10
            assert len(order.problems({"items": "x" * 10_000_000})[0]) < 400

    run(story())


def test_the_draft_that_a_schema_names_is_followed() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert tools["s__draft4"].problems({"n": 3}) == ["n: 3 is less than or equal to the minimum of 3"]
            assert tools["s__draft4"].problems({"n": 4}) == []

    run(story())


@pytest.mark.parametrize("schema", ["broken", "elsewhere", "endless", "doubling", "slow_pattern"])
def test_a_schema_that_cannot_be_checked_accepts_any_object(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def story() -> None:
        async with opened(plain()) as tools:
            monkeypatch.setattr("socket.socket.connect", lambda *address: asked.append(address))
            before = time.monotonic()
            assert tools[f"s__{schema}"].problems({"a": "a" * 64 + "!"}) == []
            assert tools[f"s__{schema}"].problems({}) == []
            assert time.monotonic() - before < 2
            assert asked == []

    run(story())


# --- refusals ---------------------------------------------------------------------------------------


def test_an_error_of_the_tool_reaches_the_model_as_text() -> None:
    async def story() -> None:
        async with opened(plain(env={"TOKEN": "wensleydale"})) as tools:
            assert await failure(tools["s__fail"]) == "no such \\x1b[31mcheese, [hidden]"

    run(story())


def test_an_error_of_the_protocol_does_not_end_the_connection() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            pid = await call(tools["s__echo"])
            assert await failure(tools["s__refuse"]) == "MCP server 's' refused the request: not today"
            assert "not valid MCP (content: Input should be a valid list)" in await failure(tools["s__nonsense"])
            assert await call(tools["s__echo"]) == pid

    run(story())


# --- servers that die -------------------------------------------------------------------------------


def test_all_calls_in_flight_fail_at_once_when_the_server_dies() -> None:
    async def story() -> None:
        async with opened(plain(env={"TOKEN": "wensleydale"})) as tools:
            hanging = await started(tools["s__hang"], tools)
            before = time.monotonic()
            told = await failure(tools["s__die"])
            with pytest.raises(ToolFailure, match=r"MCP server 's' exited with code 3\."):
                await hanging
            assert time.monotonic() - before < 5
            assert told == (
                "MCP server 's' exited with code 3. The call may have taken effect. "
                "It is started again at the next call. Try again.\n"
                "The end of its standard error:\n"
                "loading\n"
                "out of cheese, token [hidden] \\x1b[31m"
            )

    run(story())


def test_a_server_that_is_killed_is_named_with_the_signal() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            pid = int(await call(tools["s__echo"]))
            hanging = await started(tools["s__hang"], tools)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ToolFailure, match=r"was ended by SIGKILL\..*Try again"):
                await hanging
            assert int(await call(tools["s__echo"])) != pid

    run(story())


def test_the_end_of_a_server_is_noticed_though_its_child_holds_the_pipes() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            assert "exited with code 4" in await failure(tools["s__quit_behind_child"])

    run(story())


def test_an_answer_given_before_the_end_arrives() -> None:
    async def story() -> None:
        for _ in range(10):
            async with opened(plain()) as tools:
                assert int(await call(tools["s__farewell"])) > 0

    run(story())


def test_one_server_that_dies_does_not_disturb_another() -> None:
    async def story() -> None:
        async with opened(plain(), plain(name="other")) as tools:
            pid = await call(tools["other__echo"])
            await failure(tools["s__die"])
            assert await call(tools["other__echo"]) == pid

    run(story())


def test_a_server_is_restarted_with_pauses_that_double_and_end_with_health(tmp_path: Path) -> None:
    time_ = StoppedTime()

    def starts() -> int:
        return len((tmp_path / "starts").read_text().split())

    async def story() -> None:
        server = plain("starts", cwd=tmp_path)
        async with opened(
            server, reconnect=time_.reconnect(first=0.5, max_pause=4, healthy_after=60, patience=2)
        ) as tools:
            die = tools["s__die"]
            for _ in range(3):
                assert "at the next call" in await failure(die)
            assert (time_.pauses, starts()) == ([0.5, 1.0], 3)
            # 2 s is what a call waits; the pause after the fourth death is longer.
            assert "started again in 4 s. Try again then" in await failure(die)
            assert (time_.pauses, starts()) == ([0.5, 1.0, 2.0], 4)
            for _ in range(20):
                assert "exited with code 3. It can be started again in 4 s" in await failure(die)
            assert starts() == 4
            time_.now += 2.5
            await call(tools["s__echo"])
            assert (time_.pauses[-1], starts()) == (1.5, 5)
            time_.now += 60
            await failure(die)
            await call(tools["s__echo"])
            assert (time_.pauses[-1], starts()) == (0.5, 6)

    run(story())


def test_calls_that_wait_for_a_restart_get_one_process(tmp_path: Path) -> None:
    time_ = StoppedTime()

    async def story() -> None:
        async with opened(plain("starts", cwd=tmp_path), reconnect=time_.reconnect()) as tools:
            await failure(tools["s__die"])
            assert len(set(await asyncio.gather(*(call(tools["s__echo"]) for _ in range(10))))) == 1
        assert len((tmp_path / "starts").read_text().split()) == 2

    run(story())


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
def test_an_http_server_that_dies_fails_its_calls_and_is_found_again(older: bool) -> None:
    time_ = StoppedTime()

    async def story() -> None:
        with over_http(older=older) as (url, process):
            port = int(url.split(":")[2].split("/")[0])
            async with opened(McpServer("s", url=url), reconnect=time_.reconnect()) as tools:
                hanging = asyncio.create_task(call(tools["s__hang"]))
                await asyncio.sleep(0)
                assert await call(tools["s__add"], a=1, b=1)
                before = time.monotonic()
                told = await failure(tools["s__die"])
                assert "The call may have taken effect. It is connected to again at the next call" in told
                assert "Try again" in await task_failure(hanging)
                assert time.monotonic() - before < 5
                process.wait(5)
                assert "could not be reached" in await failure(tools["s__add"], a=1, b=1)
                with over_http(port, older=older):
                    assert await call(tools["s__place"], region="Cheddar") == "Cheddar"

    run(story())


def test_an_http_server_that_forgot_the_session_gets_a_new_one() -> None:
    time_ = StoppedTime()

    async def story() -> None:
        with over_http(older=True) as (url, process):
            port = int(url.split(":")[2].split("/")[0])
            async with opened(McpServer("s", url=url), reconnect=time_.reconnect()) as tools:
                process.kill()
                process.wait(5)
                with over_http(port, older=True):
                    assert "Try again" in await failure(tools["s__add"], a=1, b=2)
                    assert await call(tools["s__add"], a=1, b=2) == {"total": 3}

    run(story())


async def task_failure(task: asyncio.Task[Any]) -> str:
    with pytest.raises(ToolFailure) as failed:
        await task
    return str(failed.value)


# --- servers that hang ------------------------------------------------------------------------------


def test_a_cancelled_call_leaves_the_connection_to_the_others() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            pid = await call(tools["s__echo"])
            one, other = await started(tools["s__hang"], tools), await started(tools["s__hang"], tools)
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
            assert await call(tools["s__echo"]) == pid
            assert not other.done()
            other.cancel()

    run(story())


def test_a_call_out_of_time_fails_and_the_others_go_on() -> None:
    async def story() -> None:
        async with opened(plain(call_timeout=0.3)) as tools:
            pid = await call(tools["s__echo"])
            told = await failure(tools["s__hang"])
            assert told.startswith("MCP server 's' did not finish the call within 0.3 s; it was asked to stop.")
            assert await call(tools["s__echo"]) == pid

    run(story())


def test_a_server_that_answers_nothing_any_more_is_replaced() -> None:
    time_ = StoppedTime()

    async def story() -> None:
        async with opened(plain(call_timeout=0.3), reconnect=time_.reconnect(answer_within=0.3)) as tools:
            pid = int(await call(tools["s__echo"]))
            told = await failure(tools["s__freeze"])
            assert told.startswith("MCP server 's' did not answer a call within 0.3 s and no longer responds. ")
            assert int(await call(tools["s__echo"])) != pid
            assert ended(pid)

    run(story())


def test_an_http_server_that_answers_nothing_any_more_is_given_up() -> None:
    time_ = StoppedTime()

    async def story() -> None:
        with over_http() as (url, process):
            server = McpServer("s", url=url, call_timeout=0.3)
            async with opened(server, reconnect=time_.reconnect(answer_within=0.3)) as tools:
                process.send_signal(signal.SIGSTOP)
                assert "did not answer a call within 0.3 s and no longer responds" in await failure(
                    tools["s__add"], a=1, b=2
                )
                process.send_signal(signal.SIGCONT)
                assert await call(tools["s__add"], a=1, b=2) == {"total": 3}

    run(story())


def test_an_http_server_that_does_not_say_goodbye_does_not_keep_us() -> None:
    async def story() -> None:
        with over_http(older=True) as (url, process):
            async with opened(McpServer("s", url=url)):
                process.send_signal(signal.SIGSTOP)
                before = time.monotonic()
            assert time.monotonic() - before < 2.5

    run(story())


def test_a_server_that_hangs_at_its_start_is_given_up() -> None:
    [note] = notes_of(plain("silent", start_timeout=0.5))
    assert note == (
        "MCP server 's' did not answer within 0.5 s of its start. It is started again at the next call. Try again.\n"
        "The end of its standard error:\nthinking"
    )


def test_a_server_that_never_lists_its_tools_is_given_up() -> None:
    [note] = notes_of(plain("never-lists", start_timeout=0.5))
    assert note.startswith("MCP server 's' did not list its tools within 0.5 s. It is started again")


@pytest.mark.parametrize("under_way", [False, True], ids=["asked for", "under way"])
def test_closing_does_not_wait_for_a_start(under_way: bool, tmp_path: Path) -> None:
    async def story() -> None:
        async with McpServers([plain("starts", "silent", cwd=tmp_path, start_timeout=600)]) as mcp:
            asking = asyncio.create_task(mcp.tools())
            await asyncio.sleep(0)
            while under_way and not (tmp_path / "starts").exists():
                await asyncio.sleep(0)
            before = time.monotonic()
        assert time.monotonic() - before < 2.5
        tools, [note] = await asking
        assert tools == []
        assert "is closed" in note
        assert not under_way or ended(int((tmp_path / "starts").read_text()))

    run(story())


# --- servers that do not start ----------------------------------------------------------------------


def test_the_tools_of_the_others_are_there_when_some_servers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_CHEESE", raising=False)

    async def story() -> None:
        servers = [
            McpServer("absent", ("/nonexistent/cheese",)),
            McpServer("nowhere", url="http://127.0.0.1:9/mcp"),
            plain("fails-at-start", name="failing"),
            plain(name="poor", env={"KEY": "$NO_SUCH_CHEESE"}),
            plain("babbles", name="babbling"),
            plain("greets", name="good"),
        ]
        async with McpServers(servers) as mcp:
            tools, notes = await mcp.tools()
        assert {tool.server for tool in tools} == {"good"}
        absent, nowhere, failing, poor, babbling = notes
        assert "'absent' could not be started: [Errno 2] No such file or directory" in absent
        assert "'nowhere' could not be reached" in nowhere
        assert "'failing' did not start: it exited with code 1." in failing
        assert "\nno licence" in failing
        assert poor == (
            "MCP server 'poor' was not started: env.KEY takes its value from the environment variable "
            "NO_SUCH_CHEESE, which is not set. Set it, or change the setting."
        )
        assert "'babbling' did not start: it prints something other than MCP messages" in babbling
        assert "cheese cheese" in babbling

    run(story())


def test_a_missing_sdk_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    [note] = notes_of(plain())
    assert note.startswith("MCP server 's' cannot be used: ")
    assert "Install the Python package `mcp`" in note


def test_a_refusal_over_http_is_told_with_its_status() -> None:
    with over_http() as (url, _):
        [note] = notes_of(McpServer("s", url=url.replace("/mcp", "/elsewhere"), headers={"A": "wensleydale"}))
    assert "'s' did not start a session" in note
    assert note.endswith("\nIts last answer was HTTP 404 Not Found")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a__b"},
        {"name": "a b"},
        {"name": ""},
        {"name": "n" * 33},
        {"command": ()},
        {"url": "http://127.0.0.1"},
        {"call_timeout": 0},
    ],
    ids=str,
)
def test_a_setting_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        McpServer(**{"name": "s", "command": ("x",)} | wrong)


def test_two_servers_cannot_have_one_name() -> None:
    with pytest.raises(ConfigError, match="Two MCP servers are named 's'"):
        McpServers([plain(), plain()])


# --- environment and secrets ------------------------------------------------------------------------


def test_a_server_sees_little_of_our_environment_and_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHEESE_TOKEN", "stilton")
    monkeypatch.setenv("OUR_SECRET", "gorgonzola")

    async def story() -> None:
        async with opened(plain(env={"A": "$CHEESE_TOKEN", "B": "x-${CHEESE_TOKEN}", "C": "5$CHEESE_TOKEN"})) as tools:
            env = json.loads(await call(tools["s__env"]))
        assert (env["A"], env["B"], env["C"]) == ("stilton", "x-stilton", "5$CHEESE_TOKEN")
        assert "PATH" in env
        assert "OUR_SECRET" not in env
        assert "CHEESE_TOKEN" not in env

    run(story())


def test_secrets_are_not_in_a_repr() -> None:
    server = McpServer("s", ("x",), env={"KEY": "wensleydale"}, headers={"Authorization": "Bearer wensleydale"})
    assert "wensleydale" not in repr(server) + repr(McpServer("t", url="http://x/?key=wensleydale"))


def test_what_the_sdk_logs_stays_off_our_screen() -> None:
    """In a process of its own: pytest takes care of log messages by itself."""
    code = f"""
import asyncio, os, sys
from punchlist.tools.mcp.servers import McpServer, McpServers

async def story():
    async with McpServers([McpServer("s", url=sys.argv[1])]) as mcp:
        tools, _ = await mcp.tools()
        os.kill(int(sys.argv[2]), {signal.SIGKILL.value})
        print(len(tools))

asyncio.run(story())
"""
    with over_http(older=True) as (url, process):
        done = subprocess.run(
            [sys.executable, "-c", code, url, str(process.pid)], capture_output=True, text=True, check=True
        )
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_what_a_server_prints_stays_off_our_screen(capfd: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with opened(plain("greets")) as tools:
            await failure(tools["s__die"])

    run(story())
    assert capfd.readouterr() == ("", "")


# --- nothing is left --------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", ["", "stubborn"], ids=["polite", "stubborn"])
def test_a_server_and_its_stubborn_child_are_ended_on_close(manner: str) -> None:
    async def story() -> None:
        async with opened(plain(manner)) as tools:
            pids = [int(await call(tools["s__echo"])), int(await call(tools["s__child"]))]
            before = time.monotonic()
        assert time.monotonic() - before < 3
        assert all(map(ended, pids))

    run(story())


def test_the_child_of_a_server_that_died_is_ended() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            child = int(await call(tools["s__child"]))
            await failure(tools["s__die"])
            await call(tools["s__echo"])
            assert ended(child)

    run(story())


def test_calls_in_flight_end_when_the_servers_are_closed() -> None:
    async def story() -> None:
        async with opened(plain()) as tools:
            hanging = await started(tools["s__hang"], tools)
        assert (await task_failure(hanging)).startswith(
            "MCP server 's' is closed because the program is shutting down."
        )
        assert "is closed" in await failure(tools["s__echo"])

    run(story())


def test_closing_goes_through_though_it_is_cancelled() -> None:
    async def story() -> None:
        pids = []

        async def scene() -> None:
            async with opened(plain("stubborn")) as tools:
                pids.append(int(await call(tools["s__echo"])))

        task = asyncio.create_task(scene())
        while not pids:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended(pids[0])

    run(story())


async def _everything(url: str) -> None:
    time_ = StoppedTime()
    servers = [
        plain(call_timeout=5),
        plain("silent", name="silent", start_timeout=0.2),
        McpServer("absent", ("/nonexistent/cheese",)),
        McpServer("http", url=url),
        McpServer("nowhere", url="http://127.0.0.1:9/mcp"),
    ]
    async with McpServers(servers, reconnect=time_.reconnect()) as mcp:
        tools = {tool.name: tool for tool in (await mcp.tools())[0]}
        hanging = [await started(tools["s__hang"], tools), asyncio.create_task(call(tools["http__hang"]))]
        await call(tools["http__add"], a=1, b=2)
        await failure(tools["s__quit_behind_child"])
        await call(tools["s__echo"])
        hanging[1].cancel()
    await asyncio.gather(*hanging, return_exceptions=True)


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
def test_no_task_process_or_file_is_left(older: bool) -> None:
    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def children() -> list[str]:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    async def story(url: str) -> None:
        await _everything(url)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for _ in range(3):
            await asyncio.sleep(0)
        assert files() == before + 3  # the loop's own

    with over_http(older=older) as (url, _):
        # Other tests of this run may have left processes of their own.
        before, started_before = files(), children()
        run(story(url))
        assert files() == before
        assert children() == started_before


def test_lines_are_whole_however_they_come() -> None:
    lines = LineBuffer()
    assert lines.feed(b"a") == []
    assert lines.unfinished == 1
    assert lines.feed(b"b\nc\n\nd") == [b"ab", b"c", b""]
    assert lines.feed(b"\n") == [b"d"]
    assert lines.unfinished == 0
