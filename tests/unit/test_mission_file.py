"""What a mission file may say, how it says what is wrong with it, and that its schema says the same (M1, M14)."""

from __future__ import annotations

import io
import json
import re
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.conftest import ROOT
from tests.unit.examples import examples
from tests.unit.hostile import BREAKS_A_DATABASE, REFUSED_IN_A_LINE, any_text

from punchlist.errors import InvalidInput, NotFound
from punchlist.missions.config import file
from punchlist.missions.config.diff import change_lines
from punchlist.missions.config.model import MissionConfig, mission_schema
from punchlist.missions.config.policy import OverduePending, StaleBacklog
from punchlist.missions.config.starter import STARTER
from punchlist.missions.config.trust import actions_needing_trust

CONTRACT = """\
{"name": "Developer Experience", "slug": "developer-experience", "description": "…",
 "todo": {"activeTodoLimit": 10, "backlogTodoLimit": 50},
 "cadence": {"cron": "0 9 * * 1", "timezone": "UTC"},
 "pillars": [{"name": "Build Performance", "slug": "build-performance", "description": "Builds under a minute",
   "metrics": [{"name": "Local build time", "slug": "local-build-time", "unit": "s", "target": 60, "warning": 90,
                "direction": "down", "collector": {"type": "manual"}}],
   "strategies": [{"description": "Replace slow loaders", "status": "active"}]}]}
"""
EVERYTHING: dict[str, Any] = {
    **json.loads(CONTRACT),
    "todo": {
        "activeTodoLimit": 3,
        "backlogTodoLimit": 0,
        "archiveAfterDays": 7.5,
        "staleBacklogAfterDays": 14,
        "staleBacklogPolicy": "cancel",
        "overduePendingPolicy": "keep",
        "reminderHours": 12,
        "maxReviews": 5,
    },
    "templates": [
        {"slug": "profiling", "title": "Profile it", "priority": "high", "check": {"name": "lint"}},
        {"title": "Make it faster", "check": {"metric": "local-build-time", "atMost": 60}},
    ],
    "checks": {"lint": {"command": ["make", "lint"]}, "test": {"command": ["make"], "timeoutSeconds": 30}},
}
SCHEMA = Draft202012Validator(mission_schema())


def problems(raw: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        file.parse_value(raw)
    return refused.value.problems


def refusal(source: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        file.parse_mission(source)
    return str(refused.value)


def with_metric(**changes: Any) -> dict[str, Any]:
    raw = deepcopy(EVERYTHING)
    raw["pillars"][0]["metrics"][0] |= changes
    return raw


def collected(**collector: Any) -> dict[str, Any]:
    return with_metric(collector=collector)


def pillars(count: int, **more: Any) -> dict[str, Any]:
    return {"name": "M", "pillars": [{"name": f"P {number}", **more} for number in range(count)]}


def metrics(count: int) -> list[dict[str, Any]]:
    return [{"name": f"M {number}", "target": 1, "direction": "up"} for number in range(count)]


# --- what it says -----------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_a_mission_file_says_limits_cadence_and_pillars_with_metrics_and_strategies() -> None:
    config = file.parse_mission(CONTRACT)
    (pillar,) = config.pillars
    (metric,) = pillar.metrics
    assert (config.name, config.slug, config.description) == ("Developer Experience", "developer-experience", "…")
    assert (config.todo.active_todo_limit, config.todo.backlog_todo_limit) == (10, 50)
    assert (config.cadence.cron, config.cadence.timezone) == ("0 9 * * 1", "UTC")
    assert (pillar.slug, pillar.description) == ("build-performance", "Builds under a minute")
    assert (metric.slug, metric.unit, metric.target, metric.warning) == ("local-build-time", "s", 60.0, 90.0)
    assert (metric.direction, metric.collector) == ("down", {"type": "manual"})
    assert [(one.description, one.status) for one in pillar.strategies] == [("Replace slow loaders", "active")]


@pytest.mark.spec("M1", "M14")
def test_what_a_file_leaves_open_is_as_it_was_decided() -> None:
    config = file.parse_mission('{"name": "A goal"}')
    assert (config.slug, config.pillars, config.templates, config.checks) == ("a-goal", (), (), {})
    assert (config.todo.active_todo_limit, config.todo.backlog_todo_limit, config.todo.archive_after_days) == (
        10,
        50,
        30,
    )
    assert (config.todo.stale_backlog_after_days, config.todo.stale_backlog_policy) == (60, StaleBacklog.REVIEW)
    assert config.todo.overdue_pending_policy is OverduePending.DEMOTE
    assert (config.cadence.cron, config.cadence.timezone) == (None, "UTC")


@pytest.mark.spec("M14")
def test_a_file_can_say_policies_templates_and_checks() -> None:
    config = file.parse_value(EVERYTHING)
    assert (config.todo.archive_after_days, config.todo.stale_backlog_policy) == (7.5, StaleBacklog.CANCEL)
    assert (config.todo.overdue_pending_policy, config.todo.max_reviews) == (OverduePending.KEEP, 5)
    assert [(one.slug, one.title, one.priority) for one in config.templates] == [
        ("profiling", "Profile it", "high"),
        ("make-it-faster", "Make it faster", None),
    ]
    assert config.checks == {
        "lint": {"command": ["make", "lint"], "timeoutSeconds": 600},
        "test": {"command": ["make"], "timeoutSeconds": 30},
    }


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Developer Experience", "developer-experience"),
        ("  Größer & schneller!  ", "groer-schneller"),
        ("C++ / 2026", "c-2026"),
        ("x" * 100, "x" * 63),
    ],
)
def test_a_slug_that_is_left_out_is_made_from_the_name(name: str, slug: str) -> None:
    assert file.parse_value({"name": name}).slug == slug


