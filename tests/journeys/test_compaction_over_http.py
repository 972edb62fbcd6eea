"""A turn that fills its context window, as people and the provider see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.contract.asked import pieces, problems
from tests.contract.scripted_http import Answer, ScriptedServer
from tests.journeys.over_http import MARKS, NOTES, SAYS

MODEL = "openai-chat:gpt-4o"
"""Its window has 128,000 tokens."""


def reading(project: Path) -> list[Answer]:
    """Answers that each read a file, and report a context that grows by 8,000 tokens."""
    for n in range(12):
        (project / f"{n}.md").write_text(f"Finding {n} is {n * 7}.\n" + "and so on\n" * 1_000)
    return [Answer("", [("read_file", {"path": f"{n}.md"})], tokens=(8_000 * (n + 1), 10)) for n in range(12)]


@pytest.mark.spec("C7", "C6")
def test_the_context_is_compacted_before_it_is_full_and_people_see_it(punchlist: Cli, project: Path) -> None:
    answers = [NOTES, *reading(project), Answer("", MARKS.calls, tokens=(30_000, 10)), SAYS]
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Read all.", "--model", MODEL, "--max-iterations", "60", env=server.environment())
    assert done.returncode == 0, done.stderr
    assert "context compacted: " in done.stderr
    last = server.asked[-1]
    said = "\n".join(piece.written for piece in pieces(last))
    assert [n for n in range(12) if f"Finding {n} is {n * 7}." not in said] == []
    assert [problem for asked in server.asked for problem in problems(asked)] == []
    assert pieces(last)[0].text == "Read all."
    assert pieces(last)[1].text.startswith("Summary of the ")
    shown = punchlist("sessions", "show").stdout
    assert "compaction: Context compacted: a summary replaces " in shown


@pytest.mark.spec("C7")
def test_the_stream_has_an_event_for_it(punchlist: Cli, project: Path) -> None:
    answers = [NOTES, *reading(project), Answer("", MARKS.calls, tokens=(30_000, 10)), SAYS]
    flags = ("--model", MODEL, "--max-iterations", "60", "--json-stream")
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Read all.", *flags, env=server.environment())
    events = [json.loads(line) for line in done.stdout.splitlines()]
    news = next(event for event in events if event["event"] == "compaction")
    assert news["beforeTokens"] >= 0.7 * 128_000 > news["afterTokens"]
    assert news["messages"] > 0


TOO_LONG = Answer(status=400, error="the request exceeds the available context size")


@pytest.mark.spec("C6", "C7")
def test_the_context_of_a_model_whose_window_is_unknown_is_compacted_too(punchlist: Cli, project: Path) -> None:
    answers = [NOTES, *reading(project), Answer("", MARKS.calls, tokens=(20_000, 10)), SAYS]
    flags = ("--model", "openai-chat:local", "--max-iterations", "60", "--json-stream")
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Read all.", *flags, env=server.environment())
    news = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] == "compaction"]
    assert news
    assert 0.7 * 32_768 <= news[0]["beforeTokens"] < 32_768


@pytest.mark.spec("C6")
def test_the_window_can_be_set(punchlist: Cli, project: Path) -> None:
    answers = [NOTES, *reading(project), MARKS, SAYS]
    flags = ("--model", "openai-chat:local", "--max-iterations", "60", "--json")
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Read all.", *flags, "--context-window", "1000000", env=server.environment())
    assert json.loads(done.stdout)["reason"] == "completed"
    assert "context compacted" not in done.stderr
    (project / "punchlist.toml").write_text("[agent]\ncontext_window = 20_000\n")
    punchlist("trust", "--yes")
    full = Answer("", [("read_file", {"path": "0.md"})], tokens=(19_000, 10))
    with ScriptedServer([NOTES, full, SAYS]) as server:
        done = punchlist("run", "Read all.", *flags, env=server.environment())
    told = json.loads(done.stdout)
    assert told["reason"] == "budget"
    assert "of 20,000 tokens of the context window." in done.stderr


@pytest.mark.spec("C6", "C7")
def test_a_request_that_the_server_finds_too_long_is_sent_once_more_with_a_summary(
    punchlist: Cli, project: Path
) -> None:
    answers = [NOTES, *reading(project)[:6], TOO_LONG, MARKS, SAYS]
    flags = ("--model", MODEL, "--max-iterations", "60", "--json")
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Read all.", *flags, env=server.environment())
    assert json.loads(done.stdout)["reason"] == "completed", done.stderr
    sizes = [sum(len(piece.written) for piece in pieces(asked)) for asked in server.asked]
    assert sizes[8] < sizes[7], "shorter than the one that was refused"
    assert [problem for asked in server.asked for problem in problems(asked)] == []
    # If that is refused, too, the turn ends with the error.
    with ScriptedServer([NOTES, *reading(project)[:6], TOO_LONG, TOO_LONG]) as server:
        done = punchlist("run", "Read all.", *flags, env=server.environment())
    assert json.loads(done.stdout)["reason"] == "error"
    assert "exceeds the available context size" in done.stderr
