"""Live output, and results that fit a model (S8)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.contract.toolcalls import Desk, request, run, soon, stored

from punchlist.kernel.secrets import Redactor
from punchlist.kernel.tool import ToolResult
from punchlist.storage.store import Store
from punchlist.toolcalls.execution import MAX_RESULT_LENGTH
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ErroredToolCall, SuccessfulToolCall
from punchlist.toolcalls.tool import Effect, ToolContext
from punchlist.tools.function_tool import tool

pytestmark = pytest.mark.spec("S8")


def result_of(value: Any, store: Store | None = None, **desk_with: Any) -> ToolResult | tuple[str, str]:
    @tool(effect=Effect.READ)
    async def give() -> Any:
        return value

    async def scene() -> ToolResult | tuple[str, str]:
        async with Desk(store, tools=[give], **desk_with) as desk:
            (call,) = await desk.do(request("give"))
            if isinstance(call, ErroredToolCall):
                return call.error
            assert isinstance(call, SuccessfulToolCall)
            return call.result

    return run(scene())


@pytest.mark.parametrize("name", ["speak", "speak_elsewhere"])
def test_live_output_reaches_the_listener_in_order_and_in_the_loops_thread(name: str) -> None:
    async def scene() -> None:
        async with Desk() as desk:
            lines = [f"line {n}\n" for n in range(200)]
            await desk.do(request(name, {"lines": lines}))
            assert desk.heard.output == [("a", line) for line in lines]

    run(scene())


def test_output_is_seen_while_the_call_runs() -> None:
    async def scene() -> None:
        enough = asyncio.Event()

        @tool
        async def slow(running: ToolContext) -> str:
            running.output("half way")
            await enough.wait()
            return "done"

        async with Desk(tools=[slow]) as desk:
            batch = desk.scheduler.schedule(request("slow"))
            while not desk.heard.output:
                await asyncio.sleep(0)
            assert batch.calls[0].status is CallStatus.EXECUTING
            enough.set()
            await soon(batch.ended())

    run(scene())


def test_a_tool_that_is_not_asynchronous_runs_in_a_thread_of_its_own() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            (call,) = await desk.do(request("speak_elsewhere", {"lines": []}))
            assert isinstance(call, SuccessfulToolCall)
            assert call.result.text == "speak_elsewhere"

    run(scene())


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ("plain", "plain", None),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}', {"a": [1, None, True]}),
        (5, "5", 5),
        (None, "null", None),
        (True, "true", True),
        (1.5, "1.5", 1.5),
        ("", "", None),
        ("日本 🧑‍💻", "日本 🧑‍💻", None),
    ],
)
def test_a_result_is_text_for_the_model_and_data_for_programs(value: Any, text: str, data: Any) -> None:
    assert result_of(value) == ToolResult(text, data)


@pytest.mark.parametrize(
    "value",
    [float("nan"), {"x": float("inf")}, {1, 2}, object(), b"bytes", {(1, 2): 3}, [1j]],
    ids=lambda value: type(value).__name__,
)
def test_a_result_that_is_not_json_is_an_error_that_says_so(value: Any) -> None:
    error = result_of(value)
    assert isinstance(error, tuple)
    assert error[0] == "tool_failed"
    assert "not JSON" in error[1]


def test_a_result_nested_too_deep_is_an_error() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    assert result_of(deep) == ("tool_failed", "The tool returned a value that is nested too deeply for JSON.")


def test_a_long_result_keeps_its_head_and_tail_and_is_whole_on_disk(store: Store, tmp_path: Path) -> None:
    text = "H" * 20_000 + "M" * 50_000 + "T" * 20_000
    result = result_of(text, store, folder=tmp_path / "out")
    assert isinstance(result, ToolResult)
    assert result.text.startswith("H" * (MAX_RESULT_LENGTH // 2))
    assert result.text.endswith("T" * (MAX_RESULT_LENGTH // 2))
    assert "60,000 characters omitted" in result.text
    assert len(result.text) < MAX_RESULT_LENGTH + 500
    assert result.output_file == str(tmp_path / "out" / "a.txt")
    assert result.output_file in result.text
    assert Path(result.output_file).read_text() == text
    assert stored(store).output_file == result.output_file
    assert stored(store).result == result.text


@pytest.mark.parametrize(("length", "cut"), [(MAX_RESULT_LENGTH, False), (MAX_RESULT_LENGTH + 1, True)])
def test_the_limit_is_exact(length: int, cut: bool) -> None:
    result = result_of("x" * length)
    assert isinstance(result, ToolResult)
    assert ("omitted" in result.text) is cut


def test_ten_megabytes_are_bounded_too(store: Store, tmp_path: Path) -> None:
    result = result_of({"all": "x" * 10_000_000}, store, folder=tmp_path)
    assert isinstance(result, ToolResult)
    assert len(result.text) < MAX_RESULT_LENGTH + 500
    assert result.data is None
    assert (tmp_path / "a.txt").stat().st_size > 10_000_000


def test_a_folder_that_cannot_be_written_does_not_lose_the_result(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = result_of("x" * 50_000, folder=tmp_path / "file" / "out")
    assert isinstance(result, ToolResult)
    assert result.output_file is None
    assert "characters omitted" in result.text


def test_a_long_error_is_bounded() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            (call,) = await desk.do(request("fail", {"why": "x" * 1_000_000}))
            assert isinstance(call, ErroredToolCall)
            assert len(call.error.message) < MAX_RESULT_LENGTH + 500

    run(scene())


@pytest.mark.parametrize("text", ["\x00 nul", "\ud800 half", "\x1b[31m"])
def test_odd_characters_in_a_result_are_storable(store: Store, text: str) -> None:
    assert result_of(text, store) == ToolResult(text)
    assert stored(store).status == "success"


def test_secrets_are_hidden_from_the_model_and_from_the_disk(store: Store, tmp_path: Path) -> None:
    redactor = Redactor({"API_KEY": "hunter2-hunter2"})
    text = "hunter2-hunter2 " * 5_000
    result = result_of(text, store, redactor=redactor, folder=tmp_path)
    assert isinstance(result, ToolResult)
    assert "hunter2" not in result.text
    assert "hunter2" not in (tmp_path / "a.txt").read_text()
    assert "hunter2" not in (stored(store).result or "")


def test_a_secret_that_json_writes_differently_is_hidden_too() -> None:
    secret = 'pa"ss\\word\nline'
    result = result_of({"x": secret}, redactor=Redactor(also=[secret]))
    assert isinstance(result, ToolResult)
    assert result.data != {"x": secret}
    assert "line" not in result.text


def test_a_result_made_by_the_tool_is_bounded_and_redacted_too() -> None:
    result = result_of(ToolResult("hunter2-hunter2" * 10_000), redactor=Redactor(also=["hunter2-hunter2"]))
    assert isinstance(result, ToolResult)
    assert len(result.text) < MAX_RESULT_LENGTH + 500
    assert "hunter2" not in result.text


def test_a_long_result_does_not_stop_the_loop_for_long() -> None:
    """A megabyte with all hints of secrets in them: looked through in a time that people do not notice."""
    began = time.monotonic()
    result_of("key=value token secret :// " * 40_000, redactor=Redactor())
    assert time.monotonic() - began < 10