@pytest.mark.spec("M1")
def test_the_file_to_begin_with_is_a_good_one() -> None:
    assert file.parse_mission(STARTER).slug == "developer-experience"


@pytest.mark.spec("M1")
def test_the_file_in_the_documents_is_a_good_one() -> None:
    document = (ROOT / "docs" / "missions.md").read_text()
    (source,) = re.findall(r"^```json\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    assert file.parse_mission(source).templates[0].check == {"name": "tests"}


@pytest.mark.spec("M1")
@pytest.mark.parametrize("raw", [{"name": "A"}, json.loads(CONTRACT), EVERYTHING], ids=["least", "contract", "all"])
def test_a_configuration_that_is_written_down_is_read_back_as_it_was(raw: dict[str, Any]) -> None:
    config = file.parse_value(raw)
    assert file.parse_mission(json.dumps(config.as_json())) == config


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("pillars", "~ pillars: now in the order onboarding, build-performance"),
        ("metrics", "~ metrics of build-performance: now in the order m-0, local-build-time"),
        ("strategies", "~ strategies of build-performance: in another order"),
        ("templates", "~ templates: now in the order make-it-faster, profiling"),
    ],
)
def test_another_order_is_a_difference(part: str, line: str) -> None:
    before = deepcopy(EVERYTHING)
    before["pillars"].append({"name": "Onboarding"})
    before["pillars"][0]["metrics"] += metrics(1)
    before["pillars"][0]["strategies"].append({"description": "Measure"})
    after = deepcopy(before)
    (after if part in after else after["pillars"][0])[part].reverse()
    assert change_lines(file.parse_value(before).as_json(), file.parse_value(after).as_json()) == [line]


# --- what is wrong with it --------------------------------------------------------------------------------

