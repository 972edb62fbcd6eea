"""Another model when the first fails for good."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from punchlist.models.fallback import FallbackModel
from punchlist.models.model import (
    ModelBusy,
    ModelError,
    ModelInfo,
    ModelRefused,
    ModelRequest,
    Reply,
    RequestRefused,
    TextListener,
    UserText,
)
from punchlist.models.retry import RetryingModel

HELLO = ModelRequest("", [UserText("Hello?")])


class Scripted:
    """Gives a reply, or fails, in the order of its script."""

    def __init__(self, name: str, window: int, script: Sequence[str | ModelError]) -> None:
        self.name = name
        self.info = ModelInfo(context_window=window)
        self.asked: list[ModelRequest] = []
        self._script = iter(script)

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        assert on_text is None
        self.asked.append(request)
        # Whoever asks at the same time has asked before anybody gets an answer.
        await asyncio.sleep(0)
        line = next(self._script)
        if isinstance(line, ModelError):
            raise line
        return Reply(line)


def texts(model: FallbackModel, times: int) -> list[str]:
    async def ask() -> list[str]:
        return [(await model.ask(HELLO)).text for _ in range(times)]

    return asyncio.run(ask())


@pytest.mark.parametrize("failure", [ModelBusy("Overloaded."), ModelRefused("The key is wrong."), ModelError("Gone.")])
def test_the_second_gets_the_question_that_failed_and_all_that_follow(failure: ModelError) -> None:
    told: list[str] = []
    first, second = Scripted("big", 200, ["One.", failure]), Scripted("small", 8, ["Two.", "Three."])
    model = FallbackModel(first, second, told.append)
    assert (model.name, model.info.context_window) == ("big", 200)
    assert texts(model, 3) == ["One.", "Two.", "Three."]
    assert (model.name, model.info.context_window) == ("small", 8)
    assert (len(first.asked), len(second.asked)) == (2, 2)
    assert told == [f"big: {failure} Switching to small."]


def test_a_request_that_is_wrong_by_itself_is_not_passed_on() -> None:
    first, second = Scripted("big", 200, [RequestRefused("It is too long."), "Shorter."]), Scripted("small", 8, [])
    model = FallbackModel(first, second)
    with pytest.raises(RequestRefused):
        texts(model, 1)
    assert texts(model, 1) == ["Shorter."]
    assert (model.name, second.asked) == ("big", [])


def test_the_failure_of_the_second_is_the_end() -> None:
    first, second = (
        Scripted("big", 200, [ModelBusy("Down.")]),
        Scripted("small", 8, [*[ModelBusy("Down too.")] * 2, "Up."]),
    )
    model = FallbackModel(first, second)
    for _ in range(2):
        with pytest.raises(ModelBusy, match=r"Down too\."):
            texts(model, 1)
    assert texts(model, 1) == ["Up."]
    assert len(first.asked) == 1


def test_the_first_is_asked_again_before_it_is_given_up() -> None:
    async def at_once(_: float) -> None: ...

    first = Scripted("big", 200, [ModelBusy("Down."), "Up again.", *[ModelBusy("Down.")] * 4])
    second = Scripted("small", 8, ["Here."])
    model = FallbackModel(RetryingModel(first, sleep=at_once), RetryingModel(second, sleep=at_once))
    assert texts(model, 2) == ["Up again.", "Here."]
    assert len(first.asked) == 6


def test_questions_at_the_same_time_are_told_of_once() -> None:
    async def both(model: FallbackModel) -> list[Reply]:
        return list(await asyncio.gather(model.ask(HELLO), model.ask(HELLO)))

    told: list[str] = []
    first = Scripted("big", 200, [ModelBusy("Down.")] * 2)
    model = FallbackModel(first, Scripted("small", 8, ["One.", "Two."]), told.append)
    assert {reply.text for reply in asyncio.run(both(model))} == {"One.", "Two."}
    assert len(told) == 1
