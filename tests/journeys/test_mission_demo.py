"""`punchlist demo mission` and `examples/mission.py`: a todo from its creation to its follow-up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT, Cli

from punchlist.trust import Trust


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.mark.spec("M6", "M8", "M12", "X7")
def test_the_mission_demo_creates_starts_executes_reviews_completes_and_follows_up(
    punchlist: Cli, scratch: Path, home: Path
) -> None:
    done = punchlist("demo", "mission", "--json", env={"TMPDIR": str(scratch)})
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert [(todo["title"][:8], todo["status"]) for todo in told["todos"]] == [
        ("Evaluate", "pending"),
        ("Profile ", "completed"),
    ]
    assert told["todos"][1]["outcome"].startswith("Identified ts-loader (39 %)")
    assert told["summary"] == {"active": 1, "activeTodoLimit": 10, "backlog": 0, "backlogTodoLimit": 50}
    assert [(run["kind"], run["status"]) for run in told["runs"]] == [
        ("collect", "done"),
        ("execute", "done"),
        ("plan", "done"),
        ("cycle", "done"),
    ]
    # It leaves nothing behind.
    assert list(scratch.iterdir()) == []
    assert Trust.of_user({"HOME": str(home)}).entries() == []


@pytest.mark.spec("M8", "M12")
def test_the_mission_demo_reads_like_a_story(punchlist: Cli, scratch: Path) -> None:
    done = punchlist("demo", "mission", "--keep", env={"TMPDIR": str(scratch)})
    (folder,) = scratch.iterdir()
    story = done.stdout
    in_order = [
        "1. Creation",
        "## TODO Planning Cycle",
        "Local build time [local-build-time]: 72 s (target: at most 60 s, warning: 90 s, status: warning",
        "[calls mission_todo_create]",
        "2. Activation",
        "action: start",
        "status in_progress",
        "3. Execution",
        "Execute: Profile webpack build to identify top 3 slow plugins.",
        "ts-loader 28s 39%",
        "4. Completion and 5. follow-up",
        "[calls mission_todo_complete]",
        'metricsImpacted: ["local-build-time"]',
        "title: Evaluate esbuild-loader migration",
        "Local build time is 72 s.",
        "active   █░░░░░░░░░ 1/10",
    ]
    places = [story.find(line) for line in in_order]
    assert -1 not in places, in_order[places.index(-1)]
    assert places == sorted(places)
    assert punchlist("db", "check", cwd=folder).returncode == 0
    shown = punchlist("mission", "chat", "show", "developer-experience/build-performance/todos", cwd=folder).stdout
    assert "ts-loader" in shown


@pytest.mark.spec("M4", "M5", "M7")
def test_the_example_shows_who_may_do_what() -> None:
    path = ROOT / "examples" / "mission.py"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Build time is warning and degrading.",
        "An owner may not complete a mission todo; lead or person may.",
        "completed. Active now: 1 of 10.",
    ]
