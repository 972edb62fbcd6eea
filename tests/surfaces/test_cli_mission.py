"""`punchlist mission`: made from a file, changed by it, looked at, trusted, archived (M1, M14)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.conftest import Cli
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience, mission_file
from tests.faults.processes import answered
from tests.unit.hostile import EVERYTHING_HOSTILE

from punchlist.kernel.clock import parse_timestamp
from punchlist.missions.budgets.repository import Spend, SpendPlace
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.directives.service import Directives
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

RUNS = {"type": "command", "command": ["sh", "-c", "wc -l < log"]}


def address(project: Path) -> str:
    return f"sqlite:///{project}/.punchlist/punchlist.db"


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    """The project's database, as the program has it."""
    opened = open_store(address(project))
    yield opened
    opened.close()


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def fine(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist("mission", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(punchlist: Cli, *arguments: str, **extra: Any) -> Any:
    return json.loads(fine(punchlist, *arguments, "--json", **extra))


def refused(punchlist: Cli, *arguments: str, code: str, **extra: Any) -> str:
    """What is said on stderr; programs get the error's code and the same words."""
    done = punchlist("mission", *arguments, "--json", **extra)
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == code
    assert error["message"] in done.stderr
    return str(error["message"])


def write(project: Path, **changes: Any) -> str:
    (project / "mission.json").write_text(json.dumps(mission_file(**changes), indent=2))
    return "mission.json"


def running(**changes: Any) -> dict[str, Any]:
    """A file with a collector that would run."""
    raw = mission_file(**changes)
    raw["pillars"][0]["metrics"][0]["collector"] = RUNS
    return raw


# --- from a file ------------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_from_nothing_to_a_mission_in_two_commands(punchlist: Cli, project: Path) -> None:
    assert fine(punchlist, "list") == "No missions yet. `punchlist mission init` writes a starter file.\n"
    assert fine(punchlist, "init").startswith("Wrote mission.json.")
    assert fine(punchlist, "apply", "mission.json", "--yes") == (
        "+ mission developer-experience (Developer Experience)\n"
        "+ pillar build-performance\n"
        "+ metric local-build-time\n"
        "+ strategy of build-performance: “Find the slowest step and replace it” (active)\n"
        "Created mission developer-experience. Its chat is mission-developer-experience.\n"
    )
    assert fine(punchlist, "list") == "developer-experience  active 0/10, backlog 0/50  Developer Experience\n"


@pytest.mark.spec("M1")
def test_a_file_that_is_there_is_never_overwritten(punchlist: Cli, project: Path) -> None:
    (project / "mine.json").write_text("mine")
    assert "already exists" in refused(punchlist, "init", "mine.json", code="conflict")
    assert (project / "mine.json").read_text() == "mine"
    assert "cannot be written" in refused(punchlist, "init", "no/such/folder.json", code="invalid_input")


@pytest.mark.spec("M1")
def test_a_changed_file_shows_what_changes_and_the_same_again_says_so(punchlist: Cli, project: Path) -> None:
    fine(punchlist, "apply", write(project), "--yes")
    name = write(project, active=8)
    lines = "~ todo.activeTodoLimit: 10 → 8\n"
    assert fine(punchlist, "apply", name, "--dry-run") == lines
    assert fine(punchlist, "apply", name, "--yes") == f"{lines}Changed mission {SLUG} (1 change).\n" + TO_TRUST
    assert fine(punchlist, "apply", name).startswith(f"No changes: mission {SLUG} matches the file.\n")


TO_TRUST = f"1 command of its file will not run until you review and trust the file: punchlist mission trust {SLUG}\n"


@pytest.mark.spec("M1")
def test_programs_are_told_the_same_as_json(punchlist: Cli, project: Path) -> None:
    name = write(project)
    planned = told(punchlist, "apply", name, "--dry-run")
    assert (planned["dryRun"], planned["created"], planned["missionId"]) == (True, True, None)
    made = told(punchlist, "apply", name, "--yes")
    assert (made["dryRun"], made["created"], made["slug"]) == (False, True, SLUG)
    assert made["changes"] == planned["changes"]
    assert (made["asksFor"], made["trusted"]) == (["check tests: runs make test"], False)
    assert made["conversationId"] == f"mission-{SLUG}"
    again = told(punchlist, "apply", name, "--yes")
    assert (again["created"], again["changes"], again["missionId"]) == (False, [], made["missionId"])
    [one] = told(punchlist, "list")
    assert (one["id"], one["slug"], one["status"]) == (made["missionId"], SLUG, "active")
    assert one["capacity"] == {"active": 0, "activeTodoLimit": 10, "backlog": 0, "backlogTodoLimit": 50}


@pytest.mark.spec("M1")
def test_without_a_terminal_nothing_is_applied_unasked(punchlist: Cli, project: Path) -> None:
    name = write(project)
    message = refused(punchlist, "apply", name, code="not_allowed")
    assert message.startswith("Nothing was changed, because there is no terminal to confirm it.")
    assert message.endswith("punchlist mission apply mission.json --yes")
    assert told(punchlist, "list") == []


@pytest.mark.spec("M1")
@pytest.mark.parametrize(("typed", "code", "missions"), [("y\n", 0, 1), ("n\n", 1, 0)], ids=["yes", "no"])
def test_at_a_terminal_the_person_is_asked_after_seeing_what_changes(
    punchlist: Cli, project: Path, environment: dict[str, str], typed: str, code: int, missions: int
) -> None:
    done = answered(project, environment, b"[y/N]", typed.encode(), "mission", "apply", write(project))
    assert f"+ pillar {BUILD}" in done.stdout.decode()
    assert done.returncode == code
    assert len(told(punchlist, "list")) == missions


@pytest.mark.spec("M1")
def test_a_file_may_come_from_standard_input(punchlist: Cli) -> None:
    source = json.dumps(mission_file())
    assert told(punchlist, "apply", "-", "--yes", input=source)["created"]
    assert "name: is required" in refused(punchlist, "apply", "-", "--yes", code="invalid_input", input="{}")


@pytest.mark.spec("M1")
def test_a_wrong_file_is_refused_with_its_name_and_the_fields(punchlist: Cli, project: Path) -> None:
    (project / "bad.json").write_text('{"name": "A", "todo": {"activeTodolimit": 3}, "pillars": [{}]}')
    assert refused(punchlist, "apply", "bad.json", "--yes", code="invalid_input").splitlines() == [
        "bad.json: todo.activeTodolimit: is not a known field. Did you mean activeTodoLimit? Known fields: "
        "activeTodoLimit, backlogTodoLimit, archiveAfterDays, staleBacklogAfterDays, staleBacklogPolicy, "
        "overduePendingPolicy, reminderHours, maxReviews, maxStartsPerDay, maxCostPerDay",
        "bad.json: pillars[0].name: is required",
    ]
    (project / "bad.json").write_text('{\n  "name": "A", // mine\n}')
    assert "bad.json, line 2, column 16: is not JSON" in refused(punchlist, "apply", "bad.json", code="invalid_input")
    assert "there is no such file" in refused(punchlist, "apply", "none.json", code="not_found")
    assert told(punchlist, "list") == []


@pytest.mark.spec("M1")
def test_warnings_are_shown_with_the_changes(punchlist: Cli) -> None:
    shown = fine(punchlist, "apply", "-", "--yes", input='{"name": "Later"}')
    assert "! The mission has no pillars. Every todo belongs to a pillar.\n" in shown


@pytest.mark.spec("M1")
def test_what_is_exported_is_the_whole_file_and_fits_the_schema(punchlist: Cli, team: Team) -> None:
    schema = told(punchlist, "schema")
    assert json.loads(fine(punchlist, "schema")) == schema
    exported = json.loads(fine(punchlist, "export", SLUG))
    assert list(exported)[:3] == ["name", "slug", "description"]
    assert exported["todo"]["archiveAfterDays"] == 30
    assert list(Draft202012Validator(schema).iter_errors(exported)) == []
    again = told(punchlist, "apply", "-", "--dry-run", input=json.dumps(exported))
    assert again["changes"] == ["~ the text of the file; its meaning is unchanged"]


# --- trust ------------------------------------------------------------------------------------------------


@pytest.mark.spec("M1", "M7")
def test_what_a_file_would_run_does_not_run_before_it_is_trusted(punchlist: Cli, project: Path) -> None:
    (project / "log").write_text("one\ntwo\n")
    source = json.dumps(running())
    assert "will not run until you review" in fine(punchlist, "apply", "-", "--yes", input=source)
    collect = ("mission", "metric", "collect", SLUG, "local-build-time", "--json")
    assert punchlist(*collect).returncode == 1
    done = punchlist("mission", "trust", SLUG)
    assert done.returncode == 1
    assert "metric local-build-time: runs sh -c 'wc -l < log'" in done.stderr
    assert f"punchlist mission trust {SLUG} --yes" in done.stderr
    assert fine(punchlist, "trust", SLUG, "--yes") == f"The file of mission {SLUG} is trusted.\n"
    assert json.loads(punchlist(*collect).stdout)[0]["value"] == 2
    assert told(punchlist, "trust", SLUG, "--forget")["trusted"] is False
    assert punchlist(*collect).returncode == 1


@pytest.mark.spec("M7", "M18")
def test_trust_covers_what_runs_and_not_the_rest_of_the_file(punchlist: Cli) -> None:
    applied = told(punchlist, "apply", "-", "--yes", "--trust", input=json.dumps(running()))
    assert applied["trusted"] is True
    other = running(active=4, description="Another description")
    again = told(punchlist, "apply", "-", "--yes", input=json.dumps(other, indent=1))
    assert (len(again["changes"]), again["trusted"]) == (2, True)


@pytest.mark.spec("M7", "M18")
@pytest.mark.parametrize("changed", ["collector", "check", "more"])
def test_any_change_to_what_runs_asks_again(punchlist: Cli, changed: str) -> None:
    told(punchlist, "apply", "-", "--yes", "--trust", input=json.dumps(running()))
    raw = running()
    if changed == "collector":
        raw["pillars"][0]["metrics"][0]["collector"] = {**RUNS, "timeoutSeconds": 7}
    elif changed == "check":
        raw["checks"]["tests"]["command"] = ["make", "test", "deploy"]
    else:
        raw["checks"]["deploy"] = {"command": ["make", "deploy"]}
    assert told(punchlist, "apply", "-", "--yes", input=json.dumps(raw))["trusted"] is False
    assert told(punchlist, "trust", SLUG, "--yes")["trusted"] is True


@pytest.mark.spec("M1", "M7")
def test_a_file_that_runs_nothing_needs_no_trust(punchlist: Cli) -> None:
    fine(punchlist, "apply", "-", "--yes", input='{"name": "Quiet", "pillars": [{"name": "P"}]}')
    assert fine(punchlist, "trust", "quiet") == "The file of mission quiet contains nothing that needs trust.\n"


# --- looked at --------------------------------------------------------------------------------------------


@pytest.mark.spec("M1", "M2", "M7")
def test_a_mission_is_shown_as_a_board(punchlist: Cli, team: Team) -> None:
    for value in (55, 63, 72):
        Metrics(team.store).record(team.person, SLUG, "local-build-time", value)
    team.todo_in(TodoStatus.IN_PROGRESS, "Profile the build", priority=TodoPriority.HIGH)
    team.todo_in(TodoStatus.PENDING, "Read the profile", deadline="2099-02-21")
    team.todo_in(TodoStatus.BACKLOG, "Try another bundler")
    done = team.todo_in(TodoStatus.COMPLETED, "Measure first")
    ids = {todo.title: todo.id[-8:] for todo in team.todos.list(SLUG).items}
    lines = fine(punchlist, "show", SLUG).splitlines()
    assert lines[:5] == [
        f"Developer Experience ({SLUG})",
        "Good tools, short waits",
        "",
        "active   ██░░░░░░░░ 2/10",
        "backlog  █░░░░░░░░░ 1/50",
    ]
    assert lines[5] == "todos    1 in progress, 1 pending, 1 backlog, 1 completed, 0 cancelled"
    assert lines[6].startswith("cadence  0 9 * * 1 UTC, next 20")
    assert lines[7:9] == [
        "workers  0 alive",
        "! No worker is alive, so no work is done. 2 runs are queued. "
        "Start one with `punchlist worker` or `punchlist serve`.",
    ]
    assert lines[9:] == [
        "",
        f"Build Performance ({BUILD})",
        "  Builds under a minute",
        "  ! Local build time: 72 s  warning (≤ 60 s)  degrading  ▁▄█",
        "  ? Cache hits: no reading  unknown (≥ 90%)",
        "  » Replace slow loaders (active)",
        f"  ▶ Profile the build  high  {ids['Profile the build']}",
        f"  ○ Read the profile  medium  {ids['Read the profile']}  due 2099-02-21",
        f"  · Try another bundler  medium  {ids['Try another bundler']}",
        f"  ✓ Measure first  medium  {done.id[-8:]}",
        "",
        "Onboarding (onboarding)",
        "  A first change on the first day",
        "  No todos.",
    ]
    shown = told(punchlist, "show", SLUG)
    build, onboarding = shown["pillars"]
    assert shown["capacity"]["active"] == 2
    assert [metric["status"] for metric in build["metrics"]] == ["warning", "unknown"]
    assert [todo["status"] for todo in build["todos"]] == ["in_progress", "pending", "backlog", "completed"]
    assert (onboarding["todos"], onboarding["todoConversationId"]) == ([], f"mission-{SLUG}.onboarding.todos")


@pytest.mark.spec("M15", "X7")
def test_the_board_is_filtered_counted_and_paged(punchlist: Cli, team: Team) -> None:
    team.create("Profile the build", priority=TodoPriority.HIGH, labels=("speed",))
    team.create("Cache the build", labels=("speed",))
    team.create("Write a guide", ONBOARDING)
    shown = fine(punchlist, "show", SLUG, "--search", "build", "--label", "speed", "--priority", "high")
    assert "todos    0 in progress, 1 pending, 0 backlog, 0 completed, 0 cancelled" in shown
    assert "Profile the build" in shown
    assert "Cache the build" not in shown
    first = told(punchlist, "show", SLUG, "--pillar", BUILD, "--limit", "1")
    rest = told(punchlist, "show", SLUG, "--pillar", BUILD, "--limit", "1", "--cursor", first["nextCursor"])
    assert [page["pillars"][0]["todos"][0]["title"] for page in (first, rest)] == [
        "Profile the build",
        "Cache the build",
    ]
    assert first["columns"][1] == {"status": "pending", "count": 2}
    assert "nextCursor" not in rest


@pytest.mark.spec("M15", "X7")
def test_the_flow_of_a_mission_is_told_by_day_pillar_and_status(punchlist: Cli, team: Team) -> None:
    done = team.todo_in(TodoStatus.COMPLETED, "Measure first")
    team.create("Write a guide", ONBOARDING)
    place = SpendPlace(team.mission.id, done.id, done.pillar_id)
    Budgets(team.store).reserve(place, Spend(1, 1_200, cost=0.25), team.store.clock())
    shown = fine(punchlist, "flow", SLUG, "--days", "2")
    assert "\n  pending          0 → 1     ▁█\n" in shown
    assert f"\nEnded todos\n  {BUILD}: 1 completed, 0 cancelled\n" in shown
    assert "\nCycle time from start to completion: median 0." in shown
    assert f"\nSpend\n  {BUILD}: 1 request, 1,200 tokens in, 0 out, $0.2500\n" in shown
    series = told(punchlist, "flow", SLUG, "--days", "2")
    assert [day["pending"] for day in series["flow"]] == [0, 1]
    assert (series["cycleTimes"]["todos"], series["spend"][0]["cost"]) == (1, 0.25)


@pytest.mark.spec("M18", "M15")
def test_sub_items_are_listed_under_their_parent(punchlist: Cli, team: Team) -> None:
    first, parent = team.create("Measure first"), team.create("Cut the build")
    child = team.create("Cut the tests", parent_id=parent.id)
    team.create("Cut one test", parent_id=parent.id)
    team.create("Ask around")
    team.update(child, TodoAction.DEMOTE)
    team.update(first, TodoAction.START)
    for command in (["show"], ["todo", "list"]):
        titles = [line for line in fine(punchlist, *command, SLUG).splitlines() if re.match(r" *[▶○·] ", line)]
        shown = [(len(line) - len(line.lstrip()), re.findall("Measure|Cut .*?(?:build|tests|one test)|Ask", line)[0])
                 for line in titles]  # fmt: skip
        base = shown[0][0]
        assert [(depth - base, title) for depth, title in shown] == [
            (0, "Measure"), (0, "Cut the build"), (2, "Cut one test"), (2, "Cut the tests"), (0, "Ask"),
        ]  # fmt: skip


@pytest.mark.spec("M17", "M19")
def test_a_mission_and_its_chats_show_its_directives_and_a_paused_one_has_no_next_cycle(
    punchlist: Cli, team: Team
) -> None:
    Directives(team.store).add(team.person, SLUG, "Builds come first.", until="2099-01-01")
    assert "\nDirectives\n  1. Builds come first. (until 2099-01-01)\n" in fine(punchlist, "show", SLUG)
    told_mission = told(punchlist, "show", SLUG)
    assert [one["content"] for one in told_mission["directives"]] == ["Builds come first."]
    for chat in (SLUG, f"{SLUG}/{BUILD}", f"{SLUG}/{BUILD}/todos"):
        assert "directive 1. Builds come first." in fine(punchlist, "chat", "show", chat)
        assert told(punchlist, "chat", "show", chat)["directives"][0]["number"] == 1
    assert told_mission["nextCycle"] is not None
    team.missions.pause(team.person, SLUG, "holidays")
    paused = told(punchlist, "show", SLUG)
    assert (paused["nextCycle"], paused["health"]["nextCycle"]) == (None, None)
    assert ", next " not in fine(punchlist, "show", SLUG)


@pytest.mark.spec("M18")
def test_the_history_of_a_todo_shows_old_and_new_values(punchlist: Cli, team: Team) -> None:
    todo = team.create("Build", description="Slow", labels=("speed",))
    fine(punchlist, "todo", "edit", todo.id, "--title", "Profile the build", "--clear", "labels", "--why", "clearer")
    fine(punchlist, "todo", "extend", todo.id, "2099-02-01", "--why", "later")
    shown = fine(punchlist, "todo", "show", todo.id, "--part", "history")
    assert "    title: Build → Profile the build\n" in shown
    assert "    labels: speed → none\n" in shown
    assert "    deadline: none → 2099-02-01\n" in shown
    created, edited, extended = told(punchlist, "todo", "show", todo.id)["history"]
    assert created["changes"] == []
    assert edited["changes"] == [
        {"field": "title", "from": "Build", "to": "Profile the build"},
        {"field": "labels", "from": ["speed"], "to": None},
    ]
    assert extended["changes"] == [{"field": "deadline", "from": None, "to": "2099-02-01"}]
    page = told(punchlist, "todo", "show", todo.id, "--part", "history", "--cursor", str(edited["version"]))
    assert page["items"] == [extended]


@pytest.mark.spec("M1", "M14")
def test_todos_that_ended_long_ago_are_left_out_unless_asked_for(punchlist: Cli, store: Store) -> None:
    team = developer_experience(store, todo={"archiveAfterDays": 0})
    team.todo_in(TodoStatus.COMPLETED, "Measure first")
    assert "Measure first" not in fine(punchlist, "show", SLUG)
    assert "✓ Measure first" in fine(punchlist, "show", SLUG, "--archived")


@pytest.mark.spec("M1")
def test_a_mission_that_is_not_there_is_named_with_the_nearest(punchlist: Cli, team: Team) -> None:
    for command in (["show"], ["export"], ["trust", "--yes"], ["archive", "--why", "x"], ["unarchive", "--why", "x"]):
        message = refused(punchlist, *command, "developer-experienc", code="not_found")
        assert message.startswith(f"There is no mission 'developer-experienc'. Did you mean {SLUG}?")


@pytest.mark.spec("M1")
def test_an_archived_mission_is_left_out_of_the_list_and_can_be_read(punchlist: Cli, team: Team) -> None:
    assert punchlist("mission", "archive", SLUG).returncode == 2
    assert fine(punchlist, "archive", SLUG, "--why", "reached") == f"Archived mission {SLUG}.\n"
    assert told(punchlist, "list") == []
    assert [one["status"] for one in told(punchlist, "list", "--archived")] == ["archived"]
    assert fine(punchlist, "show", SLUG).startswith(f"Developer Experience ({SLUG})  archived 20")
    message = refused(punchlist, "apply", "-", "--yes", code="conflict", input=json.dumps(mission_file()))
    assert "belongs to a mission that was archived" in message
    assert "is archived" in refused(punchlist, "archive", SLUG, "--why", "again", code="illegal_transition")


@pytest.mark.spec("M1", "W10")
def test_nothing_in_a_mission_acts_on_the_terminal(punchlist: Cli, store: Store) -> None:
    hides = {name: text for name, text in EVERYTHING_HOSTILE.items() if "mark" in name or "override" in name}
    hostile = "".join(hides.values())
    raw = mission_file(name=f"Goal {hostile}", description=f"a\n{hostile}")
    raw["pillars"][0] |= {"name": f"P {hostile}", "strategies": [{"description": f"S {hostile}"}]}
    raw["pillars"][0]["metrics"][0] |= {"name": f"M {hostile}", "unit": "\u202e%", "collector": RUNS}
    shown = fine(punchlist, "apply", "-", "--yes", input=json.dumps(raw))
    shown += fine(punchlist, "list") + fine(punchlist, "show", SLUG) + fine(punchlist, "export", SLUG)
    assert "Goal a\\u202eb" in shown
    assert not [char for char in "\u202e\u200f\u061c\ufeff" if char in shown]


# --- what it asks -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(team: Team, project: Path) -> Team:
    """With two todos that are overdue, which the person is asked about."""
    for title in ("Profile the build", "Read the profile"):
        todo = team.todo_in(TodoStatus.IN_PROGRESS, title)
        team.update(todo, TodoAction.EXTEND, deadline="2098-02-21")
    later = open_store(address(project), clock=lambda: parse_timestamp("2099-01-01T00:00:00.000000Z"))
    OverdueService(later).process_mission(team.system, team.mission.id)
    later.close()
    return team


@pytest.mark.spec("M13")
def test_what_a_mission_asks_is_listed_and_answered(punchlist: Cli, asked: Team) -> None:
    shown = fine(punchlist, "escalations", SLUG)
    assert "TODO overdue: Profile the build" in shown
    first, second = told(punchlist, "escalations", SLUG)
    assert fine(punchlist, "acknowledge", first["id"][-8:]).startswith("Reminders of ")
    assert [one["status"] for one in told(punchlist, "escalations")] == ["acknowledged", "open"]
    done = told(punchlist, "answer", first["id"][-8:], "extend", "2100-02-21", "--why", "it is worth it")
    assert (done["status"], done["answer"]) == ("answered", "extend to 2100-02-21: it is worth it")
    assert team_todo(asked, first)["deadline"] == "2100-02-21"
    assert fine(punchlist, "answer", second["id"], "cancel") == "Answered: cancel.\n"
    assert team_todo(asked, second)["status"] == "cancelled"
    assert fine(punchlist, "escalations") == "There are no open questions.\n"
    assert "it is worth it" in fine(punchlist, "escalations", SLUG, "--all")


def team_todo(team: Team, asked: dict[str, Any]) -> dict[str, Any]:
    return team.todos.get(asked["todoId"])._asdict()


@pytest.mark.spec("M13")
def test_a_question_can_be_closed_without_a_change(punchlist: Cli, asked: Team) -> None:
    first, _ = told(punchlist, "escalations")
    before = team_todo(asked, first)
    assert told(punchlist, "answer", first["id"], "keep")["answer"] == "keep"
    assert team_todo(asked, first) == before
    assert refused(punchlist, "answer", first["id"], "keep", code="illegal_transition")


@pytest.mark.spec("M13")
def test_a_wrong_answer_changes_nothing(punchlist: Cli, asked: Team) -> None:
    first, _ = told(punchlist, "escalations")
    assert punchlist("mission", "answer", first["id"], "maybe").returncode == 2
    assert "deadline: is required to extend" in refused(
        punchlist, "answer", first["id"], "extend", code="invalid_input"
    )
    assert "There is no escalation" in refused(punchlist, "answer", "zzzz", "keep", code="not_found")
    assert len(told(punchlist, "escalations")) == 2


@pytest.mark.spec("M12")
def test_a_cycle_is_begun_now_for_one_mission_or_for_all(punchlist: Cli, project: Path) -> None:
    for name in ("one", "two"):
        (project / f"{name}.json").write_text(json.dumps({"name": name, "pillars": [{"name": "P"}]}))
        told(punchlist, "apply", f"{name}.json", "--yes")
    (begun,) = told(punchlist, "cycle", "one")
    assert (begun["kind"], begun["status"], begun["request"]) == ("cycle", "queued", {"mission": "one"})
    # The first has one already, which keeps the other from nothing.
    assert [run["request"]["mission"] for run in told(punchlist, "cycle", "NOW")] == ["two"]
    assert "is still open" in refused(punchlist, "cycle", "one", code="conflict")
