"""Each reason for which a turn ends, over each wire: the program as people run it, and a model on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from tests.contract.asked import changes, pieces, problems
from tests.contract.scripted_http import Answer
from tests.journeys.over_http import DONE, GOAL, HANGS, MARKS, MODELS, NOTES, SAYS, Case, Run, Stage, Wire, stage

SOON: Final = Answer("Soon.")
REPORTS: Final = Answer("Nothing is written yet.")
WRITES: Final = Answer("", [("write_file", {"path": "waiting.txt", "content": "x"})])
BOTH: Final = Answer("", [("write_file", {"path": "x.txt", "content": "x"}), *MARKS.calls])
CASES: Final = {
    "completed": Case([NOTES, SOON, BOTH, SAYS], ["--mode", "yolo"]),
    "open": Case([NOTES, SOON], ["--no-auto-complete-todos"]),
    "capped": Case([NOTES, SOON, SOON, REPORTS], ["--max-todo-continuations", "1"]),
    "budget": Case([replace(NOTES, tokens=(1_500, 10))], ["--max-tokens", "2500"]),
    "stalled": Case([NOTES, *[SOON] * 8]),
    "waiting": Case([NOTES, WRITES], then=[MARKS, SAYS]),
    "cancelled": Case([NOTES, HANGS], stopped=True),
    "error": Case([NOTES, Answer(status=400)]),
}
CODES: Final = {
    "completed": 0,
    "open": 3,
    "capped": 3,
    "budget": 3,
    "stalled": 3,
    "waiting": 4,
    "cancelled": 130,
    "error": 1,
}
WHY: Final = {
    "open": "1 item is open, and continuation is off",
    "capped": "limit of 1 continuations reached",
    "budget": "1,510 of 2,500 tokens are used; the next request needs about ",
    "stalled": "no progress in 3 continuations",
    "waiting": "write_file (",
    "cancelled": "a person pressed Ctrl-C",
    "error": "refused the request (HTTP 400): It went wrong.",
}
APART: Final = {"capped": 1, "stalled": 4}
"""Replies that are none of the turn's iterations: its report, and those of the attempt in a fresh context."""
SHOWN: Final = {"completed": "(1/1 completed)", "budget": "There is no todo list yet."}
LEFT: Final = "Not finished:\n- Write x"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("reasons"), CASES) as begun:
        yield begun


@pytest.fixture(params=MODELS)
def wire(request: pytest.FixtureRequest, runs: Stage) -> Wire:
    return runs.wires[request.param]


@pytest.mark.spec("C13", "T11")
@pytest.mark.parametrize("reason", CASES)
def test_a_turn_ends_with_its_reason(wire: Wire, reason: str) -> None:
    run = wire.of(reason)
    told = run.told
    assert (told["reason"], run.code, told["conversationId"]) == (reason, CODES[reason], reason), run
    assert _as_it_ended(run, reason)
    assert told["todos"][0]["content"] == "Write x"
    assert told["todos"][0]["status"] == ("completed" if reason == "completed" else "pending")
    replies = len(run.asked) - (reason in ("cancelled", "error"))
    assert told["iterations"] == replies - APART.get(reason, 0)
    sent, received = (1_500, 10) if reason == "budget" else (11, 7)
    assert told["usage"] == {"inputTokens": sent * replies, "outputTokens": received * replies, "cachedTokens": 0}
    assert len(run.asked) == len(CASES[reason].answers)
    # The report and the fresh attempt begin anew; each part for itself repeats what it sent before.
    own = len(run.asked) - APART.get(reason, 0)
    assert [problem for asked in run.asked for problem in problems(asked)] == []
    assert [*changes(run.asked[:own]), *changes(run.asked[own:])] == []
    if reason == "stalled":
        _shows_the_item_alone(run)
    elif reason == "capped":
        _asks_for_a_report(run)
    else:
        _shows_request_and_list(run, SHOWN.get(reason, "[ ] Write x"))


def _as_it_ended(run: Run, reason: str) -> bool:
    """What people are told: nothing when all is done, else why it ended, what is left and how to continue."""
    if reason == "completed":
        return run.err == "" and run.told["text"] == "It is written."
    begins = "Waiting for " if reason == "waiting" else f"Ended as {reason}: "
    assert begins in run.told["text"]
    ending = run.told["text"][run.told["text"].index(begins) :]
    assert WHY[reason] in ending
    assert ending.endswith(LEFT)
    first, _, more = run.err.partition(LEFT)
    assert f"{first}{LEFT}" == f"punchlist: {ending}"
    return "punchlist run --resume" in more


def _last_said(run: Run) -> list[str]:
    return [piece.text for piece in pieces(run.asked[-1]) if piece.kind == "text" and piece.role == "user"]


def _shows_request_and_list(run: Run, shown: str) -> None:
    said = _last_said(run)
    assert said[0] == GOAL
    assert said[-1].startswith("<state>\n")
    assert shown in said[-1]


def _shows_the_item_alone(run: Run) -> None:
    said = _last_said(run)
    assert said[0] == f"The whole request, for context:\n\n{GOAL}\n\nYour item: Write x"
    assert len([text for text in said if text.startswith("“Write x” is not finished.")]) == 3


def _asks_for_a_report(run: Run) -> None:
    _shows_request_and_list(run, "[ ] Write x")
    assert _last_said(run)[-2].startswith("Stop here: limit of 1 continuations reached.")
    assert run.told["text"].startswith("Soon.\n\nNothing is written yet.\n\nEnded as capped: ")


@pytest.mark.spec("C2", "C3")
def test_an_agent_that_stops_early_is_sent_back_and_finishes(wire: Wire) -> None:
    run = wire.of("completed")
    assert run.told["continuations"] == 1
    sent_back = [piece.text for piece in pieces(run.asked[2]) if piece.role == "user" and piece.kind == "text"]
    assert any("1 item is still open. The next item is: “Write x”" in text for text in sent_back)
    assert (wire.project / "x.txt").read_text() == "x"


@pytest.mark.spec("C9", "C13")
def test_what_waited_goes_on_over_the_same_wire_when_a_person_has_approved(wire: Wire) -> None:
    resumed = wire.of("waiting").resumed
    assert resumed is not None
    told = resumed.told
    assert (told["reason"], told["text"], told["continuations"]) == ("completed", "It is written.", 0)
    assert (told["turnId"], told["iterations"]) == (wire.of("waiting").told["turnId"], 4)
    assert [todo["status"] for todo in told["todos"]] == [todo["status"] for todo in DONE]
    assert (wire.project / "waiting.txt").read_text() == "x"
    assert resumed.complaints == []
    _shows_request_and_list(resumed, "(1/1 completed)")


@pytest.mark.spec("C16")
def test_what_many_runs_at_once_have_stored_is_healthy(wire: Wire) -> None:
    for reason in CASES:
        wire.of(reason)
    checked = wire.punchlist("db", "check")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout
    assert "Healthy" in checked.stdout
