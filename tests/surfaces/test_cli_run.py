"""`punchlist run` on rehearsals: the contract that other programs rely on."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.contract.front import todo
from tests.faults.processes import Program, spin

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}, {title: Write}]}}]\n"
COMPLETE = (
    "- calls: [{{tool: find_files, arguments: {{pattern: '*.{0}'}}}}, "
    "{{tool: complete_todo, arguments: {{todoId: '{{{{ created[{0}].id }}}}', outcome: done}}}}]\n"
)
BOTH = COMPLETE.format(0) + COMPLETE.format(1)


@pytest.fixture
def script(project: Path) -> Path:
    return project / "script.yaml"


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    ("replies", "flags", "reason", "code"),
    [
        (PLAN + BOTH + "- All done.\n", [], "completed", 0),
        (PLAN + "- Soon.\n" + BOTH + "- All done.\n", [], "completed", 0),
        (PLAN + "- That was it.\n", ["--no-auto-complete-todos"], "open", 3),
        (PLAN + "- Soon.\n" * 9, [], "stalled", 3),
        (PLAN + "- Soon.\n" * 9, ["--max-todo-continuations", "2"], "capped", 3),
        (PLAN + BOTH + "- All done.\n", ["--max-iterations", "2"], "capped", 3),
        ("- {calls: [{tool: list_directory}], tokens: 900}\n" * 3, ["--max-tokens", "1000"], "budget", 3),
        ("- calls: [{tool: write_file, arguments: {path: x, content: x}}]\n", [], "waiting", 4),
        ("- {fault: unauthorized}\n", [], "error", 1),
    ],
)
def test_a_run_ends_with_a_named_reason_and_its_exit_code(
    punchlist: Cli, script: Path, replies: str, flags: list[str], reason: str, code: int
) -> None:
    script.write_text(replies)
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script}", "--json", *flags)
    told = json.loads(done.stdout)
    assert (told["reason"], done.returncode) == (reason, code)
    assert set(told) == {
        "conversationId",
        "turnId",
        "reason",
        "text",
        "iterations",
        "continuations",
        "todos",
        "usage",
    }
    assert set(told["usage"]) == {"inputTokens", "outputTokens", "cachedTokens"}
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("C13", "V2", "V4")
def test_json_has_the_items_of_this_turn_from_all_lists(punchlist: Cli, script: Path) -> None:
    write = "- calls: [{{tool: TodoWrite, arguments: {{todos: [{{content: {0}, activeForm: Doing, status: {1}}}]}}}}]\n"
    script.write_text(PLAN + BOTH + "- First done.\n")
    punchlist("run", "First.", "--model", f"rehearsal:{script}")
    looks = "- calls: [{tool: list_directory, arguments: {}}]\n"
    done = write.format("Second", "in_progress") + looks + write.format("Second", "completed")
    script.write_text(done + "- Second done.\n")
    flags = ("--model", f"rehearsal:{script}", "--json", "--lists", "both")
    second = json.loads(punchlist("run", "-c", "Second.", *flags).stdout)["todos"]
    assert [(item["list"], item["title"], item["status"]) for item in second] == [("checklist", "Second", "completed")]
    script.write_text(PLAN + COMPLETE.format(0) + "- Third done.\n")
    third = json.loads(punchlist("run", "-c", "Third.", "--no-auto-complete-todos", *flags).stdout)["todos"]
    assert [(item["list"], item["title"], item["status"]) for item in third] == [
        ("plan", "Look", "completed"),
        ("plan", "Write", "pending"),
    ]
    for item in (*second, *third):
        assert {"id", "list", "title", "status", "mark", "check", "checkResult", "evidence"} <= set(item)


@pytest.mark.spec("W3", "C13")
def test_a_run_does_not_end_while_other_items_stand_in_the_place_of_its_own(punchlist: Cli, script: Path) -> None:
    def write(status: str, *titles: str) -> str:
        todos = [{"content": title, "activeForm": title, "status": status} for title in titles]
        look = "{tool: list_directory, arguments: {}}"
        return f"- calls: [{look}, {{tool: TodoWrite, arguments: {json.dumps({'todos': todos})}}}]\n"

    script.write_text(
        write("pending", "Write tests for parser", "Fix the login bug")
        + write("completed", "Write tests for lexer", "Fix the logout bug")
        + "- All done!\n" * 9
    )
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script}", "--json", "--lists", "checklist")
    told = json.loads(done.stdout)
    assert (told["reason"], done.returncode) == ("stalled", 3)
    assert [item["title"] for item in told["todos"] if item["status"] == "dropped"] == [
        "Write tests for parser",
        "Fix the login bug",
    ]


CANCEL = (
    "- calls: [{{tool: complete_todo, arguments: "
    "{{todoId: '{{{{ created[{0}].id }}}}', outcome: 'too hard', status: cancelled}}}}]\n"
)


@pytest.mark.spec("C13")
def test_a_turn_that_cancelled_everything_says_so(punchlist: Cli, script: Path) -> None:
    script.write_text(PLAN + CANCEL.format(0) + CANCEL.format(1) + "- Done.\n")
    flags = ("--model", f"rehearsal:{script}")
    done = punchlist("run", "Do it.", *flags)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    said = "punchlist: Ended as completed, but all 2 items were cancelled:\n- Look: too hard\n- Write: too hard\n"
    assert done.stderr.endswith(said)
    strict = punchlist("run", "Do it.", *flags, "--strict", "--json")
    assert (strict.returncode, json.loads(strict.stdout)["allCancelled"]) == (3, True)
    script.write_text(PLAN + CANCEL.format(0) + COMPLETE.format(1) + "- Done.\n")
    some = punchlist("run", "Do it.", *flags, "--strict")
    assert some.returncode == 0
    assert "punchlist: 1 of 2 items were cancelled:\n- Look: too hard\n" in some.stderr
    script.write_text("- Nothing to do.\n")
    assert punchlist("run", "Do it.", *flags, "--strict").returncode == 0


@pytest.mark.spec("C13", "V1", "V2")
def test_items_that_nothing_proves_are_named(punchlist: Cli, script: Path, environment: dict[str, str]) -> None:
    settings = Path(environment["HOME"]) / ".config" / "punchlist" / "punchlist.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[[policy.rules]]\ndecision = "deny"\ncommand = ["touch"]\n')
    denied = "- calls: [{tool: create_todo, arguments: {items: [{title: Look, check: touch x}]}}]\n"
    script.write_text(denied + COMPLETE.format(0) + "- Done.\n")
    flags = ("--model", f"rehearsal:{script}", "--mode", "yolo")
    done = punchlist("run", "Do it.", *flags, "--strict")
    assert (done.returncode, done.stdout) == (3, "Done.\n")
    assert "Completed, but not proven:\n- Look: its check was not run: " in done.stderr


@pytest.mark.spec("C13", "V2", "X9")
def test_an_item_of_a_person_or_with_a_failed_check_is_not_given_up_silently(punchlist: Cli, script: Path) -> None:
    failing = "- calls: [{tool: create_todo, arguments: {items: [{title: Look, check: 'false'}, {title: Write}]}}]\n"
    script.write_text(failing + COMPLETE.format(0) + CANCEL.format(0) + COMPLETE.format(1) + "- Done.\n")
    flags = ("--model", f"rehearsal:{script}", "--mode", "yolo")
    for strict, code in (((), 0), (("--strict",), 3)):
        done = punchlist("run", "Do it.", *flags, *strict)
        assert done.returncode == code
        assert "1 of 2 items were cancelled:\n- Look (its check had failed): too hard\n" in done.stderr
    punchlist("todos", "add", "Mine")
    punchlist("todos", "add", "Other")
    look = "{tool: list_directory, arguments: {}}"
    ended = [todo("Mine", "cancelled", reason="meh"), todo("Other", "completed")]
    script.write_text(f"- calls: [{look}, {{tool: TodoWrite, arguments: {json.dumps({'todos': ended})}}}]\n- Done.\n")
    done = punchlist("run", *flags, "--strict")
    assert done.returncode == 3
    assert "- Mine (a person added it): meh\n" in done.stderr
    # What a person cancels is theirs to cancel.
    punchlist("todos", "add", "Third")
    punchlist("todos", "add", "Fourth")
    cancelled = punchlist("todos", "cancel", "5", "--why", "not needed")
    assert cancelled.returncode == 0, cancelled.stderr
    rest = [todo("Fourth", "completed")]
    script.write_text(f"- calls: [{look}, {{tool: TodoWrite, arguments: {json.dumps({'todos': rest})}}}]\n- Done.\n")
    assert "a person added it" not in punchlist("run", *flags).stderr


@pytest.mark.spec("T9")
def test_a_limit_of_iterations_holds_without_a_plan(punchlist: Cli, script: Path) -> None:
    looks = [f"- calls: [{{tool: find_files, arguments: {{pattern: '*.{n}'}}}}]\n" for n in range(15)]
    script.write_text("".join(looks) + "- Seen.\n")
    done = punchlist("run", "Look.", "--model", f"rehearsal:{script}", "--max-iterations", "60", "--json")
    assert (json.loads(done.stdout)["reason"], json.loads(done.stdout)["iterations"]) == ("completed", 16)


@pytest.mark.spec("C5")
def test_a_flag_says_when_a_run_is_stalled(punchlist: Cli, script: Path) -> None:
    script.write_text(PLAN + "- Soon.\n" * 9)
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script}", "--stall-after", "1", "--json")
    assert (json.loads(done.stdout)["reason"], json.loads(done.stdout)["continuations"]) == ("stalled", 1)


@pytest.mark.spec("C1")
def test_a_flag_beats_the_environment(punchlist: Cli, script: Path) -> None:
    script.write_text(PLAN + "- Soon.\n" * 9)
    env = {"PUNCHLIST_AUTO_COMPLETE_TODOS": "false", "PUNCHLIST_MODEL": f"rehearsal:{script}"}
    assert json.loads(punchlist("run", "Do it.", "--json", env=env).stdout)["reason"] == "open"
    done = punchlist("run", "Do it.", "--json", "--auto-complete-todos", env=env)
    assert json.loads(done.stdout)["reason"] == "stalled"


@pytest.mark.spec("C3", "C4", "C13", "C15", "T14")
def test_people_see_what_happens_and_what_is_left(punchlist: Cli, script: Path) -> None:
    script.write_text(PLAN + "- calls: [{tool: read_file, arguments: {path: missing}}]\n" + "- Soon.\n" * 9)
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script.name}")
    assert done.stdout == "Soon.\n"
    assert done.stderr.endswith(
        "punchlist: Ended as stalled: no progress in 3 continuations. Not finished:\n- Look\n- Write\n"
        "punchlist: `punchlist run --resume` continues from here.\n"
    )
    assert f"supervisor started with rehearsal:{script.name} (at most 10 continuations)" in done.stderr
    assert "✓ create_todo" in done.stderr
    assert "✗ read_file" in done.stderr
    assert "stopped early; continued 1 of 10 times" in done.stderr
    assert re.search(r"· ended as stalled: \d+ replies, continued 3 times, \d+ tokens, [\d.]+ m?s\n", done.stderr)


def test_without_a_model_two_lines_say_what_to_set(punchlist: Cli) -> None:
    done = punchlist("run", "Do it.")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert "PUNCHLIST_MODEL" in done.stderr


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        ("- {text: x, colour: red}", "replies[1]: 'colour' is not a known key"),
        ("- {fault: rain}", "fault must be one of"),
        ("- 5", "must be text or a table"),
        ("replies: 5", "replies: must be a list"),
        ("{", "is not valid YAML"),
        ("other: 1", "'other' is not a known key"),
    ],
)
def test_a_wrong_rehearsal_is_named_with_its_place(punchlist: Cli, script: Path, replies: str, told: str) -> None:
    script.write_text(replies)
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script}")
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.spec("C14")
@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_ends_it_in_good_order(
    project: Path, environment: dict[str, str], punchlist: Cli, script: Path, signals: int
) -> None:
    """Also if a wrapper passes the signal on, so that it arrives twice."""
    script.write_text(PLAN + "- calls: [{tool: run_command, arguments: {command: 'echo begun; sleep 60'}}]\n")
    arguments = ("run", "Do it.", "--model", f"rehearsal:{script}", "--mode", "yolo", "--json")
    with Program(project, environment, *arguments) as program:
        while "executing" not in punchlist("tools", "history").stdout:
            pass
        for _ in range(signals):
            program.process.send_signal(signal.SIGINT)
            spin(0.05)
        answer = program.end()
    assert answer.code == 130
    assert json.loads(answer.out)["reason"] == "cancelled"
    history = json.loads(punchlist("tools", "history", "--json").stdout)
    assert [call["status"] for call in history if call["tool"] == "run_command"] == ["cancelled"]
    assert punchlist("db", "check").returncode == 0
