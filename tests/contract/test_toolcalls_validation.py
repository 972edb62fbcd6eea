"""What cannot be a call is an error that the model can act on (S3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.toolcalls import Desk, request, run, stored, way

from punchlist.storage.store import Store
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CallError, ErroredToolCall, ToolCallRequest
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import Effect
from punchlist.toolcalls.validation import MAX_ARGUMENTS_LENGTH
from punchlist.tools.function_tool import FunctionTool, tool

pytestmark = pytest.mark.spec("S3")


def error_of(store: Store | None, asked: ToolCallRequest, *tools: FunctionTool, mode: Mode = Mode.YOLO) -> CallError:
    async def scene() -> CallError:
        async with Desk(store, mode, tools=tools) as desk:
            (call,) = await desk.do(asked)
            assert isinstance(call, ErroredToolCall)
            assert desk.ran == []
            return call.error

    return run(scene())


def test_an_unknown_tool_is_named_with_the_nearest_there_is(store: Store) -> None:
    error = error_of(store, request("lookk"))
    assert error.code == "unknown_tool"
    assert error.message.startswith("There is no tool 'lookk'. Did you mean look? Available: crash, edit,")
    assert way(store) == ["validating", "error"]
    assert (stored(store).error_code, stored(store).explanation) == error


def test_a_name_like_nothing_gets_no_suggestion() -> None:
    assert "Did you mean" not in error_of(None, request("zzzzqqq")).message


def test_no_name_is_too_odd_to_be_answered(store: Store) -> None:
    names = ["", "x" * 1_000_000, "look\x00", "\ud800", "\x1b[31mlook", "LOOK"]

    async def scene() -> None:
        async with Desk(store) as desk:
            calls = await desk.do(*[request(name, {}, f"n{number}") for number, name in enumerate(names)])
            for call in calls:
                assert isinstance(call, ErroredToolCall)
                assert call.error.code == "unknown_tool"
                assert len(call.error.message) < 1_000

    run(scene())
    assert {stored(store, f"n{number}").status for number in range(len(names))} == {"error"}


def test_wrong_arguments_are_told_with_the_way_to_the_field(store: Store) -> None:
    @tool(effect=Effect.READ)
    async def plan(items: list[dict[str, int]], title: str) -> str:
        return title

    error = error_of(store, request("plan", {"items": [{"n": 1}, {"n": "two"}], "extra": 1}), plan)
    assert error.code == "invalid_arguments"
    lines = error.message.splitlines()
    assert lines[0] == "The arguments do not fit plan:"
    assert sorted(line.partition(":")[0] for line in lines[1:]) == ["extra", "items[1].n", "title"]
    assert "title: is required" in lines
    assert "extra: is not a parameter of this tool" in lines


def test_many_problems_are_told_in_few_lines() -> None:
    error = error_of(None, request("look", {f"f{number}": 1 for number in range(500)}))
    assert len(error.message.splitlines()) == 12
    assert error.message.endswith("… and 490 more")


class Odd:
    pass


NOT_ARGUMENTS: list[Any] = [
    None,
    [],
    "text",
    5,
    True,
    {"at": Odd()},
    {"at": {1, 2}},
    {"at": b"x"},
    {"at": float("nan")},
]


def test_arguments_that_are_not_a_json_object_are_refused(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            asked = [ToolCallRequest("look", arguments, f"n{n}") for n, arguments in enumerate(NOT_ARGUMENTS)]
            for call in await desk.do(*asked):
                assert isinstance(call, ErroredToolCall)
                assert call.error.code == "invalid_input"
                assert call.error.message.startswith("arguments: ")
            assert desk.ran == []

    run(scene())
    assert {stored(store, f"n{number}").status for number in range(len(NOT_ARGUMENTS))} == {"error"}


def test_arguments_that_hold_themselves_are_refused(store: Store) -> None:
    circle: dict[str, Any] = {}
    circle["at"] = circle
    assert "not JSON" in error_of(store, request("look", circle)).message


def test_arguments_nested_ten_thousand_deep_are_refused(store: Store) -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    assert "not JSON" in error_of(store, request("look", {"at": deep})).message


def test_huge_arguments_are_refused(store: Store) -> None:
    error = error_of(store, request("look", {"at": "x" * MAX_ARGUMENTS_LENGTH}))
    assert f"at most {MAX_ARGUMENTS_LENGTH:,} characters" in error.message


def test_of_huge_arguments_only_an_excerpt_is_kept(store: Store) -> None:
    error_of(store, request("look", {"at": "x" * MAX_ARGUMENTS_LENGTH}))
    assert len(stored(store).arguments) < 100_000


def test_odd_text_in_arguments_reaches_the_tool_as_it_is(store: Store) -> None:
    texts = ["\x00", "\ud800", "\x1b]0;x\x07", "🧑‍💻" * 1_000, "\u2028"]

    @tool(effect=Effect.READ)
    async def length(of: Any) -> int:
        return len(of)

    async def scene() -> None:
        async with Desk(store, tools=[length]) as desk:
            await desk.do(*[request("length", {"of": text}, f"n{number}") for number, text in enumerate(texts)])

    run(scene())
    assert [stored(store, f"n{number}").result for number in range(5)] == [str(len(text)) for text in texts]


@pytest.mark.parametrize("place", ["problems", "resources", "preview", "command"])
def test_a_tool_that_fails_before_it_runs_is_told_of_and_harms_nobody(store: Store, place: str) -> None:
    @tool(effect=Effect.EDIT)
    async def faulty() -> str:
        return "done"

    def trip(arguments: object) -> None:
        raise ZeroDivisionError("a bug in the tool")

    setattr(faulty, place, trip)

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, tools=[faulty]) as desk:
            bad, good = await desk.do(request("faulty"), request("look", {}, "b"))
            assert isinstance(bad, ErroredToolCall)
            assert bad.error == ("tool_crashed", "faulty failed: ZeroDivisionError: a bug in the tool")
            assert good.status is CallStatus.SUCCESS

    run(scene())
