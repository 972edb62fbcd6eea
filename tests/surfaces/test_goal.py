"""`punchlist goal`: what a person accepts the work of a third-party agent by (V3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.conftest import Hook
from tests.surfaces.test_hook import log_of


def set_goal(punchlist: Cli, *arguments: str) -> None:
    done = punchlist("goal", "set", *arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("V3", "X2")
def test_an_agent_is_sent_back_until_the_checks_of_its_goal_pass(hook: Hook, punchlist: Cli, project: Path) -> None:
    set_goal(punchlist, "The answer is written down", "--check", "cat answer.txt", "--check", "grep -q 42 answer.txt")
    assert "The answer is written down" in hook("prompt", prompt="Go")["hookSpecificOutput"]["additionalContext"]
    missing = hook("stop")
    assert missing["decision"] == "block"
    assert "answer.txt: No such file" in missing["reason"]
    assert "The answer is written down" in missing["reason"]
    (project / "answer.txt").write_text("41")
    assert "This check fails: grep -q 42 answer.txt" in hook("stop")["reason"]
    (project / "answer.txt").write_text("42")
    assert "Confirm each point" in hook("stop")["reason"]
    assert hook("stop") == {}, "it is asked to confirm once"
    hook("prompt", prompt="And now?")
    assert "Confirm each point" in hook("stop")["reason"]


@pytest.mark.spec("V3", "C5")
def test_a_goal_that_is_not_met_does_not_loop_and_the_person_is_told(hook: Hook, punchlist: Cli, project: Path) -> None:
    set_goal(punchlist, "It works", "--check", "echo took 0.$RANDOM s; echo broken; false")
    answers = [hook("stop") for _ in range(4)]
    assert [answer.get("decision") for answer in answers] == ["block"] * 3 + [None]
    assert "the goal of this session is not met" in answers[3]["systemMessage"]
    assert "the goal of this session is not met" in log_of(project)
    assert "the goal of this session is not met" in punchlist("status").stdout
    # Other failures every time: a limit holds all the same.
    hook("prompt", prompt="Again")
    count = project / "count"
    count.write_text("")
    set_goal(punchlist, "It works", "--check", "printf x >> count; cat count; false")
    decisions = [hook("stop").get("decision") for _ in range(11)]
    assert decisions == ["block"] * 10 + [None]


@pytest.mark.spec("V3")
def test_the_list_comes_before_the_goal_and_a_goal_can_be_cleared(hook: Hook, punchlist: Cli) -> None:
    set_goal(punchlist, "Everything is fine")
    punchlist("todos", "add", "First this")
    assert "First this" in hook("stop")["reason"]
    punchlist("todos", "done", "1")
    assert "Everything is fine" in hook("stop")["reason"]
    shown = json.loads(punchlist("goal", "show", "--json").stdout)
    assert shown["goal"] == {"criteria": "Everything is fine", "checks": []}
    assert punchlist("goal", "clear").returncode == 0
    assert "no goal" in punchlist("goal", "show").stdout
    hook("prompt", prompt="Next")
    assert hook("stop") == {}


@pytest.mark.spec("V3")
def test_an_agent_can_neither_set_nor_clear_its_goal(punchlist: Cli, hook: Hook) -> None:
    set_goal(punchlist, "It works", "--check", "false")
    for command in (["set", "Nothing"], ["clear"]):
        refused = punchlist("goal", *command, env={"CLAUDECODE": "1"})
        assert refused.returncode == 1
        assert "not for an agent" in refused.stderr
    assert "It works" in punchlist("goal", "show").stdout
    bad = punchlist("goal", "set", "It works", "--check", "   ")
    assert (bad.returncode, "--check" in bad.stderr) == (1, True)
    assert punchlist("goal", "set", " ").returncode == 1
    assert "This check fails: false" in hook("stop")["reason"]


JUDGE = """
replies:
  - calls: [{tool: read_file, arguments: {path: answer.txt}}]
  - calls: [{tool: give_verdict, arguments: {verdict: not_yet, missing: "answer.txt does not give a reason"}}]
"""


def verdict_of(punchlist: Cli) -> dict[str, Any]:
    judge: dict[str, Any] = json.loads(punchlist("goal", "show", "--json").stdout)["goal"]["judge"]
    return judge


def stop_after_verdict(hook: Hook, punchlist: Cli) -> dict[str, Any]:
    """Stop until the judge, which works in a process of its own, has decided."""
    for _ in range(20):
        answer = hook("stop")
        if "Confirm each point" not in answer.get("reason", "") and "has not decided" not in str(answer):
            return answer
    raise AssertionError(f"no verdict: {verdict_of(punchlist)}")


@pytest.mark.spec("V3", "X2")
def test_a_judge_decides_about_the_goal_of_a_third_party_agent(hook: Hook, punchlist: Cli, project: Path) -> None:
    (project / "judge.yaml").write_text(JUDGE)
    (project / "answer.txt").write_text("42")
    set_goal(punchlist, "The answer has a reason", "--judge", f"rehearsal:{project / 'judge.yaml'}")
    hook("prompt", prompt="Go")
    missing = stop_after_verdict(hook, punchlist)
    assert missing["decision"] == "block"
    assert "answer.txt does not give a reason" in missing["reason"]
    assert verdict_of(punchlist)["verdict"] == "not_yet"
    assert "Last verdict: not yet: answer.txt" in punchlist("goal", "show").stdout
    assert punchlist("todos", "--json").stdout.count('"title"') == 0, "the judge keeps no list in the session"


@pytest.mark.spec("V3")
def test_a_judge_can_be_asked_directly_and_a_wrong_one_is_refused(punchlist: Cli, project: Path) -> None:
    assert "has no goal with a judge" in punchlist("goal", "judge").stderr
    refused = punchlist("goal", "set", "It works", "--judge", "no-such-provider:model")
    assert refused.returncode != 0
    for verdict, code in (("met", 0), ("unachievable", 3)):
        arguments = f"{{verdict: {verdict}, missing: a reason}}"
        (project / "judge.yaml").write_text(f"replies: [calls: [{{tool: give_verdict, arguments: {arguments}}}]]")
        set_goal(punchlist, "It works", "--judge", f"rehearsal:{project / 'judge.yaml'}")
        judged = punchlist("goal", "judge", "--json")
        assert (judged.returncode, json.loads(judged.stdout)["verdict"]) == (code, verdict), judged.stderr