GOOD: dict[str, dict[str, Any]] = {
    "the least": {"name": "A"},
    "the contract": json.loads(CONTRACT),
    "everything": EVERYTHING,
    "the starter": json.loads(STARTER),
    "a zone without a cron": {"name": "A", "cadence": {"timezone": "Europe/Berlin"}},
    "a number that is whole": {"name": "A", "todo": {"activeTodoLimit": 5.0}},
    "fifty pillars": pillars(50),
    "two hundred metrics": pillars(1, metrics=metrics(200)),
    "a command": collected(type="command", command=["make", "count", ""], pattern=r"(\d+) s", timeoutSeconds=2.5),
    "a file": collected(type="file", path="reports/size.json", pointer="/a/0/b~1c"),
    "an address": collected(type="http", url="https://ci.example/api?x=1", pointer="", headers={"Accept": "a/b"}),
    "a function": collected(type="python", entryPoint="our.metrics:count"),
    "an entry point by its name": collected(type="python", entryPoint="open-issues", timeoutSeconds=5),
    "a template by its title": {"name": "A", "templates": [{"title": "Look"}]},
}
# By their name: the value, and the beginnings of what is said.
BAD: dict[str, tuple[Any, list[str]]] = {
    "an array": ([], ["the file: must be an object, got an array"]),
    "null": (None, ["the file: must be an object, got null"]),
    "no name": ({}, ["name: is required"]),
    "a blank name": ({"name": "  "}, ["name: must be 1 to 200 characters after trimming, got 0"]),
    "a name of two lines": ({"name": "a\nb"}, ["name: must not contain a line break"]),
    "a long name": ({"name": "x" * 201}, ["name: must be 1 to 200 characters"]),
    "a bad slug": ({"name": "A", "slug": "Big Goal"}, ["slug: must be 1 to 63 of a-z, 0-9 and -"]),
    "a slug that begins with -": ({"name": "A", "slug": "-a"}, ["slug: must be 1 to 63"]),
    "a long slug": ({"name": "A", "slug": "a" * 64}, ["slug: must be 1 to 63"]),
    "an unknown field": (
        {"name": "A", "pilars": []},
        ["pilars: is not a known field. Did you mean pillars? Known fields: "],
    ),
    "a field of another style": (
        {"name": "A", "todo": {"active_todo_limit": 3}},
        ["todo.active_todo_limit: is not a known field. Did you mean activeTodoLimit?"],
    ),
    "todo as a number": ({"name": "A", "todo": 10}, ["todo: must be an object, got a number"]),
    "no slots": (
        {"name": "A", "todo": {"activeTodoLimit": 0}},
        ["todo.activeTodoLimit: must be a whole number from 1"],
    ),
    "half a slot": ({"name": "A", "todo": {"activeTodoLimit": 1.5}}, ["todo.activeTodoLimit: must be a whole number"]),
    "slots as text": (
        {"name": "A", "todo": {"activeTodoLimit": "9"}},
        ["todo.activeTodoLimit: must be a whole number"],
    ),
    "slots as true": ({"name": "A", "todo": {"activeTodoLimit": True}}, ["todo.activeTodoLimit: must be a whole"]),
    "a negative backlog": ({"name": "A", "todo": {"backlogTodoLimit": -1}}, ["todo.backlogTodoLimit: must be"]),
    "an unknown policy": (
        {"name": "A", "todo": {"staleBacklogPolicy": "delete"}},
        ["todo.staleBacklogPolicy: must be one of review, cancel, got 'delete'"],
    ),
    "pillars as an object": ({"name": "A", "pillars": {}}, ["pillars: must be an array, got an object"]),
    "a pillar as text": ({"name": "A", "pillars": ["Build"]}, ["pillars[0]: must be an object, got text"]),
    "fifty-one pillars": (pillars(51), ["pillars: at most 50 entries, got 51"]),
    "too many metrics": (pillars(1, metrics=metrics(201)), ["pillars[0].metrics: at most 200 entries, got 201"]),
    "a metric without target": (
        pillars(1, metrics=[{"name": "M", "direction": "up"}]),
        ["pillars[0].metrics[0].target: is required"],
    ),
    "a target as text": (with_metric(target="60"), ["pillars[0].metrics[0].target: must be a number, got text"]),
    "a direction of its own": (
        with_metric(direction="sideways"),
        ["pillars[0].metrics[0].direction: must be one of up, down, got 'sideways'"],
    ),
    "an unknown strategy": (
        pillars(1, strategies=[{"description": "x", "status": "maybe"}]),
        ["pillars[0].strategies[0].status: must be one of proposed, active, paused, done, dropped"],
    ),
    "a strategy without words": (
        pillars(1, strategies=[{"status": "done"}]),
        ["pillars[0].strategies[0].description: is required"],
    ),
    "an unknown collector": (
        collected(type="htp"),
        ["pillars[0].metrics[0].collector.type: must be one of manual, command, file, http, python, got 'htp'."],
    ),
    "a collector without type": (collected(), ["pillars[0].metrics[0].collector.type: must be one of"]),
    "a collector as text": (with_metric(collector="manual"), ["pillars[0].metrics[0].collector: must be an object"]),
    "a collector with more": (
        collected(type="manual", command=["x"]),
        ["pillars[0].metrics[0].collector.command: is not a known field"],
    ),
    "a command as text": (
        collected(type="command", command="make count"),
        ["pillars[0].metrics[0].collector.command: must be a non-empty array of text"],
    ),
    "an empty command": (collected(type="command", command=[]), ["pillars[0].metrics[0].collector.command: must be"]),
    "a command of numbers": (collected(type="command", command=[1]), ["pillars[0].metrics[0].collector.command: must"]),
    "no command": (collected(type="command"), ["pillars[0].metrics[0].collector.command: is required"]),
    "a timeout of a day": (
        collected(type="command", command=["x"], timeoutSeconds=86_400),
        ["pillars[0].metrics[0].collector.timeoutSeconds: must be a number from 0.1 to 3,600"],
    ),
    "a path that climbs": (
        collected(type="file", path="a/../../secret"),
        ["pillars[0].metrics[0].collector.path: must stay inside the project folder"],
    ),
    "a path that climbs on Windows": (
        collected(type="file", path="a\\..\\b"),
        ["pillars[0].metrics[0].collector.path"],
    ),
    "a path from the root": (
        collected(type="file", path="/etc/passwd"),
        ["pillars[0].metrics[0].collector.path: must be relative to the project folder"],
    ),
    "a path on a drive": (collected(type="file", path="C:\\x"), ["pillars[0].metrics[0].collector.path: must be rela"]),
    "a path of a home": (
        collected(type="file", path="~/x"),
        ["pillars[0].metrics[0].collector.path: must be relative"],
    ),
    "pointer and pattern": (
        collected(type="file", path="x", pointer="/a", pattern="(x)"),
        ["pillars[0].metrics[0].collector.pattern: cannot be combined with a pointer"],
    ),
    "a file as an address": (
        collected(type="http", url="file:///etc/passwd", pointer="/a"),
        ["pillars[0].metrics[0].collector.url: must be an http:// or https:// address"],
    ),
    "an address without host": (
        collected(type="http", url="http://", pointer=""),
        ["pillars[0].metrics[0].collector.u"],
    ),
    "an address with a password": (
        collected(type="http", url="https://me:secret@example.com/", pointer="/a"),
        ["pillars[0].metrics[0].collector.url: must not contain a user name or password"],
    ),
    "an address without pointer": (
        collected(type="http", url="https://example.com"),
        ["pillars[0].metrics[0].collector.pointer: is required"],
    ),
    "a pointer without slash": (
        collected(type="http", url="https://example.com", pointer="a/b"),
        ["pillars[0].metrics[0].collector.pointer: must be a JSON pointer"],
    ),
    "headers as a list": (
        collected(type="http", url="https://example.com", pointer="", headers=["a"]),
        ["pillars[0].metrics[0].collector.headers: must be an object"],
    ),
    "an entry point without function": (
        collected(type="python", entryPoint="os.system"),
        [
            'pillars[0].metrics[0].collector.entryPoint: must be "module:function" or the name of an entry point, '
            "got 'os.system'"
        ],
    ),
    "a template without a name": ({"name": "A", "templates": [{}]}, ["templates[0].slug: is required"]),
    "a template with a command": (
        {"name": "A", "templates": [{"slug": "t", "check": {"command": ["x"]}}]},
        ['templates[0].check.command: define the command under "checks"'],
    ),
    "a check of two kinds": (
        {**EVERYTHING, "templates": [{"slug": "t", "check": {"name": "lint", "metric": "local-build-time"}}]},
        ["templates[0].check: must be"],
    ),
    "a check without command": ({"name": "A", "checks": {"x": {}}}, ["checks.x.command: is required"]),
    "a check with a bad name": (
        {"name": "A", "checks": {"X y": {"command": ["x"]}}},
        ["checks.X y: must be 1 to 63 of a-z"],
    ),
}
# What takes more than a shape; the schema lets it pass.
BAD_TOGETHER: dict[str, tuple[Any, list[str]]] = {
    "a name without letters": (
        {"name": "目標"},
        ["slug: is required, because '目標' contains no letters a to z or digits"],
    ),
    "a cron of six fields": ({"name": "A", "cadence": {"cron": "0 0 9 * * 1"}}, ["cadence.cron: "]),
    "a zone that is none": ({"name": "A", "cadence": {"timezone": "Mars/Base"}}, ["cadence.timezone: "]),
    "a pillar twice": (
        {"name": "A", "pillars": [{"name": "P"}, {"name": "p"}]},
        ["pillars[1].slug: 'p' is already the slug of pillars[0]; each pillar of a mission needs its own"],
    ),
    "a metric twice": (
        {"name": "A", "pillars": [{"name": f"P{n}", "metrics": metrics(1)} for n in range(2)]},
        ["pillars[1].metrics[0].slug: 'm-0' is already the slug of pillars[0].metrics[0]"],
    ),
    "too many metrics in total": (
        {
            "name": "A",
            "pillars": [
                {
                    "name": f"P{n}",
                    "metrics": [{"name": f"{n} {i}", "target": 1, "direction": "up"} for i in range(101)],
                }
                for n in range(2)
            ],
        },
        ["pillars: at most 200 metrics in total, got 202"],
    ),
    "too many strategies in total": (
        pillars(2, strategies=[{"description": "x"}] * 51),
        ["pillars: at most 100 strategies in total, got 102"],
    ),
    "a warning on the wrong side": (
        with_metric(warning=30),
        ["pillars[0].metrics[0].warning: must not be below the target (60) when lower is better"],
    ),
    "a target that is not a number": (
        with_metric(target=float("nan")),
        ["pillars[0].metrics[0].target: must be a finite"],
    ),
    "a target without end": (with_metric(target=float("inf")), ["pillars[0].metrics[0].target: must be a finite"]),
    "a pattern without group": (
        collected(type="file", path="x", pattern="[0-9]+"),
        ["pillars[0].metrics[0].collector.pattern: must have exactly one group in parentheses"],
    ),
    "a pattern that is none": (
        collected(type="file", path="x", pattern="("),
        ["pillars[0].metrics[0].collector.pattern: is not a valid regular expression"],
    ),
    "a header that is two": (
        collected(type="http", url="https://example.com", pointer="", headers={"A": "b\r\nC: d"}),
        ["pillars[0].metrics[0].collector.headers.A: must not contain"],
    ),
    "a check that is not there": (
        {"name": "A", "templates": [{"slug": "t", "check": {"name": "lint"}}]},
        ["templates[0].check.name: this file has no check 'lint'"],
    ),
    "a metric that is not there": (
        {"name": "A", "templates": [{"slug": "t", "check": {"metric": "x", "atMost": 1}}]},
        ["templates[0].check.metric: this file has no metric 'x'"],
    ),
}


