"""`punchlist mission runs`: what is worked on in the background, and what a person wants of it (M11)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import Cli
from tests.contract.missions import SLUG, Team, developer_experience
from tests.faults.processes import Program, eventually

from punchlist.kernel.processes import current_process
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.model import Run, UsageIncrement
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M11")


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{project}/.punchlist/punchlist.db")
    yield opened
    opened.close()


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def run(team: Team) -> Run:
    """The work on a todo that was started."""
    (queued,) = Runs(team.store).for_todo(team.todo_in(TodoStatus.IN_PROGRESS, "Replace babel-loader").id)
    return queued


@pytest.fixture
def book(store: Store) -> RunQueue:
    """A worker that lives as long as the test."""
    return RunQueue(store, current_process())


def runs(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist("mission", "runs", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs_json(punchlist: Cli, *arguments: str) -> Any:
    return json.loads(runs(punchlist, *arguments, "--json"))


def begin(book: RunQueue, run: Run) -> None:
    assert book.dispatch(run)
    assert book.begin(run.id)


def test_runs_are_listed_newest_first(punchlist: Cli, team: Team, run: Run, book: RunQueue) -> None:
    (later,) = Runs(team.store).for_todo(team.todo_in(TodoStatus.IN_PROGRESS, "Warm the cache").id)
    assert runs(punchlist).splitlines() == [
        f"{later.id[-8:]}  queued      execute  Warm the cache",
        f"{run.id[-8:]}  queued      execute  Replace babel-loader",
    ]
    begin(book, run)
    book.finish(run.id, "Done.")
    assert [one["id"] for one in runs_json(punchlist, "list", "--mission", SLUG)["items"]] == [later.id]
    assert [one["status"] for one in runs_json(punchlist, "--all")["items"]] == ["queued", "done"]
    assert [one["id"] for one in runs_json(punchlist, "list", "--all", "--limit", "1")["items"]] == [later.id]
    assert "There is no mission 'nowhere'" in punchlist("mission", "runs", "--mission", "nowhere").stderr


@pytest.mark.spec("X7")
def test_runs_are_filtered_and_paged(punchlist: Cli, team: Team, run: Run, book: RunQueue) -> None:
    later = team.todo_in(TodoStatus.IN_PROGRESS, "Cache the build")
    [other] = Runs(team.store).for_todo(later.id)
    Runs(team.store).stop(team.person, other.id, "not now")
    first = runs_json(punchlist, "--all", "--limit", "1", "--mission", SLUG)
    rest = runs_json(punchlist, "--all", "--limit", "1", "--mission", SLUG, "--cursor", first["nextCursor"])
    assert [page["items"][0]["id"] for page in (first, rest)] == [other.id, run.id]
    assert f"More runs: --cursor {first['nextCursor']}" in runs(punchlist, "--all", "--limit", "1")
    assert [one["id"] for one in runs_json(punchlist, "--status", "stopped")["items"]] == [other.id]
    assert [one["id"] for one in runs_json(punchlist, "--todo", later.id[-8:])["items"]] == [other.id]
    assert runs(punchlist, "--kind", "cycle", "--all") == "No such runs.\n"


def test_without_runs_that_is_said(punchlist: Cli) -> None:
    assert runs(punchlist) == "No open runs.\n"
    assert runs(punchlist, "--all") == "No runs yet.\n"
    assert runs_json(punchlist) == {"items": []}


def test_a_run_is_shown_with_its_worker_and_what_it_used(punchlist: Cli, run: Run, book: RunQueue) -> None:
    assert f"Run {run.id}: queued" in runs(punchlist, "show", run.id[-6:])
    begin(book, run)
    book.add_usage(run.id, "turn-1", UsageIncrement(1_200, 34, 0.05, 3, 2.0))
    book.wait(run.id, "a call waits for approval")
    told = runs(punchlist, "show", run.id)
    assert f"Run {run.id}: waiting\n  why       a call waits for approval\n" in told
    assert f"  worker    {current_process()}\n" in told
    assert "  used      1,200 tokens in, 34 out, $0.0500, 2.0 s, 3 tool calls\n" in told
    book.wake(run.id, "it came")
    book.finish(run.id, "All of it.\x1b[2J")
    ended = runs(punchlist, "show", run.id)
    assert "Result\n  All of it.\\x1b[2J\n" in ended
    assert re.search(r"  ended     20\S+Z\n", ended)
    shown = runs_json(punchlist, "show", run.id)
    assert (shown["status"], shown["usage"]["inputTokens"], shown["approvals"]) == ("done", 1_200, [])


def test_a_run_whose_worker_is_no_more_says_so(punchlist: Cli, run: Run, store: Store) -> None:
    host = current_process().partition(":")[0]
    begin(RunQueue(store, f"{host}:999999999:1"), run)
    assert "(dead; another worker will continue the run)" in runs(punchlist, "show", run.id)
    assert runs(punchlist, "stop", run.id, "--why", "enough") == f"Run {run.id[-8:]} is stopped.\n"


def test_a_person_pauses_resumes_redirects_and_stops_a_run(punchlist: Cli, run: Run, book: RunQueue) -> None:
    begin(book, run)
    end = run.id[-8:]
    assert runs(punchlist, "pause", end, "--why", "lunch") == f"Run {end} is running, to be paused.\n"
    assert f"{end}  running, to be paused  execute  Replace babel-loader\n          lunch\n" in runs(punchlist)
    book.pause(run.id)
    assert runs(punchlist, "resume", end) == f"Run {end} is paused.\n"
    book.resume(run.id)
    told = runs(punchlist, "redirect", end, "-", input="Use SWC.\n")
    assert told == f"Run {end} is running; its agent will receive the message.\n"
    assert "Message for its agent, not delivered yet\n  Use SWC.\n" in runs(punchlist, "show", end)
    stopped = runs_json(punchlist, "stop", end)
    assert (stopped["status"], stopped["wish"], stopped["message"]) == ("running", "stop", "Use SWC.")
    book.stop(run.id, "a person stopped it")
    for action in (["pause"], ["stop"], ["redirect", "x"]):
        done = punchlist("mission", "runs", action[0], end, *action[1:])
        assert done.returncode == 1
        assert "is stopped" in done.stderr


def test_a_stopped_run_does_not_promise_that_its_agent_gets_a_message(punchlist: Cli, run: Run, book: RunQueue) -> None:
    end = run.id[-8:]
    assert runs(punchlist, "redirect", end, "Use SWC.") == f"Run {end} is queued; its agent will receive the message.\n"
    told = runs(punchlist, "stop", end)
    assert told == f"Run {end} is stopped; its agent has not received your message.\n"
    assert "Message for its agent, not delivered\n  Use SWC.\n" in runs(punchlist, "show", end)
    assert runs(punchlist, "resume", end) == f"Run {end} is queued; its agent will receive the message.\n"
    begin(book, run)
    told = runs(punchlist, "stop", end)
    assert told == f"Run {end} is running, to be stopped; its agent has not received your message.\n"


def test_a_failed_run_is_tried_again(punchlist: Cli, run: Run, book: RunQueue) -> None:
    begin(book, run)
    book.fail(run.id, "No model.")
    assert runs(punchlist) == "No open runs.\n"
    assert "          No model.\n" in runs(punchlist, "--all")
    assert runs(punchlist, "resume", run.id) == f"Run {run.id[-8:]} is queued.\n"
    assert ", retried\n" in runs(punchlist, "show", run.id)


def test_a_run_that_is_not_there_is_told(punchlist: Cli) -> None:
    for action in (["show"], ["pause"], ["resume"], ["stop"], ["redirect"]):
        done = punchlist("mission", "runs", *action, "nowhere", *(["x"] if action == ["redirect"] else []), "--json")
        assert done.returncode == 1
        assert "There is no run 'nowhere'" in json.loads(done.stdout)["error"]["message"]


REHEARSAL = """\
replies: [Hm.]
agents:
  pillar-owner:
    - {calls: [{tool: list_directory, arguments: {}}], delay: DELAY}
    - text: Seen.
  mission-lead:
    - calls: [{tool: mission_todo_complete, arguments: {missionSlug: SLUG, todoId: ID, outcome: seen}}]
    - text: Well done.
