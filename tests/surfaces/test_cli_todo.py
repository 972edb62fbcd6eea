"""`punchlist mission todo`: a person looks at a mission's todos and decides on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience

from punchlist.checklist.render import width
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.runs.model import UsageIncrement
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

LATER = "Later, and with a rather long title that says 日本語 as well"
EVIL = "\x1b[2Jgone\u202e"


@pytest.fixture
def store(project_database: str) -> Iterator[Store]:
    opened = open_store(project_database)
    yield opened
    opened.close()


@pytest.fixture
def team(store: Store) -> Team:
    """A mission of two pillars."""
    return developer_experience(store)


@pytest.fixture
def mission(punchlist: Cli, team: Team) -> Cli:
    """The program, where that mission is."""
    assert team.mission.slug == SLUG
    return punchlist


def fine(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist(*arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def todo(punchlist: Cli, *arguments: str, **extra: Any) -> Any:
    return json.loads(fine(punchlist, "mission", "todo", *arguments, "--json", **extra))


def refused(punchlist: Cli, *arguments: str) -> str:
    done = punchlist("mission", "todo", *arguments, "--json")
    assert done.returncode == 1
    message = str(json.loads(done.stdout)["error"]["message"])
    assert message.splitlines()[0] in done.stderr
    return message


# --- making -------------------------------------------------------------------------------------------------


@pytest.mark.spec("M2", "M5")
def test_a_todo_is_made_with_all_that_is_said_of_it(mission: Cli) -> None:
    made = todo(
        mission,
        *("create", SLUG, BUILD, "Replace babel-loader", "-d", "Use SWC.", "--justification", "It is slow."),
        *("--criteria", "Below 60 s", "--deadline", "2999-02-21", "--priority", "high", "--also-affects", ONBOARDING),
        *("--check-metric", "local-build-time", "--at-most", "60", "--request-id", "r1"),
    )
    assert made["status"] == "pending"
    assert (made["title"], made["description"], made["justification"]) == (
        "Replace babel-loader",
        "Use SWC.",
        "It is slow.",
    )
    assert (made["completionCriteria"], made["deadline"], made["priority"]) == ("Below 60 s", "2999-02-21", "high")
    assert (made["alsoAffects"], made["check"]) == ([ONBOARDING], {"metric": "local-build-time", "atMost": 60})
    page = fine(mission, "mission", "todo", "show", made["id"][-8:])
    for told in ("Use SWC.", "It is slow.", "Below 60 s", "2999-02-21", "local-build-time at most 60", ONBOARDING):
        assert told in page
    listed = todo(mission, "list", SLUG)
    assert [one["id"] for one in listed["items"]] == [made["id"]]
    assert listed["items"][0]["pillarSlug"] == BUILD


@pytest.mark.spec("M2")
def test_what_has_no_room_goes_to_the_backlog_with_a_warning(punchlist: Cli, store: Store) -> None:
    developer_experience(store, active=1, backlog=1).create("First")
    told = fine(punchlist, "mission", "todo", "create", SLUG, BUILD, "Second")
    assert re.fullmatch(
        r"Created [0-9a-f]{8}: Second \(backlog\)\.\n"
        r"! Active TODO limit \(1\) reached\. Created in backlog instead\.\n",
        told,
    )
    assert "Backlog limit (1) reached" in refused(punchlist, "create", SLUG, BUILD, "Third")


def test_the_same_request_makes_one_todo(mission: Cli) -> None:
    first, second = (todo(mission, "create", SLUG, BUILD, "A", "--request-id", "r1") for _ in range(2))
    assert first["id"] == second["id"]
    assert "was made before" in second["warning"]
    assert "already created another todo" in refused(mission, "create", SLUG, BUILD, "B", "--request-id", "r1")


def test_a_template_fills_what_is_left_out(mission: Cli) -> None:
    made = todo(mission, "create", SLUG, BUILD, "--template", "profiling")
    assert (made["title"], made["priority"], made["check"]) == ("Profile it", "high", {"name": "tests"})


def test_what_cannot_be_made_is_told(mission: Cli, team: Team) -> None:
    for said, told in {
        ("--deadline", "soon"): "deadline: 'soon' is not a date",
        ("--check-metric", "local-build-time"): "--check-metric needs either --at-most or --at-least",
        ("--at-most", "60"): "--check-metric needs either --at-most or --at-least",
        ("--check-metric", "x", "--at-most", "1", "--at-least", "2"): "needs either",
        ("--check-name", "tests", "--check-command", "true"): "A todo has one check",
        ("--check-command", 'echo "'): "Close its quotes",
        ("--check-command", ""): "must be an array of 1 to",
        ("--also-affects", "nowhere"): "nowhere",
    }.items():
        assert told in refused(mission, "create", SLUG, BUILD, "A", *said)
    assert team.todos.list(SLUG).items == []


# --- looking ------------------------------------------------------------------------------------------------


@pytest.fixture
def some(team: Team) -> dict[str, str]:
    """Todos in every state, by title; their ids."""
    made = [
        team.create("Next", priority=TodoPriority.CRITICAL, deadline="2020-01-01"),
        team.todo_in(TodoStatus.IN_PROGRESS, "Working", pillar=ONBOARDING, deadline="2999-01-01"),
        team.create(LATER, target=TodoStatus.BACKLOG),
        team.update(team.create("Dropped"), TodoAction.CANCEL, "no need"),
    ]
    return {todo.title: todo.id for todo in made}


def test_todos_are_listed_by_state_with_capacity_and_deadlines(mission: Cli, some: dict[str, str]) -> None:
    told = fine(mission, "mission", "todo", "list", SLUG)
    assert told.splitlines()[:2] == ["Developer Experience", "active 2/10, backlog 1/50"]
    headings = [line for line in told.splitlines() if line in ("In progress", "Pending", "Backlog", "Ended")]
    assert headings == ["In progress", "Pending", "Backlog", "Ended"]
    assert f"○ {some['Next'][-8:]}  Next  due 2020-01-01 OVERDUE  critical  {BUILD}" in told
    assert f"▶ {some['Working'][-8:]}  Working  due 2999-01-01  medium  {ONBOARDING}" in told
    assert re.search(r"✗ [0-9a-f]{8}  Dropped  cancelled 20\d\d-\d\d-\d\d  medium", told)
    only = fine(mission, "mission", "todo", "list", SLUG, "--pillar", ONBOARDING, "--status", "active")
    assert "Working" in only
    assert "Next" not in only
    assert "No todos." in fine(mission, "mission", "todo", "list", SLUG, "--status", "completed")
    assert "status: must be one of backlog" in refused(mission, "list", SLUG, "--status", "soon")


def test_a_list_is_continued(mission: Cli, some: dict[str, str]) -> None:
    first = todo(mission, "list", SLUG, "--limit", "3")
    rest = todo(mission, "list", SLUG, "--limit", "3", "--cursor", first["nextCursor"])
    assert {one["id"] for one in first["items"] + rest["items"]} == set(some.values())
    assert f"--cursor {first['nextCursor']}" in fine(mission, "mission", "todo", "list", SLUG, "--limit", "3")


@pytest.mark.usefixtures("some")
def test_a_list_fits_the_terminal(mission: Cli) -> None:
    for columns in (40, 72, 200):
        told = fine(mission, "mission", "todo", "list", SLUG, env={"COLUMNS": str(columns)})
        assert max(width(line) for line in told.splitlines()) <= columns
        assert "due 2020-01-01 OVERDUE" in told


def test_nothing_stored_acts_on_the_terminal(mission: Cli, team: Team) -> None:
    id = team.create(description="one\ntwo \u202e three").id
    page = fine(mission, "mission", "todo", "show", id)
    assert "\u202e" not in page
    assert "\\u202e" in page
    assert refused(mission, "create", SLUG, BUILD, EVIL).startswith("title: must not contain control characters")


def test_a_todo_is_named_by_the_end_of_its_id(mission: Cli, some: dict[str, str]) -> None:
    assert todo(mission, "show", some["Next"][-6:])["title"] == "Next"
    assert "There is no todo 'zzz'" in refused(mission, "show", "zzz")
    assert "There is no todo '%'" in refused(mission, "cancel", "%", "--why", "x")


# --- deciding -----------------------------------------------------------------------------------------------


@pytest.mark.spec("M4")
def test_a_person_moves_todos_with_a_reason(mission: Cli, some: dict[str, str]) -> None:
    later = some[LATER][-8:]
    assert todo(mission, "promote", later, "--why", "there is room")["status"] == "pending"
    assert todo(mission, "demote", later, "--why", "not now")["status"] == "backlog"
    assert todo(mission, "reprioritize", later, "low", "--why", "not urgent")["priority"] == "low"
    assert todo(mission, "extend", some["Next"], "2999-03-01", "--why", "it waits")["deadline"] == "2999-03-01"
    assert "Cannot start a mission todo that is backlog" in refused(mission, "start", later, "--why", "now")
    assert "Cannot cancel" in refused(mission, "cancel", some["Dropped"], "--why", "again")
    assert "has already passed" in refused(mission, "extend", some["Next"], "2020-01-01", "--why", "x")
    log = fine(mission, "log", "--session", f"mission-{SLUG}")
    for reason in ("there is room", "not now", "not urgent", "it waits", "no need"):
        assert reason in log


@pytest.mark.spec("M4")
def test_no_todo_is_moved_without_a_reason(mission: Cli, team: Team) -> None:
    id = team.create("A").id
    for action in ("promote", "demote", "start", "cancel"):
        done = mission("mission", "todo", action, id)
        assert done.returncode == 2
        assert "--why" in done.stderr
    assert "reason: must be 1 to 2000 characters" in refused(mission, "start", id, "--why", " ")
    assert team.todos.get(id).status is TodoStatus.PENDING


@pytest.mark.spec("M8")
def test_starting_a_todo_queues_a_run(mission: Cli, team: Team) -> None:
    id = team.create("A").id
    told = fine(mission, "mission", "todo", "start", id, "--why", "now")
    assert re.fullmatch(r"“A” is in_progress, medium\. Run [0-9a-f]{8} waits for a worker: punchlist worker\n", told)
    page = todo(mission, "show", id)
    assert [(run["kind"], run["status"], run["todoId"]) for run in page["runs"]] == [("execute", "queued", id)]


@pytest.mark.spec("M6")
def test_a_todo_is_completed_with_its_outcome_and_metrics_are_collected_again(
    mission: Cli, some: dict[str, str]
) -> None:
    assert "Cannot complete" in refused(mission, "complete", some["Next"], "--outcome", "done")
    assert "outcome" in refused(mission, "complete", some["Working"], "--outcome", " ")
    nowhere = refused(mission, "complete", some["Working"], "--outcome", "done", "--metric", "nowhere")
    assert "metricsImpacted[0]" in nowhere
    told = fine(
        mission,
        "mission",
        "todo",
        "complete",
        some["Working"][-8:],
        "--outcome",
        "Done in 55 s",
        "--metric",
        "local-build-time",
    )
    assert re.fullmatch(r"“Working” is completed\. Run [0-9a-f]{8} collects local-build-time\.\n", told)
    page = todo(mission, "show", some["Working"])
    assert (page["status"], page["outcome"]) == ("completed", "Done in 55 s")
    assert "collect" in [run["kind"] for run in json.loads(fine(mission, "mission", "runs", "--json"))["items"]]


def started(punchlist: Cli, *check: str) -> str:
    made = todo(punchlist, "create", SLUG, BUILD, "A", *check)
    fine(punchlist, "mission", "todo", "start", made["id"], "--why", "now")
    return str(made["id"])


@pytest.mark.spec("M16")
def test_a_command_that_a_person_gave_is_run_before_completion(mission: Cli, project: Path) -> None:
    id = started(mission, "--check-command", "test -e 'it is.txt'")
    message = refused(mission, "complete", id, "--outcome", "done")
    assert "its check failed" in message
    assert "(did not pass" in fine(mission, "mission", "todo", "show", id)
    (project / "it is.txt").touch()
    done = mission("mission", "todo", "complete", id, "--outcome", "done")
    assert done.stdout == "“A” is completed.\n"
    assert done.stderr.startswith("Its check passed: test -e it is.txt ended with exit code 0.")
    assert todo(mission, "show", id)["checkResult"]["passed"] is True


@pytest.mark.spec("M16")
def test_a_check_of_the_missions_file_does_not_run_untrusted(mission: Cli) -> None:
    id = started(mission, "--check-name", "tests")
    assert f"punchlist mission trust {SLUG}" in refused(mission, "complete", id, "--outcome", "done")


@pytest.mark.spec("M16")
def test_a_person_can_say_why_the_check_does_not_matter(mission: Cli) -> None:
    id = started(mission, "--check-metric", "local-build-time", "--at-most", "60")
    assert "no reading since" in refused(mission, "complete", id, "--outcome", "done")
    done = todo(mission, "complete", id, "--outcome", "done", "--override", "measured by hand")
    assert (done["status"], done["overrideReason"]) == ("completed", "measured by hand")
    assert "Completed although its check failed\n  measured by hand" in fine(mission, "mission", "todo", "show", id)


# --- the work on it -----------------------------------------------------------------------------------------

REHEARSAL = """\
replies: [Hm.]
agents:
  pillar-owner:
    - calls: [{tool: list_directory, arguments: {}}]
    - calls: [{tool: delegate, arguments: {type: researcher, mission: Look.}}]
    - {text: It takes 55 s now., tokens: 500}
  researcher:
    - calls: [{tool: read_file, arguments: {path: nowhere.txt}}]
    - text: Found.
  mission-lead:
    - calls: [{tool: mission_todo_complete, arguments: {missionSlug: SLUG, todoId: ID, outcome: 55 s}}]
    - text: Well done.