@pytest.mark.spec("M1")
@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD)
def test_a_good_file_is_taken_and_its_schema_agrees(raw: Any) -> None:
    assert isinstance(file.parse_value(raw), MissionConfig)
    assert [error.message for error in SCHEMA.iter_errors(raw)] == []


@pytest.mark.spec("M1")
@pytest.mark.parametrize(("raw", "told"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_with_the_way_to_the_field_and_its_schema_agrees(raw: Any, told: list[str]) -> None:
    found = problems(raw)
    assert len(found) == len(told)
    assert all(problem.startswith(beginning) for problem, beginning in zip(found, told, strict=True)), found
    assert list(SCHEMA.iter_errors(raw))


@pytest.mark.spec("M1", "M14")
@pytest.mark.parametrize(("raw", "told"), BAD_TOGETHER.values(), ids=BAD_TOGETHER)
def test_what_takes_more_than_a_shape_is_refused_too(raw: Any, told: list[str]) -> None:
    found = problems(raw)
    assert len(found) == len(told)
    assert all(problem.startswith(beginning) for problem, beginning in zip(found, told, strict=True)), found


@pytest.mark.spec("M1")
def test_one_look_tells_all_that_is_wrong() -> None:
    raw = {"nam": "A", "todo": {"activeTodoLimit": 0}, "pillars": [{"name": "P", "metrics": [{"name": "M"}]}]}
    assert [problem.partition(":")[0] for problem in problems(raw)] == [
        "nam",
        "name",
        "todo.activeTodoLimit",
        "pillars[0].metrics[0].target",
        "pillars[0].metrics[0].direction",
    ]


@pytest.mark.spec("M1")
@pytest.mark.parametrize("text", REFUSED_IN_A_LINE.values(), ids=REFUSED_IN_A_LINE)
def test_hostile_names_are_refused(text: str) -> None:
    assert problems({"name": f"x{text}x"})[0].startswith("name: must not contain ")
    assert problems(with_metric(name=f"x{text}x"))[0].startswith("pillars[0].metrics[0].name: must not contain ")


@pytest.mark.spec("M1")
@pytest.mark.parametrize("text", BREAKS_A_DATABASE.values(), ids=BREAKS_A_DATABASE)
def test_no_field_takes_what_a_database_cannot_keep(text: str) -> None:
    for raw in (
        {"name": "A", "description": text},
        {"name": "A", "checks": {"c": {"command": ["x", text]}}},
        pillars(1, strategies=[{"description": text}]),
        collected(type="http", url="https://example.com", pointer=f"/{text}"),
        collected(type="http", url="https://example.com", pointer="", headers={"A": text}),
    ):
        assert "must not contain" in problems(raw)[0]


# --- as a file --------------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "mission.json, line 1, column 1: is not JSON (expecting value)."),
        ('{"name": "A"\n  "slug": "a"}', "mission.json, line 2, column 3: is not JSON (expecting ',' delimiter)."),
        ('{\n  // the goal\n  "name": "A"}', "line 2, column 3: is not JSON (expecting property name"),
        ('{"name": "A"} # done', "JSON has no comments: remove them"),
        ("{'name': 'A'}", "JSON needs double quotes."),
        ('{"name": "A", "pillars": [{"name": "P"},]}', "mission.json, line 1, column "),
        ('{"name": "A", "name": "B"}', "mission.json: name: occurs more than once"),
        ('{"name": "A", "todo": {"maxReviews": 1, "maxReviews": 2}}', "todo.maxReviews: occurs more than once"),
        ('{"name": "A", "todo": {"reminderHours": NaN}}', "todo.reminderHours: must be a finite number"),
        ('{"name": "A", "todo": {"reminderHours": 1e999}}', "todo.reminderHours: must be a finite number"),
        ('{"name": "A", "todo": {"reminderHours": 1' + "0" * 4_000 + "}}", "todo.reminderHours: must be a number from"),
        ('{"name": "A", "todo": {"maxReviews": ' + "9" * 5_000 + "}}", "has a number with thousands of digits"),
        ("[" * 100_000, "mission.json: is nested too deeply"),
        ('{"name": ' * 50_000, "mission.json: is nested too deeply"),
        (f'{{"name": "{"x" * 1_000_000}"}}', "mission.json: is larger than 1,000,000 characters"),
    ],
    ids=lambda value: value[:30],
)
def test_a_text_that_is_no_mission_file_is_refused_with_its_place(source: str, told: str) -> None:
    assert told in refusal(source)


