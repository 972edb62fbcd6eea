"""Tools from typed functions: schema, check, call (S3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from punchlist.errors import InvalidInput
from punchlist.toolcalls.tool import Effect, Resources, ToolContext
from punchlist.tools.function_tool import FunctionTool, tool

pytestmark = pytest.mark.spec("S3")


class Here:
    """A running call."""

    call_id = "a"
    output_folder = None
    deadline = None

    def __init__(self) -> None:
        self.said: list[str] = []

    def output(self, text: str) -> None:
        self.said.append(text)


def call(made: FunctionTool, running: ToolContext | None = None, **arguments: Any) -> Any:
    assert made.problems(arguments) in ((), [])
    return asyncio.run(_run(made, arguments, running or Here()))


async def _run(made: FunctionTool, arguments: dict[str, Any], running: ToolContext) -> Any:
    return await asyncio.wait_for(made.run(arguments, running), 20)


class Colour(StrEnum):
    RED = "red"


class Item(BaseModel):
    title: str
    size: int = 1


@tool
async def weather(city: str, days: int = 3) -> str:
    """The forecast for a city."""
    return f"{city} {days}"


def test_name_description_and_schema_come_from_the_function() -> None:
    assert (weather.name, weather.description) == ("weather", "The forecast for a city.")
    assert (weather.effect, weather.server, weather.time_limit) == (Effect.EXECUTE, None, None)
    assert weather.input_schema == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
        "required": ["city"],
        "additionalProperties": False,
    }


def test_what_schema_and_docstring_cannot_say_is_said_beside_them() -> None:
    @tool(
        name="write_file",
        description="Write.",
        effect=Effect.EDIT,
        time_limit=5,
        resources=lambda path: Resources(writes=frozenset({path})),
        preview=lambda path: f"write {path}\x1b[31m",
        command=lambda path: f"tee {path}",
    )
    async def write(path: str) -> str:
        return path

    assert (write.name, write.description, write.effect, write.time_limit) == ("write_file", "Write.", Effect.EDIT, 5)
    assert write.resources({"path": "x"}).writes == {"x"}
    assert write.command({"path": "x"}) == "tee x"
    assert write.preview({"path": "x"}).startswith("write x")
    assert "\x1b" not in write.preview({"path": "x"})


def test_a_preview_shows_the_arguments_when_there_is_no_other() -> None:
    shown = weather.preview({"city": "Zürich\x1b[2J\u202e"})
    assert "Zürich" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({}, ["city: is required"]),
        ({"city": "x", "days": 1}, []),
        ({"city": "x", "town": 1}, ["town: is not a parameter of this tool"]),
        ({"city": 1}, ["city: input should be a valid string"]),
        ({"city": "x", "days": "3"}, ["days: input should be a valid integer"]),
        ({"city": "x", "days": True}, ["days: input should be a valid integer"]),
        ({"city": "x", "days": 1.5}, ["days: input should be a valid integer"]),
        ({"city": None}, ["city: input should be a valid string"]),
    ],
)
def test_problems_begin_with_the_way_to_the_field(arguments: dict[str, Any], problems: list[str]) -> None:
    assert list(weather.problems(arguments)) == problems


def test_the_way_goes_through_lists_and_objects() -> None:
    @tool
    async def plan(items: list[Item]) -> str:
        return ""

    assert list(plan.problems({"items": [{"title": "a"}, {"title": 5}]})) == [
        "items[1].title: input should be a valid string"
    ]


def test_a_function_gets_what_its_types_say() -> None:
    got: list[Any] = []

    @tool
    async def take(
        item: Item, day: date, colour: Colour, how: Literal["a", "b"], many: tuple[int, ...], maybe: str | None = None
    ) -> None:
        got.extend([item, day, colour, how, many, maybe])

    call(take, item={"title": "x"}, day="2026-02-21", colour="red", how="a", many=[1, 2])
    assert got == [Item(title="x"), date(2026, 2, 21), Colour.RED, "a", (1, 2), None]


def test_a_function_that_is_not_asynchronous_runs_in_another_thread() -> None:
    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert call(where) is False


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), ValueError()])
def test_what_a_function_in_a_thread_raises_comes_out(error: BaseException) -> None:
    @tool
    def bad() -> None:
        raise error

    with pytest.raises(type(error)):
        call(bad)


def test_the_running_call_is_given_and_is_no_part_of_the_schema() -> None:
    @tool
    async def speak(text: str, running: ToolContext) -> str:
        running.output(text)
        return running.call_id

    here = Here()
    assert list(speak.input_schema["properties"]) == ["text"]
    assert call(speak, here, text="hello") == "a"
    assert here.said == ["hello"]
    assert list(speak.problems({"text": "x", "running": 1})) == ["running: is not a parameter of this tool"]


def test_a_model_comes_back_as_json() -> None:
    @tool
    async def give() -> Item:
        return Item(title="x")

    assert call(give) == {"title": "x", "size": 1}


def _bare(x) -> None:  # type: ignore[no-untyped-def]
    pass


def _many(*x: int) -> None:
    pass


def _named(**x: int) -> None:
    pass


def _placed(x: int, /) -> None:
    pass


@pytest.mark.parametrize("function", [_bare, _many, _named, _placed])
def test_a_function_that_a_model_could_not_call_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInput, match=function.__name__):
        FunctionTool(function)


@given(
    st.dictionaries(
        st.sampled_from(["city", "days", "x"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.floats() | st.lists(st.integers(), max_size=2),
    )
)
def test_no_arguments_are_too_odd_to_be_checked(arguments: dict[str, Any]) -> None:
    problems = list(weather.problems(arguments))
    fits = (
        set(arguments) <= {"city", "days"}
        and isinstance(arguments.get("city"), str)
        and type(arguments.get("days", 3)) is int
    )
    assert (problems == []) is fits
