"""The opencode plugin's own guard: whatever `punchlist hook` says, it never becomes a loop (X2)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import ROOT

PLUGIN: Final = ROOT / "src" / "punchlist" / "integrations" / "install" / "opencode_plugin.js"
STAGE: Final = Path(__file__).with_name("stage.mjs")
MOST: Final = 10

Step = dict[str, Any]
Play = Callable[..., "Played"]

pytestmark = pytest.mark.spec("X2")

# In place of Punchlist: it always sends the agent back, and notes what it was asked.
STAND_IN: Final = """
import json, sys
event, said = sys.argv[2], json.load(sys.stdin)
with open({notes!r}, "a") as file:
    print(json.dumps([event, said]), file=file)
name = said["hook_event_name"]
if event == "stop":
    print(json.dumps({{"decision": "block", "reason": "Go on."}}))
else:
    print(json.dumps({{"hookSpecificOutput": {{"hookEventName": name, "additionalContext": "Told by " + event}}}}))
"""


@dataclass(frozen=True, slots=True)
class Played:
    prompts: list[dict[str, Any]]
    toasts: list[str]
    told: list[list[str]]
    asked: list[tuple[str, dict[str, Any]]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def play(scene: Sequence[Step], command: list[str] | None = None) -> Played:
        notes, stand_in, plugin = tmp_path / "notes", tmp_path / "stand_in.py", tmp_path / "punchlist.mjs"
        stand_in.write_text(STAND_IN.format(notes=str(notes)), encoding="utf-8")
        program = json.dumps(command or [sys.executable, str(stand_in)])
        source = PLUGIN.read_text(encoding="utf-8")
        assert source.count('["punchlist"]') == 1, "the installer replaces it"
        plugin.write_text(source.replace('["punchlist"]', program), encoding="utf-8")
        done = subprocess.run(
            ["node", STAGE, plugin],
            input=json.dumps(scene),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        asked = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        return Played(**json.loads(done.stdout), asked=[(event, said) for event, said in asked])

    return play


def idle(session: str = "main") -> Step:
    return {"event": {"type": "session.idle", "properties": {"sessionID": session}}}


def said(text: str) -> Step:
    return {"message": text}


def test_it_sends_back_a_limited_number_of_times_in_a_row(play: Play) -> None:
    played = play([said("Write a parser."), *[idle()] * (MOST + 3)])
    assert [prompt["parts"][0]["text"] for prompt in played.prompts] == ["Go on."] * MOST
    assert str(MOST) in played.toasts[0]


def test_a_persons_message_starts_the_count_again(play: Play) -> None:
    played = play([said("Write a parser."), *[idle()] * (MOST + 1), said("And test it."), idle()])
    assert len(played.prompts) == MOST + 1


def test_its_own_prompt_is_not_taken_for_a_persons(play: Play) -> None:
    played = play([said("Write a parser."), idle(), idle()])
    assert [event for event, _ in played.asked].count("prompt") == 1
    active = [about["stop_hook_active"] for event, about in played.asked if event == "stop"]
    assert active == [False, True]


def test_it_goes_on_with_the_agent_that_the_person_chose(play: Play) -> None:
    assert play([said("Write a parser."), idle()]).prompts[0]["agent"] == "build"


@pytest.mark.parametrize(
    "ending",
    [
        {"type": "session.error", "properties": {"sessionID": "main", "error": {"name": "MessageAbortedError"}}},
        {
            "type": "message.updated",
            "properties": {
                "info": {"role": "assistant", "sessionID": "main", "error": {"name": "MessageAbortedError"}}
            },
        },
    ],
    ids=["error", "aborted"],
)
def test_after_an_abort_or_an_error_it_is_quiet_until_the_person_speaks(play: Play, ending: Step) -> None:
    played = play([said("Write a parser."), {"event": ending}, idle()])
    assert played.prompts == []
    assert "stop" not in [event for event, _ in played.asked]
    assert len(play([said("Write a parser."), {"event": ending}, idle(), said("Go on."), idle()]).prompts) == 1


def test_a_person_who_is_faster_is_not_interrupted(play: Play) -> None:
    played = play([said("Write a parser."), {**idle(), "meanwhile": True}, said("Stop that.")])
    assert played.prompts == []


def test_two_idle_events_at_once_are_one_question(play: Play) -> None:
    played = play([said("Write a parser."), {**idle(), "meanwhile": True}, {**idle(), "meanwhile": True}])
    assert len(played.prompts) == 1


def test_sessions_of_subagents_are_left_alone(play: Play) -> None:
    assert play([idle("child 1")]).prompts == []
    created = {"type": "session.created", "properties": {"info": {"id": "main", "parentID": "another"}}}
    played = play([{"event": created}, said("Search."), {"tool": "todowrite"}, idle()])
    assert (played.prompts, played.asked) == ([], [])


def test_a_subagent_that_it_did_not_see_begin_is_left_alone_too(play: Play) -> None:
    assert play([{"message": "Search.", "session": "child 1"}, idle("child 1")]).prompts == []


def test_the_list_is_told_at_the_beginning_and_after_compaction(play: Play) -> None:
    request: Step = {"request": True}
    played = play([said("Write a parser."), request, {"compaction": True}, request, idle(), request])
    first, compacted, after, later = played.told
    assert first == ["Told by prompt", "Told by session-start"]
    assert compacted == after == ["Told by session-start"]
    assert later == []
    assert [about["source"] for event, about in played.asked if event == "session-start"] == ["startup", "compact"]


def test_a_session_that_is_gone_on_with_is_not_taken_for_a_new_one(play: Play) -> None:
    played = play([{"message": "Go on.", "session": "resumed 1"}, {"request": True, "session": "resumed 1"}])
    assert [about["source"] for event, about in played.asked if event == "session-start"] == ["resume"]


def test_tools_are_reported_and_never_waited_for(play: Play) -> None:
    played = play([said("Write a parser."), *[{"tool": "read"}] * 5, {"tool": "todowrite"}, idle()])
    tools = [about["tool_name"] for event, about in played.asked if event == "tool"]
    assert tools == ["read", "todowrite"], "one report stands for those that ran while it waited"


@pytest.mark.parametrize(
    "command",
    [
        ["/no/such/program"],
        [sys.executable, "-c", "raise SystemExit(1)"],
        [sys.executable, "-c", "print('not JSON')"],
        [sys.executable, "-c", "print('null')"],
        [sys.executable, "-c", "print('[1, 2]')"],
        [sys.executable, "-c", "print('x' * 3_000_000)"],
    ],
    ids=["missing", "failing", "garbage", "nothing", "a list", "endless"],
)
def test_a_punchlist_that_does_not_work_breaks_nothing(play: Play, command: list[str]) -> None:
    steps = [said("Write a parser."), {"request": True}, {"tool": "todowrite"}, {"compaction": True}, idle()]
    played = play(steps, command)
    assert (played.prompts, played.told) == ([], [[], []])


def test_it_is_told_whether_the_agent_may_only_plan(play: Play) -> None:
    played = play([{"message": "How would you?", "agent": "plan"}, idle()])
    assert [said["permission_mode"] for event, said in played.asked if event == "stop"] == ["plan"]