@pytest.mark.spec("M1")
def test_comments_are_named_as_what_they_are() -> None:
    assert refusal('{\n  "name": "A", // the goal\n  "slug": "a"}').endswith(
        "JSON has no comments: remove them, or put them into a description."
    )
    assert refusal('/* goals */ {"name": "A"}').endswith("or put them into a description.")


@pytest.mark.spec("M1")
def test_a_file_is_read_with_or_without_a_mark_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "mission.json"
    path.write_bytes(b"\xef\xbb\xbf" + CONTRACT.encode())
    assert file.read(path) == CONTRACT


@pytest.mark.spec("M1")
def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    large, latin = tmp_path / "large.json", tmp_path / "latin.json"
    with large.open("wb") as made:
        # As large as it says, but with nothing written: 100 MB.
        made.truncate(100_000_000)
    latin.write_bytes('{"name": "Größe"}'.encode("latin-1"))
    for path, told in (
        (large, "is larger than 1,000,000 bytes"),
        (latin, "is not UTF-8 (byte 13)"),
        (tmp_path, "is a folder"),
        (Path("a\0b"), "cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=told.replace("(", r"\(").replace(")", r"\)")):
            file.read(path)
    with pytest.raises(NotFound, match=r"there is no such file. Create one with `punchlist mission init"):
        file.read(tmp_path / "none.json")


@pytest.mark.spec("M1")
def test_a_file_can_come_on_stdin_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONTRACT.encode())))
    assert file.read(Path("-")) == CONTRACT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * 1_000_001)))
    with pytest.raises(InvalidInput, match="stdin: is larger than"):
        file.read(Path("-"))


