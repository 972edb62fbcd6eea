"""`punchlist import` and `punchlist export` as people and scripts use them (X6)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Cli
from tests.contract.missions import BUILD, FILE, SLUG
from tests.faults.processes import answered
from tests.faults.screen import ESCAPES, acting

from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.formats import FORMATS
from punchlist.missions.todos.lifecycle import TodoStatus

LIST = "- [x] Read the issue\n- [>] Write the tests\n  All of them\n- [ ] Ship it\n"
ISSUES = [
    {"id": "bd-1", "title": "Design", "status": "closed", "priority": 1, "close_reason": "Agreed"},
    {
        "id": "bd-2",
        "title": "Build",
        "status": "open",
        "priority": 1,
        "labels": ["core"],
        "dependencies": [{"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "blocks"}],
    },
]


def fine(punchlist: Cli, *arguments: str, **extra: Any) -> Any:
    """What a command says as JSON."""
    done = punchlist(*arguments, "--json", **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.spec("X6")
def test_a_checklist_goes_in_and_out_and_what_is_lost_is_said(punchlist: Cli, project: Path) -> None:
    (project / "TODO.md").write_text(LIST)
    assert fine(punchlist, "import", "TODO.md", "--dry-run")["into"] == "plan", "a checklist has no details"
    tried = punchlist("import", "TODO.md", "--into", "checklist", "--dry-run")
    assert tried.stdout.startswith(
        "Would add 3 items to the checklist (from markdown).\n  Read the issue (completed)\n"
    )
    assert tried.stderr == "! the checklist cannot hold: details of 1 item.\n"
    assert punchlist("todos").stdout == "No todos.\n"

    added = punchlist("import", "-", "--into", "checklist", input=LIST)
    assert added.stdout.startswith("Added 3 items to the checklist (from markdown).\n")
    again = fine(punchlist, "import", "TODO.md", "--into", "checklist")
    assert (again["made"], [one["title"] for one in again["skipped"]]) == (
        [],
        ["Read the issue", "Write the tests", "Ship it"],
    )
    exported = punchlist("export", "--to", "markdown")
    assert exported.stdout == LIST.replace("  All of them\n", "")
    assert exported.stderr == "! markdown cannot hold: id of 3 items.\n"


@pytest.mark.spec("X6")
def test_issues_that_wait_for_each_other_go_into_the_plan(punchlist: Cli, project: Path) -> None:
    (project / "issues.jsonl").write_text("".join(f"{json.dumps(issue)}\n" for issue in ISSUES))
    told = fine(punchlist, "import", "issues.jsonl")
    assert (told["format"], told["into"], told["dryRun"]) == ("beads", "plan", False)
    assert [(one["title"], one["status"]) for one in told["made"]] == [("Design", "completed"), ("Build", "pending")]
    assert {one["what"]: one["items"] for one in told["lost"]} == {"priority": 2, "labels": 1, "id": 2}
    plan = fine(punchlist, "export", "--to", "taskmaster")
    assert plan["list"] == "plan", "the list that there is"
    tasks = json.loads(plan["text"])["master"]["tasks"]
    assert [(task["id"], task["status"], task["dependencies"]) for task in tasks] == [
        (1, "done", []),
        (2, "pending", [1]),
    ]
    assert {one["what"] for one in plan["lost"]} >= {"outcome", "time of creation"}


@pytest.mark.spec("X6")
def test_a_mission_takes_todos_and_gives_them_back(punchlist: Cli, project: Path) -> None:
    (project / "mission.json").write_text(json.dumps(FILE))
    assert punchlist("mission", "apply", "mission.json", "--yes").returncode == 0
    (project / "issues.jsonl").write_text("".join(f"{json.dumps(issue)}\n" for issue in ISSUES))
    into = ("import", "issues.jsonl", "--mission", SLUG, "--pillar", BUILD)
    told = fine(punchlist, *into)
    assert [(one["title"], one["status"]) for one in told["made"]] == [("Build", "pending")]
    assert {"what": "completed", "items": 1, "leftOut": True} in told["lost"]
    assert [one["title"] for one in fine(punchlist, *into)["skipped"]] == ["Build"]
    (todo,) = json.loads(fine(punchlist, "export", "--mission", SLUG)["text"])["items"]
    assert (todo["title"], todo["priority"], todo["extra"]) == ("Build", "high", {"pillar": BUILD})


@pytest.mark.spec("X6")
def test_folders_are_written_and_read(punchlist: Cli, project: Path) -> None:
    punchlist("import", "-", input=LIST)
    for format, folder, first in (
        ("backlog", "backlog/tasks", "task-1 - Read-the-issue.md"),
        ("claude", "tasks", "1.json"),
    ):
        told = fine(punchlist, "export", folder, "--to", format)
        assert (told["items"], told["file"]) == (3, folder)
        assert sorted(one.name for one in (project / folder).iterdir())[0] == first
        read = fine(punchlist, "import", folder.partition("/")[0], "--session", format)
        assert (read["format"], len(read["made"])) == (format, 3)


@pytest.mark.spec("X6")
def test_what_is_there_is_replaced_only_when_somebody_says_so(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    punchlist("todos", "add", "Mine")
    there = project / "TODO.md"
    there.write_text("precious")
    refused = punchlist("export", "TODO.md")
    assert (refused.returncode, there.read_text()) == (1, "precious")
    assert "TODO.md exists already. Choose another name, or use --force to replace it." in refused.stderr
    for answer, left in (("n", "precious"), ("y", "- [ ] Mine\n")):
        assert _at_a_terminal(project, environment, answer) == (0 if answer == "y" else 1)
        assert there.read_text() == left
    there.write_text("precious")
    assert punchlist("export", "TODO.md", "--force").returncode == 0
    assert there.read_text() == "- [ ] Mine\n"
    assert [one.name for one in project.iterdir() if "partial" in one.name] == []
    assert ". already has files that may be tasks." in punchlist("export", ".", "--to", "claude").stderr


@pytest.mark.spec("X6")
def test_a_folder_is_written_whole_and_gets_no_second_task_of_one_id(punchlist: Cli, project: Path) -> None:
    punchlist("import", "-", input="- [ ] A\n- [ ] B\n")
    (project / "tasks").mkdir()
    theirs = project / "tasks" / "TASK-1 - Theirs.md"
    theirs.write_text("precious")
    done = punchlist("export", "tasks", "--to", "backlog", "--force")
    assert done.returncode == 1
    assert "tasks/TASK-1 - Theirs.md has the same id as the new file “task-1 - A.md”." in done.stderr
    assert [one.name for one in (project / "tasks").iterdir()] == [theirs.name]

    (project / "claude" / "2.json").mkdir(parents=True)
    done = punchlist("export", "claude", "--to", "claude", "--force")
    assert "Cannot write claude/2.json (Is a directory)." in done.stderr
    assert [one.name for one in (project / "claude").iterdir() if "partial" in one.name] == []


@pytest.mark.spec("X6")
def test_a_file_keeps_its_mode_and_a_pipe_stays_a_pipe(punchlist: Cli, project: Path) -> None:
    punchlist("todos", "add", "Mine")
    mine, pipe = project / "TODO.md", project / "pipe.md"
    mine.touch(mode=0o600)
    assert punchlist("export", "TODO.md", "--force").returncode == 0
    assert (mine.read_text(), stat.S_IMODE(mine.stat().st_mode)) == ("- [ ] Mine\n", 0o600)
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert punchlist("export", "pipe.md").returncode == 0
        assert os.read(reading, 100) == b"- [ ] Mine\n"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


@pytest.mark.spec("X6")
def test_a_pipe_gets_what_a_file_would(punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
    punchlist("todos", "add", "Größer → besser")
    punchlist("export", "TODO.md")
    command = [sys.executable, "-m", "punchlist", "export", "--to", "markdown"]
    plain = {**environment, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=project, env=plain, capture_output=True, timeout=60, check=True)
    assert done.stdout == (project / "TODO.md").read_bytes()


@pytest.mark.spec("X6")
def test_of_a_whole_backlog_the_tasks_are_read_and_the_rest_is_named(punchlist: Cli, project: Path) -> None:
    for folder in ("tasks", "completed", "drafts"):
        (project / "backlog" / folder).mkdir(parents=True)
        (project / "backlog" / folder / "task-1 - A.md").write_text(f"---\nid: task-1\ntitle: In {folder}\n---\n")
    (project / "backlog" / "config.yml").touch()
    (project / "backlog" / "AGENTS.md").touch()
    read = fine(punchlist, "import", "backlog", "--dry-run")
    assert [one["title"] for one in read["made"]] == ["In tasks"]
    assert read["remarks"] == [
        "backlog/completed is left out (1 file); import it separately",
        "backlog/drafts is left out (1 file); import it separately",
    ]


def _at_a_terminal(project: Path, environment: dict[str, str], answer: str) -> int:
    question = b"Replace what has the same name?"
    return answered(project, environment, question, f"{answer}\n".encode(), "export", "TODO.md").returncode


@pytest.mark.spec("X6", "W10")
def test_bad_files_end_in_a_sentence_and_change_nothing(punchlist: Cli, project: Path) -> None:
    (project / "empty").mkdir()
    (project / "binary.json").write_bytes(b"[1,\n\xff\xfe")
    hostile = [{"content": text, "status": "pending"} for text in ESCAPES.values()]
    (project / "hostile.json").write_text(json.dumps(hostile))
    with (project / "large.json").open("wb") as large:
        large.truncate(100_000_000)
    for arguments, said in {
        ("nowhere.md",): "Cannot read nowhere.md (No such file or directory).",
        ("empty",): "empty: That folder contains no tasks.",
        ("binary.json",): "binary.json is not text in UTF-8 (line 2).",
        ("large.json",): "large.json has more than 32 MB, which is the limit.",
        ("hostile.json",): "hostile.json: [0].content: must not contain control characters (U+001B)",
        ("hostile.json", "--from", "beads"): "hostile.json: [0], title: is missing",
        ("empty", "--from", "json"): "empty: It is a folder, and json is one file.",
    }.items():
        done = punchlist("import", *arguments)
        assert done.returncode == 1, arguments
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        assert acting(done.stderr.encode() + done.stdout.encode()) == []
    assert punchlist("todos").stdout == "No todos.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "-", "--into", "mission"], "which mission?"),
        (["import", "-", "--mission", "a", "--into", "plan"], "is not for the plan"),
        (["export", "--pillar", "a"], "needs --mission"),
        (["export", "--turn", "a"], "goes with --list plan"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_a_wrong_command_line(punchlist: Cli, arguments: list[str], said: str) -> None:
    done = punchlist(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_there_is_nothing_to_export_of_a_plan_that_never_was(punchlist: Cli) -> None:
    assert "has no turn yet" in punchlist("export", "--list", "plan").stderr
    assert "backlog is a folder with a file for each task" in punchlist("export", "--to", "backlog").stderr


@pytest.mark.spec("X6")
def test_the_page_says_what_each_format_can_hold() -> None:
    names = {
        "id": "id",
        "title": "title",
        "details": "details",
        "cancelled": "cancelled",
        "backlog": "backlog",
        "priority": "priority",
        "blocked_by": "dependencies",
        "acceptance": "acceptance criteria",
        "active_form": "active form",
        "owner": "owner",
        "outcome": "outcome",
        "deadline": "deadline",
        "created_at": "time of creation",
        "ended_at": "time of end",
    }

    def holds(shape: FormatLimits, name: str) -> bool:
        if name in ("cancelled", "backlog"):
            return TodoStatus(name) not in shape.states
        # Where an item stands is all that tells it from others there.
        return name in shape.fields and not (name == "id" and shape.name == "markdown")

    lines = [f"| | {' | '.join(FORMATS)} |", "|---" * (len(FORMATS) + 1) + "|"]
    for name, said in names.items():
        marks = ["✓" if holds(format.limits, name) else "" for format in FORMATS.values()]
        lines.append(f"| {said} | {' | '.join(marks)} |")
    assert "\n".join(lines) in (ROOT / "docs" / "import-export.md").read_text()
    assert {name for format in FORMATS.values() if format.name != "json" for name in format.limits.fields} <= {
        *names,
        "status",
    }
