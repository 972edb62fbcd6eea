"""`punchlist mission metric`: what is measured is listed, drawn, recorded and collected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.measured import BUILD_TIME, PERSON, collected, measured

from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction
from punchlist.missions.todos.service import MissionTodos
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

IN_FAST = MissionScope(PERSON.conversation_id, PERSON.actor)
pytestmark = pytest.mark.spec("M7")


@pytest.fixture
def theirs(project: Path) -> Iterator[Store]:
    """The project's own database, with a mission that has one metric, recorded by hand."""
    opened = open_store(f"sqlite:///{project}/.punchlist/punchlist.db")
    measured(opened)
    yield opened
    opened.close()


def record(store: Store, *values: float) -> None:
    for value in values:
        Metrics(store).record(PERSON, "fast", "build-time", value, note="x" * 200)


def fine(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist("mission", "metric", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_metric_is_recorded_and_listed(punchlist: Cli, theirs: Store) -> None:
    assert fine(punchlist, "list", "fast") == "builds\n  ? build-time  no readings yet, target 60 s\n"
    record(theirs, 55, 63)
    told = fine(punchlist, "record", "fast", "build-time", "72", "--note", "by the clock")
    assert told == "! build-time  72 s, warning (60 s), degrading  ▁▄█\n"
    assert fine(punchlist, "list", "fast") == f"builds\n  {told}"
    [listed] = json.loads(fine(punchlist, "list", "fast", "--json"))
    assert listed["slug"] == "build-time"
    assert listed["pillar"] == "builds"
    assert (listed["status"], listed["trend"]) == ("warning", "degrading")
    assert [reading["value"] for reading in listed["readings"]] == [55, 63, 72]
    assert listed["readings"][-1]["note"] == "by the clock"


def test_a_reading_can_be_negative_and_of_another_time(punchlist: Cli, theirs: Store) -> None:
    told = fine(punchlist, "record", "fast", "build-time", "-5", "--at", "2026-02-21T09:00Z")
    assert told.splitlines() == [
        "✓ build-time  -5 s, on target (60 s)",
        "    stale: the newest reading is from 2026-02-21T09:00:00Z",
    ]
    told = fine(punchlist, "record", "fast", "build-time", "1e2", "--at", "2026-02-21", "--json")
    assert json.loads(told) == {"value": 100, "at": "2026-02-21T00:00:00.000000Z", "source": "manual", "note": ""}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fast", "build-time", "nan"], "VALUE: 'nan' is not a number."),
        (["fast", "build-time", "1", "--at", "2999-01-01"], "at: 2999-01-01 is in the future"),
        (["fast", "build-time", "1", "--at", "today"], "at: 'today' is not a time. Write 2026-02-21"),
        (["fast", "build", "1"], "has no metric 'build'"),
        (["slow", "build-time", "1"], "There is no mission 'slow'"),
    ],
)
def test_what_cannot_be_recorded_is_told(punchlist: Cli, theirs: Store, arguments: list[str], told: str) -> None:
    done = punchlist("mission", "metric", "record", *arguments, "--json")
    assert done.returncode == 1
    assert told in done.stderr
    assert told in json.loads(done.stdout)["error"]["message"]
    assert Metrics(theirs).views("fast")[0].readings == []


@pytest.mark.parametrize("width", [20, 132])
def test_a_metric_is_drawn_in_the_width_there_is(punchlist: Cli, theirs: Store, width: int) -> None:
    record(theirs, 55, 63, 72)
    drawn = fine(punchlist, "show", "fast", "build-time", env={"COLUMNS": str(width)})
    assert max(map(len, drawn.splitlines())) == max(width, 40)
    assert "\x1b" not in drawn
    assert "60 ┤" in drawn
    assert "90 ┤┄┄┄┄" in drawn
    assert "── target 60 s   ┄┄ warning 90 s" in drawn
    assert any("\u2801" <= char <= "\u28ff" for char in drawn)


def test_all_metrics_are_drawn_and_those_without_readings_named(punchlist: Cli, theirs: Store) -> None:
    measured(theirs, {**BUILD_TIME, "slug": "other", "name": "Other", "unit": "%"}, BUILD_TIME)
    record(theirs, 99.5)
    drawn = fine(punchlist, "show", "fast", "--limit", "1")
    assert drawn.startswith(
        "Other (other)\nno readings yet, target 60%\n\nLocal build time (build-time)\n99.5 s, off target"
    )
    assert drawn.count("\n") > 14


