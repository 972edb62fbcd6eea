"""Models that answer badly, over each wire: the turn recovers, or ends with a name; what was sent stays valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from tests.contract.asked import RESULT, pieces
from tests.contract.scripted_http import SECRET, Answer, Break
from tests.journeys.over_http import HANGS, MARKS, MODELS, NOTES, SAYS, Case, Stage, Wire, stage

AT_ONCE: Final = {"Retry-After": "0"}
TEN: Final = Answer("", [("write_file", {"path": f"{n}.txt", "content": f"{n}"}) for n in range(10)])
RECOVERED: Final = [
    NOTES,
    Answer("", [("reed_file", {"path": "x"}), ("no such name!", {})]),
    Answer("", [("read_file", '{"path": "x'), ("read_file", '["x"]'), ("read_file", "")]),
    TEN,
    Answer(""),
    Answer("Half of it", broken=Break.CUT),
    Answer("", MARKS.calls, finish=""),
    Answer(status=429, headers=AT_ONCE),
    Answer(status=500, headers=AT_ONCE),
    Answer(status=529, headers=AT_ONCE),
    SAYS,
]
CASES: Final = {
    "recovered": Case(RECOVERED, ["--mode", "yolo"]),
    "length": Case([NOTES, Answer("And then", [("write_file", '{"path": "half.txt", "con')], finish="length")]),
    "filtered": Case([NOTES, Answer("I must", finish="content_filter")]),
    "busy": Case([NOTES, *[Answer(status=529, headers=AT_ONCE)] * 4]),
    "trickle": Case([HANGS], ["--max-seconds", "5"]),
}
ONE_WIRE: Final = {
    "endless": Case([NOTES, Answer("x" * 400_000, broken=Break.ENDLESS)]),
    "no model": Case([Answer(status=404)]),
    "no key": Case([Answer(status=401, error=f"Incorrect API key provided: {SECRET}.")]),
}
"""What does not depend on the wire."""

CONTINUES: Final = "punchlist: `punchlist run --resume` continues from here.\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("bad"), CASES, chat=ONE_WIRE) as begun:
        yield begun


@pytest.fixture(params=MODELS)
def wire(request: pytest.FixtureRequest, runs: Stage) -> Wire:
    return runs.wires[request.param]


@pytest.mark.spec("C13", "C2")
def test_a_model_that_answers_badly_again_and_again_still_finishes(wire: Wire) -> None:
    run = wire.of("recovered")
    told = run.told
    assert (told["reason"], told["text"], run.code) == ("completed", "It is written.", 0), run
    assert told["continuations"] == 1
    assert len(run.asked) == len(RECOVERED)
    # Four of them were no replies.
    assert told["iterations"] == len(RECOVERED) - 4
    assert run.complaints == []
    results = [piece.written for piece in pieces(run.asked[-1]) if piece.kind == RESULT]
    assert len(results) == 1 + 2 + 3 + 10 + 1
    for result, words in zip(
        results[1:6], ["reed_file", "no such name!", *["must be an object"] * 2, "path"], strict=True
    ):
        assert words in result
    assert [(wire.project / f"{n}.txt").read_text() for n in range(10)] == [f"{n}" for n in range(10)]
    assert "Half of it" not in "".join(piece.written for piece in pieces(run.asked[-1]))


ENDS: Final = {
    "length": ("error", 1, "the model's reply reached the length limit"),
    "filtered": ("error", 1, "a content filter held back the model's reply"),
    "busy": ("error", 1, "is overloaded (HTTP 529)"),
}


@pytest.mark.spec("C2", "C13")
@pytest.mark.parametrize("case", ENDS)
def test_a_reply_that_is_no_whole_one_ends_the_turn_with_a_name_and_is_not_continued(wire: Wire, case: str) -> None:
    run = wire.of(case)
    reason, code, why = ENDS[case]
    assert (run.told["reason"], run.code, run.told["continuations"]) == (reason, code, 0), run
    assert len(run.asked) == len(CASES[case].answers)
    assert run.err.startswith(f"punchlist: Ended as {reason}: ")
    assert why in run.err
    assert f"Not finished:\n- Write x\n{CONTINUES}" in run.err
    assert run.complaints == []
    assert not (wire.project / "half.txt").exists()


@pytest.mark.spec("C6", "C13")
def test_a_reply_that_only_trickles_is_ended_when_the_time_is_up(wire: Wire) -> None:
    run = wire.of("trickle")
    assert (run.told["reason"], run.code, run.told["iterations"]) == ("budget", 3, 0), run
    assert run.err == f"punchlist: Ended as budget: the time limit of 5 seconds is reached.\n{CONTINUES}"


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("endless", "sent more than 32 MB"),
        ("no model", "has no model 'm'"),
        ("no key", "rejected the key. Check OPENAI_API_KEY."),
    ],
)
def test_what_does_not_depend_on_the_wire_ends_with_a_name_too(runs: Stage, case: str, why: str) -> None:
    run = runs.wires["chat"].of(case)
    assert (run.told["reason"], run.code, len(run.asked)) == ("error", 1, len(ONE_WIRE[case].answers))
    assert why in run.err.splitlines()[0]
    assert SECRET not in run.err + run.out


@pytest.mark.spec("C13")
def test_whatever_came_the_store_is_healthy_and_a_session_can_go_on(wire: Wire) -> None:
    for case in wire.runs:
        wire.of(case)
    checked = wire.punchlist("db", "check")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout
    again = wire.perform("length", Case([Answer("", [("list_directory", {}), *MARKS.calls]), SAYS]))
    assert (again.told["reason"], again.complaints) == ("completed", []), again
