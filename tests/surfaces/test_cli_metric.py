"""`punchlist metric`: what is measured is listed, drawn, recorded and collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.measured import BUILD_TIME, collected, source

pytestmark = pytest.mark.spec("M7")


@pytest.fixture
def fast(punchlist: Cli) -> Cli:
    """With a mission that has one metric, recorded by hand."""
    apply(punchlist, BUILD_TIME)
    return punchlist


def apply(punchlist: Cli, *metrics: Any, trust: bool = False) -> None:
    done = punchlist("mission", "apply", "-", "--yes", *(["--trust"] if trust else []), input=source(*metrics))
    assert done.returncode == 0, done.stderr


def fine(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist("metric", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_metric_is_recorded_and_listed(fast: Cli) -> None:
    assert fine(fast, "list", "fast") == "builds\n  ? build-time  no readings yet, target 60 s\n"
    for value in ("55", "63", "72"):
        fine(fast, "record", "fast", "build-time", value, "--note", "by the clock")
    assert fine(fast, "list", "fast") == "builds\n  ! build-time  72 s, warning (60 s), degrading  ▁▄█\n"
    [told] = json.loads(fine(fast, "list", "fast", "--json"))
    assert (told["slug"], told["pillar"], told["status"], told["trend"]) == (
        "build-time",
        "builds",
        "warning",
        "degrading",
    )
    assert [reading["value"] for reading in told["readings"]] == [55, 63, 72]
    assert told["readings"][0]["note"] == "by the clock"


def test_recording_says_where_it_stands_now(fast: Cli) -> None:
    assert fine(fast, "record", "fast", "build-time", "-5") == "✓ build-time  -5 s, on target (60 s)\n"
    told = json.loads(fine(fast, "record", "fast", "build-time", "1e2", "--at", "2026-02-21T09:00Z", "--json"))
    assert told == {"value": 100, "at": "2026-02-21T09:00:00.000000Z", "source": "manual", "note": ""}
    assert "stale: the newest reading is of 2026-02-21T09:00:00Z" in fine(fast, "list", "fast")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fast", "build-time", "fast"], "VALUE: 'fast' is no number."),
        (["fast", "build-time", "nan"], "VALUE: 'nan' is no number."),
        (["fast", "build-time", "1", "--at", "2999-01-01"], "at: 2999-01-01 is in the future"),
        (["fast", "build-time", "1", "--at", "today"], "at: 'today' is no time. Write 2026-02-21"),
        (["fast", "build", "1"], "has no metric 'build'"),
        (["slow", "build-time", "1"], "There is no mission 'slow'"),
    ],
)
def test_what_cannot_be_recorded_is_told(fast: Cli, arguments: list[str], told: str) -> None:
    done = fast("metric", "record", *arguments, "--json")
    assert done.returncode == 1
    assert told in done.stderr
    assert told in json.loads(done.stdout)["error"]["message"]
    [view] = json.loads(fine(fast, "show", "fast", "--json"))
    assert view["readings"] == []


def test_a_metric_is_drawn_in_the_width_there_is(fast: Cli) -> None:
    for value in ("55", "63", "72"):
        fine(fast, "record", "fast", "build-time", value, "--note", "x" * 200)
    for width in (20, 40, 132):
        drawn = fine(fast, "show", "fast", "build-time", env={"COLUMNS": str(width)})
        assert max(map(len, drawn.splitlines())) == max(width, 40)
        assert "\x1b" not in drawn
        assert "60 ┤" in drawn
        assert "90 ┤┄┄┄┄" in drawn
        assert "── target 60 s   ┄┄ warning 90 s" in drawn
        assert any("\u2801" <= char <= "\u28ff" for char in drawn)


def test_all_metrics_are_drawn_and_those_without_readings_named(punchlist: Cli) -> None:
    apply(punchlist, BUILD_TIME, {**BUILD_TIME, "slug": "other", "name": "Other", "unit": "%"})
    fine(punchlist, "record", "fast", "other", "99.5")
    drawn = fine(punchlist, "show", "fast")
    assert drawn.startswith(
        "Local build time (build-time)\nno readings yet, target 60 s\n\nOther (other)\n99.5%, off target"
    )
    assert len(json.loads(fine(punchlist, "show", "fast", "--json"))) == 2
    shown = fine(punchlist, "show", "fast", "other", "--limit", "1")
    assert shown.count("\n") > 10


def test_metrics_are_collected_and_each_says_what_came(punchlist: Cli, project: Path) -> None:
    (project / "count").write_text("12\n")
    metrics = [
        BUILD_TIME,
        collected("counted", type="file", path="count"),
        collected("timed", type="command", command=["echo", "72.5"]),
        collected("broken", type="command", command=["sh", "-c", "echo the disk is full >&2; exit 2"]),
    ]
    apply(punchlist, *metrics)
    done = punchlist("metric", "collect", "fast", "--all")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "✓ counted: 12 s"
    assert "`punchlist mission trust fast`" in done.stdout.splitlines()[1]
    assert punchlist("mission", "trust", "fast", "--yes").returncode == 0
    done = punchlist("metric", "collect", "fast", "--all")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "✓ counted: 12 s",
        "✓ timed: 72.5 s",
        "✗ broken: the command ended with exit code 2: the disk is full.",
    ]
    listed = fine(punchlist, "list", "fast")
    assert "  ! timed  72.5 s, warning (60 s)\n" in listed
    assert ": broken: the command ended with" in listed
    # In a folder below, the project is the same.
    (project / "sub").mkdir()
    assert fine(punchlist, "collect", "fast", "timed", "counted", cwd=project / "sub").count("✓") == 2
    told = json.loads(punchlist("metric", "collect", "fast", "broken", "timed", "--json").stdout)
    assert [one["value"] for one in told] == [None, 72.5]


def test_what_to_collect_has_to_be_said(fast: Cli) -> None:
    for arguments in ([], ["build-time", "--all"]):
        done = fast("metric", "collect", "fast", *arguments)
        assert done.returncode == 2
        assert "name metrics, or give --all" in done.stderr
    assert fine(fast, "collect", "fast", "--all") == "All metrics of the mission are recorded by hand.\n"
    done = fast("metric", "collect", "fast", "build-time")
    assert done.returncode == 1
    assert "`punchlist metric record fast build-time VALUE`" in done.stdout


def test_what_a_stranger_wrote_does_not_act_on_the_terminal(punchlist: Cli, project: Path) -> None:
    (project / "value").write_text("\x1b]0;owned\x07 \u202e")
    apply(punchlist, {**collected("odd", type="file", path="value"), "name": "Odd"})
    done = punchlist("metric", "collect", "fast", "--all")
    shown = done.stdout + fine(punchlist, "list", "fast") + fine(punchlist, "show", "fast")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_the_trail_tells_of_readings(fast: Cli) -> None:
    fine(fast, "record", "fast", "build-time", "72", "--note", "by the clock")
    told = [json.loads(line) for line in fast("log", "--json", "--session", "mission-fast").stdout.splitlines()]
    assert [event["reason"] for event in told if event["action"] == "record_reading"] == ["by the clock"]
