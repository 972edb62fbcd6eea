"""`punchlist demo`: what it promises to show, it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.conftest import Cli

from punchlist.trust import Trust


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.mark.spec("T10", "T12", "C2", "C8", "C13")
def test_the_demo_plans_delegates_fails_once_stops_early_and_ends_with_a_clear_list(
    punchlist: Cli, scratch: Path, home: Path
) -> None:
    done = punchlist("demo", "--json", env={"TMPDIR": str(scratch), "PUNCHLIST_DATABASE_URL": str(scratch / "mine.db")})
    told = json.loads(done.stdout)
    assert (done.returncode, told["reason"], told["continuations"]) == (0, "completed", 1)
    assert [todo["status"] for todo in told["todos"]] == ["completed"] * 5
    # It leaves nothing behind, and does not touch what is the person's own.
    assert list(scratch.iterdir()) == []
    assert Trust.of_user({"HOME": str(home)}).entries() == []


def test_the_demo_can_be_looked_around_in(punchlist: Cli, scratch: Path) -> None:
    done = punchlist("demo", "--keep", env={"TMPDIR": str(scratch)})
    (folder,) = scratch.iterdir()
    shown = done.stderr
    for line in (
        "✓ create_todo  5 tasks planned",
        "researcher ✓ read_file notes/sorting.md",
        "writer ✓ edit_file CHANGELOG.md",
        "stopped early; continued 1 of 10 times",
        "✗ run_command sh check.sh",
        "“Run the release check” failed and will be retried",
        "5/5 ended · continued 1 of 10 times",
        f"cd {folder}",
    ):
        assert line in shown
    assert re.search(r"✓ run_command sh check.sh \([\d.]+ m?s\)  release 1.2 is consistent", shown)
    assert (folder / "VERSION").read_text() == "1.2\n"
    assert "## 1.2" in (folder / "CHANGELOG.md").read_text()
    log = punchlist("log", cwd=folder).stdout
    assert "retry" in log
    assert punchlist("db", "check", cwd=folder).returncode == 0


@pytest.mark.spec("V1", "V2", "V3", "V4")
def test_the_proof_stops_three_false_claims(punchlist: Cli, scratch: Path) -> None:
    done = punchlist("demo", "proof", env={"TMPDIR": str(scratch)})
    shown = done.stderr
    assert done.returncode == 0
    stops = (
        "no tool call has succeeded for “Find the bug in slugify”",
        "“Fix slugify” stays open. Its check failed: “sh check.sh”",
        "the goal is not met yet: README.md names slugify but shows no example of it.",
        "· the goal is met\n",
    )
    places = [shown.index(stop) for stop in stops]
    assert places == sorted(places)


@pytest.mark.spec("V1", "V2", "V4")
def test_the_proof_ends_with_marks(punchlist: Cli, scratch: Path) -> None:
    told = json.loads(punchlist("demo", "proof", "--json", env={"TMPDIR": str(scratch)}).stdout)
    assert [todo["mark"] for todo in told["todos"]] == ["evidenced", "checked", "evidenced"]
    assert told["todos"][1]["checkResult"]["outcome"] == "passed"
    assert [call["tool"] for call in told["todos"][2]["evidence"]] == ["write_file"]