@pytest.mark.spec("M7")
def test_what_a_file_would_run_is_told_in_the_words_of_a_shell() -> None:
    raw = collected(type="command", command=["sh", "-c", "wc -l < x"])
    raw["pillars"][0]["metrics"] += [
        {
            "name": "A",
            "target": 1,
            "direction": "up",
            "collector": {"type": "http", "url": "https://a.example", "pointer": ""},
        },
        {"name": "B", "target": 1, "direction": "up", "collector": {"type": "python", "entryPoint": "a:b"}},
        {"name": "C", "target": 1, "direction": "up", "collector": {"type": "file", "path": "c"}},
    ]
    assert actions_needing_trust(file.parse_value(raw)) == [
        "metric local-build-time: runs sh -c 'wc -l < x'",
        "metric a: requests https://a.example",
        "metric b: calls a:b",
        "check lint: runs make lint",
        "check test: runs make",
    ]


# --- whatever comes ---------------------------------------------------------------------------------------

DEFINITIONS = mission_schema()["$defs"].values()
NAMES = sorted(
    {name for definition in (mission_schema(), *DEFINITIONS) for name in definition.get("properties", {})}
    | {"cron", "timezone", "type", "command", "path", "url", "pointer", "headers", "pattern", "entryPoint", "metric"}
)
WORDS = ["manual", "command", "file", "http", "python", "up", "down", "active", "* * * * *", "UTC", "https://a.b", "a"]
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), any_text, st.sampled_from(WORDS))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), any_text), inner, max_size=6),
    ),
    max_leaves=30,
)


