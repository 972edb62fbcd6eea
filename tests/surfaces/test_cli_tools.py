"""`punchlist tools`, `approvals`, `policy` and `trust`, as people and programs use them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program

WRITE = '{"path": "made.txt", "content": "made\\n"}'
ALLOW_ECHO = '[[policy.rules]]\ndecision = "allow"\ntool = "run_command"\ncommand = "echo"\n'


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture(params=["sqlite", "postgresql"])
def program(request: pytest.FixtureRequest, punchlist: Cli) -> Cli:
    """The program on both databases."""
    if request.param == "sqlite":
        return punchlist
    url: str = request.getfixturevalue("postgres_url")
    return lambda *words, **extra: punchlist(
        *words, env={"PUNCHLIST_DATABASE_URL": url, **extra.pop("env", {})}, **extra
    )


def test_the_tools_are_listed_with_what_they_do(punchlist: Cli) -> None:
    told = answer(punchlist("tools", "list", "--json"))
    assert {tool["name"]: tool["effect"] for tool in told["tools"]} == {
        "read_file": "read",
        "list_directory": "read",
        "find_files": "read",
        "search_text": "read",
        "write_file": "edit",
        "edit_file": "edit",
        "run_command": "execute",
    }
    lines = punchlist("tools", "list").stdout.splitlines()
    assert len(lines) == 7
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.spec("S2", "S9")
def test_a_call_that_only_reads_runs_at_once(program: Cli, project: Path) -> None:
    (project / "notes.txt").write_text("one\ntwo\n")
    done = program("tools", "call", "read_file", '{"path": "notes.txt"}', "--json")
    told = answer(done)
    assert done.returncode == 0
    assert {**told, "callId": ""} == {"callId": "", "tool": "read_file", "status": "success", "result": "one\ntwo\n"}
    assert program("tools", "call", "read_file", '{"path": "notes.txt"}').stdout == "one\ntwo\n"


@pytest.mark.spec("S3")
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read_fil", "{}", "Did you mean read_file?"),
        ("read_file", "{}", "path: is required"),
        ("read_file", '{"path": 5}', "path: "),
        ("read_file", '{"path": "a", "pth": "b"}', "pth: is not a parameter"),
        ("read_file", "[]", "must be an object"),
        ("read_file", '{"path": "missing.txt"}', "No such file"),
        ("read_file", '{"path": "../../../etc/passwd"}', "outside the workspace"),
        ("edit_file", '{"path": "a.txt", "old": "x", "new": "y"}', "a.txt does not exist"),
    ],
)
def test_a_call_that_cannot_work_is_an_error_that_says_why(
    punchlist: Cli, tool: str, arguments: str, told: str
) -> None:
    done = punchlist("tools", "call", tool, arguments, "--json")
    assert done.returncode == 1
    assert answer(done)["status"] == "error"
    assert told in answer(done)["error"]["message"]


@pytest.mark.parametrize("arguments", ["{", "nonsense", ""])
def test_arguments_that_are_no_json_are_a_wrong_command_line(punchlist: Cli, arguments: str) -> None:
    done = punchlist("tools", "call", "read_file", arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not JSON" in done.stderr


def test_arguments_may_come_from_standard_input(punchlist: Cli, project: Path) -> None:
    done = punchlist("tools", "call", "write_file", "-", "--mode", "yolo", input=WRITE)
    assert done.returncode == 0
    assert (project / "made.txt").read_text() == "made\n"


@pytest.mark.spec("S4")
@pytest.mark.parametrize(
    ("mode", "codes"),
    [("plan", (0, 3, 3)), ("default", (0, 4, 4)), ("auto-edit", (0, 0, 4)), ("yolo", (0, 0, 0))],
)
def test_the_mode_decides_what_is_asked_about(punchlist: Cli, mode: str, codes: tuple[int, ...]) -> None:
    calls = [("list_directory", "{}"), ("write_file", WRITE), ("run_command", '{"command": "true"}')]
    assert tuple(punchlist("tools", "call", *call, "--mode", mode).returncode for call in calls) == codes


@pytest.mark.spec("S5")
def test_without_a_terminal_a_call_waits_and_is_answered_later(program: Cli, project: Path) -> None:
    done = program("tools", "call", "write_file", WRITE, "--json")
    assert done.returncode == 4
    assert answer(done)["status"] == "awaiting_approval"
    assert not (project / "made.txt").exists()

    (waiting,) = json.loads(program("approvals", "--json").stdout)
    assert waiting["callId"] == answer(done)["callId"]
    assert "made.txt" in waiting["question"]

    approved = program("approvals", "approve", waiting["callId"][-8:], "--json")
    assert (approved.returncode, answer(approved)["status"]) == (0, "success")
    assert (project / "made.txt").read_text() == "made\n"
    assert program("approvals").stdout == "No call waits for approval.\n"
    assert program("approvals", "approve", waiting["callId"]).returncode == 1
    assert program("db", "check").returncode == 0


@pytest.mark.spec("S4", "S5")
def test_a_person_may_say_no_and_the_model_is_told_why(program: Cli, project: Path) -> None:
    call = answer(program("tools", "call", "write_file", WRITE, "--json"))["callId"]
    denied = program("approvals", "deny", call, "--reason", "write to docs/ instead", "--json")
    assert denied.returncode == 3
    assert answer(denied)["status"] == "cancelled"
    assert "write to docs/ instead" in answer(denied)["error"]["message"]
    assert not (project / "made.txt").exists()
    assert program("db", "check").returncode == 0


@pytest.mark.spec("S4", "S5")
def test_a_person_may_change_the_arguments(program: Cli, project: Path) -> None:
    call = answer(program("tools", "call", "write_file", WRITE, "--json"))["callId"]
    wrong = program("approvals", "modify", call, '{"path": "../x", "content": ""}')
    assert wrong.returncode == 1
    assert "outside the workspace" in wrong.stderr
    done = program("approvals", "modify", call, '{"path": "other.txt", "content": "other"}')
    assert done.returncode == 0
    assert (project / "other.txt").read_text() == "other"
    assert not (project / "made.txt").exists()


@pytest.mark.spec("S4")
def test_always_holds_for_the_rest_of_the_session(program: Cli) -> None:
    call = answer(program("tools", "call", "run_command", '{"command": "echo one"}', "--json"))["callId"]
    assert program("approvals", "approve", call, "--always", "prefix").returncode == 0
    assert program("tools", "call", "run_command", '{"command": "echo two"}').stdout == "two\n"
    assert program("tools", "call", "run_command", '{"command": "echo two > f"}').returncode == 4
    assert program("tools", "call", "run_command", '{"command": "echo $(touch f)"}').returncode == 4
    assert program("tools", "call", "run_command", '{"command": "echo 1"}', "--session", "other").returncode == 4


@pytest.mark.spec("S5")
def test_a_waiting_process_goes_on_when_another_answers(
    program: Cli, project: Path, environment: dict[str, str]
) -> None:
    database = program("db", "path").stdout.strip()
    asked = {**environment, "PUNCHLIST_DATABASE_URL": database} if "://" in database else environment
    with Program(project, asked, "tools", "call", "write_file", WRITE, columns=80) as waiting:
        waiting.wait_for("yes, once")
        (approval,) = json.loads(program("approvals", "--json").stdout)
        assert "continues" in program("approvals", "approve", approval["callId"]).stdout
        waiting.wait_for("Created made.txt")
    assert (project / "made.txt").read_text() == "made\n"


@pytest.mark.spec("S4")
@pytest.mark.parametrize(
    ("typed", "code", "made"),
    [("y\n", 0, "made\n"), ("what\ny\n", 0, "made\n"), ("n\nnot now\n", 3, None), ("a\n", 0, "made\n")],
    ids=["yes", "a word too many", "no", "always"],
)
def test_at_a_terminal_the_person_is_asked(
    project: Path, environment: dict[str, str], typed: str, code: int, made: str | None
) -> None:
    with Program(project, environment, "tools", "call", "write_file", WRITE, columns=80) as call:
        call.wait_for("\r\n? ")
        call.answer(typed)
        assert call.end().code == code
    found = (project / "made.txt").read_text() if (project / "made.txt").exists() else None
    assert found == made


@pytest.mark.spec("S7")
def test_a_time_limit_ends_the_call(punchlist: Cli) -> None:
    done = punchlist(
        "tools", "call", "run_command", '{"command": "sleep 60"}', "--mode", "yolo", "--timeout", "0.5", "--json"
    )
    assert done.returncode == 1
    assert "exceeded its time limit" in answer(done)["error"]["message"]


@pytest.mark.spec("S4")
@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("echo hi", "allow"),
        ("echo hi; rm x", "ask"),
    ],
)
def test_every_command_of_a_line_is_judged(punchlist: Cli, project: Path, command: str, decision: str) -> None:
    (project / "punchlist.toml").write_text(ALLOW_ECHO)
    assert punchlist("trust", "--yes").returncode == 0
    told = answer(punchlist("policy", "explain", "run_command", json.dumps({"command": command}), "--json"))
    assert told["decision"] == decision
    if decision == "allow":
        assert "punchlist.toml, policy.rules[1]" in told["why"]


@pytest.mark.spec("S4")
def test_the_settings_of_a_stranger_allow_nothing_until_they_are_trusted(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text(ALLOW_ECHO)
    echo = ("tools", "call", "run_command", '{"command": "echo hi"}')
    before = punchlist(*echo)
    assert before.returncode == 4
    assert "punchlist trust" in before.stderr
    refused = punchlist("trust")
    assert refused.returncode == 1
    assert "commands starting with echo" in refused.stderr
    assert punchlist("trust", "--yes").returncode == 0
    assert punchlist(*echo).returncode == 0
    (project / "punchlist.toml").write_text(ALLOW_ECHO.replace("echo", "echo hi"))
    assert punchlist(*echo).returncode == 4


def test_a_stranger_may_ask_for_less(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text(
        '[[policy.rules]]\ndecision = "deny"\ntool = "read_file"\nwhy = "private"\n'
    )
    done = punchlist("tools", "call", "read_file", '{"path": "x"}')
    assert done.returncode == 3
    assert "private" in done.stderr


def test_a_wrong_setting_is_an_error_that_names_it(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text('[policy]\nmode = "wild"')
    done = punchlist("tools", "list")
    assert done.returncode == 1
    assert "punchlist.toml, line 2: policy.mode: must be one of plan, default" in done.stderr


def test_an_answer_in_time_is_asked_for_and_its_lack_is_no_persons_decision(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text('[policy]\nexpiry = "1s"\non_expiry = "deny"\n')
    call = answer(punchlist("tools", "call", "write_file", WRITE, "--json"))["callId"]
    # The commands in between take longer than that second.
    while json.loads(punchlist("approvals", "--json").stdout):
        pass
    done = punchlist("approvals", "approve", call)
    assert done.returncode == 1
    assert "expired" in done.stderr
    punchlist("tools", "call", "list_directory")
    (ended, *_) = json.loads(punchlist("tools", "history", "--json").stdout)
    assert ended["status"] == "cancelled"
    assert "No person has decided this" in ended["error"]["message"]
    assert not (project / "made.txt").exists()
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("S4")
def test_a_database_from_a_stranger_brings_no_permissions_along(punchlist: Cli, tmp_path: Path) -> None:
    call = answer(punchlist("tools", "call", "run_command", '{"command": "echo one"}', "--json"))["callId"]
    assert punchlist("approvals", "approve", call, "--always", "tool").returncode == 0
    assert punchlist("tools", "call", "run_command", '{"command": "echo two"}').returncode == 0
    somebody_else = {"HOME": str(tmp_path / "another home")}
    assert punchlist("trust", "--yes", env=somebody_else).returncode == 0
    assert punchlist("tools", "call", "run_command", '{"command": "echo two"}', env=somebody_else).returncode == 4