@pytest.mark.spec("M7", "X7")
def test_a_period_is_plotted_thinned_and_with_the_todos_that_were_to_change_it(punchlist: Cli, theirs: Store) -> None:
    for day in range(1, 21):
        Metrics(theirs).record(PERSON, "fast", "build-time", day, at=f"2026-02-{day:02}")
    period = ("show", "fast", "build-time", "--since", "2026-02-03", "--until", "2026-02-13", "--limit", "5")
    shown = json.loads(fine(punchlist, *period, "--json"))[0]
    assert shown["plot"]["thinned"]
    assert [(point["value"], point["readings"]) for point in shown["plot"]["points"]] == [
        (3.5, 2), (5.5, 2), (7.5, 2), (9.5, 2), (11.5, 2),
    ]  # fmt: skip
    drawn = fine(punchlist, *period)
    assert "5 points, each the mean of an interval, for 10 readings" in drawn
    assert "2026-02-04" in drawn
    todos = MissionTodos(theirs)
    todo = todos.create(IN_FAST, "fast", NewMissionTodo("builds", "Cache it")).todo
    todos.update(IN_FAST, "fast", todo.id, TodoAction.START, "now")
    todos.complete(IN_FAST, "fast", todo.id, "Cached", metrics_impacted=("build-time",))
    drawn = fine(punchlist, "show", "fast", "build-time", "--since", "2026-02-20")
    assert "Completed todos that were to change it\n2026-" in drawn
    assert f"{todo.id[-8:]}  Cache it" in drawn
    empty = fine(punchlist, "show", "fast", "build-time", "--until", "2020-01-01")
    assert "No readings in this period." in empty


def test_metrics_are_collected_and_each_says_what_came(punchlist: Cli, project: Path, theirs: Store) -> None:
    (project / "count").write_text("12\n")
    measured(
        theirs,
        BUILD_TIME,
        collected("counted", type="file", path="count"),
        collected("timed", type="command", command=["echo", "72.5"]),
        collected("broken", type="command", command=["sh", "-c", "echo the disk is full >&2; exit 2"]),
    )
    done = punchlist("mission", "metric", "collect", "fast", "--all")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "✓ counted: 12 s"
    assert "`punchlist mission trust fast`" in done.stdout.splitlines()[1]
    assert punchlist("mission", "trust", "fast", "--yes").returncode == 0
    # In a folder below, the project is the same.
    (project / "sub").mkdir()
    done = punchlist("mission", "metric", "collect", "fast", "--all", cwd=project / "sub")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "✓ counted: 12 s",
        "✓ timed: 72.5 s",
        "✗ broken: the command ended with exit code 2: the disk is full.",
    ]
    listed = fine(punchlist, "list", "fast")
    assert "  ! timed  72.5 s, warning (60 s)\n" in listed
    assert ": broken: the command ended with" in listed
    told = json.loads(punchlist("mission", "metric", "collect", "fast", "broken", "timed", "--json").stdout)
    assert [one["value"] for one in told] == [None, 72.5]


def test_what_to_collect_has_to_be_said(punchlist: Cli, theirs: Store) -> None:
    for arguments in ([], ["build-time", "--all"]):
        done = punchlist("mission", "metric", "collect", "fast", *arguments)
        assert done.returncode == 2
        assert "name metrics, or give --all" in done.stderr
    assert fine(punchlist, "collect", "fast", "--all") == "No metric of the mission has a collector.\n"
    done = punchlist("mission", "metric", "collect", "fast", "build-time")
    assert done.returncode == 1
    assert "`punchlist mission metric record fast build-time VALUE`" in done.stdout


def test_what_a_stranger_wrote_does_not_act_on_the_terminal(punchlist: Cli, project: Path, theirs: Store) -> None:
    (project / "value").write_text("\x1b]0;owned\x07 \u202e")
    measured(theirs, {**collected("odd", type="file", path="value"), "name": "Odd", "unit": "\u202e"})
    shown = punchlist("mission", "metric", "collect", "fast", "--all").stdout
    Metrics(theirs).record(PERSON, "fast", "odd", 1)
    shown += fine(punchlist, "list", "fast") + fine(punchlist, "show", "fast")
    assert "owned" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_the_trail_tells_of_readings(punchlist: Cli, theirs: Store) -> None:
    fine(punchlist, "record", "fast", "build-time", "72", "--note", "by the clock")
    lines = punchlist("log", "--json", "--session", "mission-fast").stdout.splitlines()
    told = [event for event in map(json.loads, lines) if event["action"] == "record_reading"]
    assert [event["reason"] for event in told] == ["by the clock"]