def taken(raw: Any) -> MissionConfig | None:
    """What was read; None when it was refused in words, and not too many of them."""
    try:
        return file.parse_value(raw)
    except InvalidInput as error:
        refused = error
    assert refused.problems
    assert len(str(refused)) < 10_000
    return None


def comparable(config: MissionConfig) -> dict[str, Any]:
    """What can change in a mission: all but its slug."""
    return {name: value for name, value in config.as_json().items() if name != "slug"}


@pytest.mark.spec("M1")
@examples(150)
@given(values)
def test_any_json_is_a_mission_or_is_refused_in_words(raw: Any) -> None:
    config = taken(raw)
    assert config is None or file.parse_value(config.as_json()) == config


@pytest.mark.spec("M1")
@examples(150)
@given(st.data())
def test_a_good_file_with_something_else_somewhere_is_a_mission_or_is_refused_in_words(data: st.DataObject) -> None:
    raw = deepcopy(EVERYTHING)
    place: Any = raw
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(values)
        break
    config = taken(raw)
    if config is not None:
        assert file.parse_value(config.as_json()) == config
        before = file.parse_value(EVERYTHING)
        assert bool(change_lines(before.as_json(), config.as_json())) == (comparable(before) != comparable(config))


@pytest.mark.spec("M1")
@examples(300)
@given(st.text(max_size=200))
def test_any_text_is_refused_in_words(source: str) -> None:
    assert refusal(source).startswith("mission.json")