"""


@pytest.mark.spec("X4", "M8")
def test_a_todos_page_shows_its_runs_what_they_used_and_what_they_did(mission: Cli, team: Team, project: Path) -> None:
    id = team.todo_in(TodoStatus.IN_PROGRESS).id
    (project / "rehearsal.yaml").write_text(REHEARSAL.replace("ID", id).replace("SLUG", SLUG))
    fine(mission, "worker", "--until-idle", "--quiet", "--mode", "yolo", "--model", "rehearsal:rehearsal.yaml")
    page = todo(mission, "show", id)
    assert (page["status"], page["outcome"]) == ("completed", "55 s")
    assert [run["status"] for run in page["runs"]] == ["done"]
    costs = page["costs"]
    assert (costs["runs"], costs["toolCalls"]) == (1, 3)
    assert costs["usage"]["inputTokens"] >= 500
    assert [(one["tool"], one["agent"], one["status"]) for one in costs["evidence"]] == [
        # Without what the Lead does to review the work.
        ("list_directory", "pillar-owner", "success"),
        ("delegate", "pillar-owner", "success"),
        ("read_file", "researcher", "error"),
    ]
    assert [one["kind"] for one in page["messages"]] == ["todo_result"]
    evidence = json.loads(fine(mission, "mission", "todo", "show", id, "--part", "evidence", "--json"))
    assert evidence["items"] == costs["evidence"]
    transcript = json.loads(fine(mission, "mission", "todo", "show", id, "--part", "transcript", "--json"))["items"]
    assert transcript[0]["kind"] == "todo_delegation"
    words = fine(mission, "mission", "todo", "show", id, "--part", "transcript", "--limit", "2")
    assert "→ list_directory" in words
    assert "Later messages: --cursor " in words
    history = fine(mission, "mission", "todo", "show", id, "--part", "history", "--limit", "1")
    assert " create → " in history
    assert "Later changes: --cursor " in history
    told = fine(mission, "mission", "todo", "show", id)
    assert "complete → completed  lead:mission-lead: 55 s" in told
    for line in ("✓ list_directory (pillar-owner)  ", "✗ read_file (researcher)  ", "3 tool calls", "Outcome\n  55 s"):
        assert line in told
    assert "It takes 55 s now." in told, told


@pytest.mark.spec("X3")
def test_a_todo_is_claimed_kept_and_given_back(mission: Cli, team: Team) -> None:
    assert fine(mission, "mission", "todo", "claim", SLUG) == "No todo is left to claim.\n"
    id = team.todo_in(TodoStatus.IN_PROGRESS).id
    told = fine(mission, "mission", "todo", "claim", SLUG)
    assert told.startswith("“A” is yours until ")
    assert told.endswith(f"id {id}, fence 1\n")
    assert "claimed by" in refused(mission, "claim", SLUG, id[-8:], "--as", "script")
    assert "  claimed   by person:" in fine(mission, "mission", "todo", "show", id)
    kept = todo(mission, "renew", id[-8:], "--fence", "1", "--seconds", "60")
    assert (kept["id"], kept["fence"]) == (id, 1)
    assert todo(mission, "release", id[-8:])["released"] is True
    assert todo(mission, "claim", SLUG, "--as", "script")["fence"] == 2


@pytest.mark.spec("X4")
def test_a_mission_adds_up_what_its_runs_have_used(mission: Cli, team: Team, store: Store) -> None:
    assert "0 runs, 0 tokens in, 0 out, 0.0 s, 0 tool calls" in fine(mission, "mission", "costs", SLUG)
    book, ids = RunQueue(store, "elsewhere:1:1"), {}
    for title, pillar, used in (
        ("A", BUILD, UsageIncrement(1_000, 10, 0.5, 2, 1.0)),
        ("B", ONBOARDING, UsageIncrement(5, 5)),
    ):
        ids[title] = team.todo_in(TodoStatus.IN_PROGRESS, title, pillar=pillar).id
        (run,) = Runs(store).for_todo(ids[title])
        assert book.dispatch(run)
        book.begin(run.id)
        book.add_usage(run.id, f"turn of {run.id}", used)
    told = fine(mission, "mission", "costs", SLUG)
    assert told.splitlines() == [
        "Developer Experience",
        "  2 runs, 1,005 tokens in, 15 out, $0.5000, 1.0 s, 2 tool calls",
        "",
        BUILD,
        "  1 run, 1,000 tokens in, 10 out, $0.5000, 1.0 s, 2 tool calls",
        "",
        ONBOARDING,
        "  1 run, 5 tokens in, 5 out, 0.0 s, 0 tool calls",
        "",
        "Todos by usage",
        f"  {ids['A'][-8:]}  A",
        "    1 run, 1,000 tokens in, 10 out, $0.5000, 1.0 s, 2 tool calls",
        f"  {ids['B'][-8:]}  B",
        "    1 run, 5 tokens in, 5 out, 0.0 s, 0 tool calls",
    ]
    shown = json.loads(fine(mission, "mission", "costs", SLUG, "--json"))
    assert (shown["missionSlug"], shown["runs"], shown["cost"]) == (SLUG, 2, 0.5)
    assert {one["slug"]: one["usage"]["inputTokens"] for one in shown["pillars"]} == {BUILD: 1_000, ONBOARDING: 5}
    assert {one["title"]: one["id"] for one in shown["todos"]} == ids