"""


def test_a_worker_heeds_what_a_person_wants(
    punchlist: Cli, project: Path, environment: dict[str, str], run: Run, store: Store
) -> None:
    """Paused while the model thinks, told something, let go on, and done."""
    script = REHEARSAL.replace("SLUG", SLUG).replace("ID", str(run.todo_id))
    (project / "slow.yaml").write_text(script.replace("DELAY", "600"))
    (project / "quick.yaml").write_text(script.replace("DELAY", "0"))
    listed = Runs(store)
    with Program(project, environment, "worker", "--quiet", "--model", "rehearsal:slow.yaml", "--mode", "yolo"):
        eventually(lambda: listed.get(run.id).turn_id is not None, "the run begins")
        runs(punchlist, "pause", run.id)
        eventually(lambda: listed.get(run.id).status == "paused", "the run is paused")
        runs(punchlist, "redirect", run.id, "Mind the cache.")
    # That worker is killed; the next goes on.
    runs(punchlist, "resume", run.id)
    with Program(project, environment, "worker", "--quiet", "--model", "rehearsal:quick.yaml", "--mode", "yolo"):
        eventually(lambda: listed.get(run.id).ended_at is not None, "the run ends")
    told = runs_json(punchlist, "show", run.id)
    assert (told["status"], told["message"]) == ("done", None)
    assert told["attempts"] >= 2
    chat = json.loads(punchlist("mission", "chat", "show", told["conversationId"], "--json", "--last", "100").stdout)
    assert "Mind the cache." in [one["content"] for one in chat["messages"]]


ASKS: Final = """\
replies: [Hm.]
agents:
  pillar-owner:
    - calls: [{tool: run_command, arguments: {command: touch made.txt}}]
    - text: Made.
"""


def test_a_run_shows_what_it_waits_for_you_to_approve(punchlist: Cli, project: Path, run: Run) -> None:
    (project / "asks.yaml").write_text(ASKS)
    done = punchlist("worker", "--until-idle", "--quiet", "--model", "rehearsal:asks.yaml")
    assert done.returncode == 0, done.stderr
    [approval] = runs_json(punchlist, "show", run.id)["approvals"]
    call = approval["callId"]
    told = runs(punchlist, "show", run.id)
    assert f"Run {run.id}: waiting\n" in told
    assert f"Waits for your approval: run_command  punchlist approvals approve {call[-8:]}\n  │ " in told
    assert "touch made.txt" in told
    assert not (project / "made.txt").exists()
