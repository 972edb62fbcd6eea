"""Texts for a model name only tools that it is offered (C3, T8)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, plans, says

from punchlist.agent.definitions import BUILT_IN, CHECKLIST_TOOL, OWN_LIST_TOOLS, PLAN_TOOLS
from punchlist.models.model import CallReturn, ModelRequest, Reply, UserText

NAMES = {
    *PLAN_TOOLS,
    *OWN_LIST_TOOLS,
    CHECKLIST_TOOL,
    "delegate",
    "finish_item",
    "cannot_do_item",
    "ask_person",
    "give_verdict",
    "claim_todo",
    "run_check",
}
NAMED = re.compile(rf"\b(?:{'|'.join(sorted(NAMES))})\b")
TALK = [says(f"Later {number}.") for number in range(12)]
WRITTEN = ("TodoWrite", {"todos": [{"content": "A", "activeForm": "A", "status": "pending"}]})
DELEGATED = calls(("delegate", {"type": "coder", "mission": "Do it.", "todoId": 1}))
UNKNOWN = calls(("no_such_tool", {}))


def texts(request: ModelRequest) -> list[str]:
    """What the program says to the model: not what the model has said itself."""
    said = [message.text for message in request.messages if isinstance(message, UserText | CallReturn)]
    assert all(isinstance(message, UserText | CallReturn | Reply) for message in request.messages)
    return [request.system, *said, *(offer.description for offer in request.tools)]


def supervisor(scene: Rehearsing) -> None:
    """As it is built in."""


def with_lists(lists: str) -> Callable[[Rehearsing], None]:
    def set_up(scene: Rehearsing) -> None:
        scene.agent = replace(scene.agent, lists=lists)

    return set_up


def alone(scene: Rehearsing) -> None:
    scene.agent = BUILT_IN["coder"]


def driven(scene: Rehearsing) -> None:
    scene.agent = replace(scene.agent, strategy="drive")


SET_UPS: dict[str, tuple[Callable[[Rehearsing], None], list[Any], list[Any]]] = {
    "supervisor": (supervisor, [UNKNOWN, plans("A", "B"), *TALK], []),
    "supervisor with a worker": (supervisor, [plans("A"), DELEGATED, *TALK], [UNKNOWN, plans("C"), *TALK]),
    "worker that writes no plan": (supervisor, [plans("A"), DELEGATED, *TALK], [*TALK]),
    "checklist": (with_lists("checklist"), [calls(WRITTEN), *TALK], []),
    "checklist and worker": (with_lists("checklist"), [DELEGATED, calls(WRITTEN), *TALK], [plans("C"), *TALK]),
    "both": (with_lists("both"), [plans("A"), calls(WRITTEN), *TALK], []),
    "coder alone": (alone, [UNKNOWN, calls(WRITTEN), *TALK], []),
    "drive": (driven, [plans("A"), *TALK], []),
}


@pytest.mark.spec("C3", "T8", "T13")
@pytest.mark.parametrize("name", SET_UPS)
def test_no_text_for_a_model_names_a_tool_that_it_is_not_offered(rehearse: Rehearse, name: str) -> None:
    set_up, replies, of_worker = SET_UPS[name]
    scene = rehearse(*replies, coder=of_worker) if of_worker else rehearse(*replies)
    set_up(scene)
    scene.run()
    asked = [request for requests in scene.model.requests.values() for request in requests]
    assert len(asked) > 2
    for request in asked:
        offered = {offer.name for offer in request.tools}
        if not offered:
            continue
        for text in texts(request):
            assert set(NAMED.findall(text)) <= offered, text


@pytest.mark.spec("C3", "T13")
def test_a_worker_that_cannot_wait_is_told_to_report_what_needs_a_person(rehearse: Rehearse) -> None:
    scene = rehearse(plans("A"), DELEGATED, *TALK, coder=[plans("C"), *TALK])
    scene.run()
    of_worker = scene.model.requests["coder"]
    assert "wait_todo" not in {offer.name for offer in of_worker[0].tools}
    assert "needs a person or will not be done, cancel it with the reason and report that" in of_worker[0].system
    sent = [message.text for message in of_worker[-1].messages if isinstance(message, UserText)]
    told = "If it needs a person or will not be done, call complete_todo with status cancelled and the reason, and"
    assert any(told in text for text in sent)
    assert "wait_todo" in scene.asked[0].system


@pytest.mark.spec("T12", "T13")
def test_without_a_plan_no_mission_is_for_an_item_of_it(rehearse: Rehearse) -> None:
    scene = rehearse(DELEGATED, says("Done."))
    with_lists("checklist")(scene)
    scene.run()
    (offer,) = (offer for offer in scene.asked[0].tools if offer.name == "delegate")
    assert "todoId" not in offer.input_schema["properties"]
    assert "todoId" not in scene.asked[0].system
    assert "end the item" not in scene.asked[0].system
    assert "todoId: there is no plan here; leave it out" in texts(scene.asked[1])[-len(scene.asked[1].tools) - 1]


@pytest.mark.spec("T12", "T11")
@pytest.mark.parametrize("reference", [1, "1"])
def test_a_mission_names_its_item_by_number(rehearse: Rehearse, reference: object) -> None:
    delegated = calls(("delegate", {"type": "coder", "mission": "Do it.", "todoId": reference}))
    scene = rehearse(plans("Build it"), delegated, says("Done."), coder=[says("Built.")])
    scene.run()
    assert "Item: Build it" in scene.model.requests["coder"][0].messages[0].text


@pytest.mark.spec("C10", "V1")
def test_completing_an_item_that_waits_is_refused_at_once_and_not_questioned_before(rehearse: Rehearse) -> None:
    waits = ("wait_todo", {"todoId": 1, "person": "Which region?"})
    ends = ("complete_todo", {"todoId": 1, "outcome": "Done."})
    scene = rehearse(plans("Deploy", "Test"), calls(waits), calls(ends), says("Done."))
    scene.run()
    told = [message.text for message in scene.asked[3].messages if isinstance(message, CallReturn)][-1]
    assert told.startswith("“Deploy” (number 1) cannot be completed: it waits for an answer to “Which region?”.")
