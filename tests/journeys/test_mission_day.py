"""A day with a mission, through the program alone: what people type, with a worker in the background."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.mission_worker import until

MISSION = {"name": "Dev", "slug": "dev", "pillars": [{"name": "Build", "slug": "build"}]}
CHAT = "dev/build/todos"

FEEDBACK = """
scenes:
  - agent: pillar-owner
    when: "Execute: Write the notes"
    replies:
      - calls: [{tool: write_file, arguments: {path: notes.txt, content: "What is new\\n"}}]
      - text: Written.
  - agent: mission-lead
    when: "Review: Write the notes.*> Written"
    replies:
      - text: The known problems are missing.
  - agent: pillar-owner
    when: "Feedback on: Write the notes.*> The known problems are missing"
    replies:
      - calls: [{tool: edit_file, arguments: {path: notes.txt, old: "new\\n", new: "new\\nKnown problems\\n"}}]
      - calls: [{tool: run_command, arguments: {command: test -s notes.txt}}]
      - text: Both parts are there.
  - agent: mission-lead
    when: "Review: .*> Both parts.*notes.txt`: exit code 0.*- notes.txt.*earlier rounds.*todoId (?P<todo>[0-9a-f-]+)"
    replies:
      - calls:
          - tool: mission_todo_complete
            arguments: {missionSlug: dev, todoId: "{{ todo }}", outcome: Notes with both parts.}
      - text: Completed.
"""
# The Lead has lines only for what the coder found: without it, nothing is completed.
ASYNC = """
scenes:
  - agent: pillar-owner
    when: "Execute: Measure the build"
    replies:
      - calls: [{tool: delegate, arguments: {type: coder, mission: Look into build.log., async: true}}]
      - calls: [{tool: write_file, arguments: {path: asked.txt, content: "A coder looks.\\n"}}]
      - text: A coder looks into it.
  - agent: pillar-owner
    when: "Results for: Measure the build.*It took 72 s"
    replies: [The coder says that it takes 72 s.]
  - agent: coder
    when: "Look into build.log"
    replies:
      - calls: [{tool: read_file, arguments: {path: build.log}}]
      - text: It took 72 s.
  - agent: mission-lead
    when: "coder, run .*It took 72 s"
    replies:
      - calls: [{tool: mission_todo_list, arguments: {missionSlug: dev, status: in_progress}}]
      - calls:
          - tool: mission_todo_complete
            arguments: {missionSlug: dev, todoId: "{{ items[0].id }}", outcome: The coder measured 72 s.}
      - text: Completed.
"""
OVERDUE = """
scenes:
  - agent: pillar-owner
    when: "## TODO Planning Cycle.*Ship it"
    replies: [One is late.]
  - agent: mission-lead
    when: "## Mission Review Cycle.*One is late.*Waiting for a person.*TODO overdue: Ship it"
    replies: [A person has to say what becomes of it.]
  - agent: mission-lead
    when: "Give it until (?P<day>[0-9-]+)"
    replies:
      - calls: [{tool: mission_todo_list, arguments: {missionSlug: dev}}]
      - calls:
          - tool: mission_todo_update
            arguments: {missionSlug: dev, todoId: "{{ items[0].id }}", action: extend, deadline: "{{ day }}",
              reason: as you said}
      - text: It has until {{ day }} now.
  - agent: mission-lead
    when: "Cancel it after all"
    replies:
      - calls: [{tool: mission_todo_list, arguments: {missionSlug: dev}}]
      - calls:
          - tool: mission_todo_update
            arguments: {missionSlug: dev, todoId: "{{ items[0].id }}", action: cancel, reason: as you said}
      - text: It is cancelled.
"""
OVERVIEW = """
scenes:
  - agent: mission-lead
    when: "Goals: .*Metrics:.*Active TODOs: 1/"
    replies: [One is active.]
"""
# Neither has lines for a request without the directive.
DIRECTIVE = """
scenes:
  - agent: pillar-owner
    when: "Directives of people.*1. Builds come first this quarter"
    replies: [The owner knows.]
  - agent: mission-lead
    when: "Directives of people.*1. Builds come first this quarter"
    replies: [The Lead knows.]
"""


class Office:
    """The project's folder, and who works there."""

    def __init__(self, punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
        self._punchlist = punchlist
        self._project = project
        self._environment = environment

    def open(self, rehearsal: str) -> None:
        (self._project / "rehearsal.yaml").write_text(rehearsal)
        (self._project / "mission.json").write_text(json.dumps(MISSION))
        self.do("mission", "apply", "mission.json", "--yes")

    def do(self, *arguments: str) -> str:
        done = self._punchlist(*arguments)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def see(self, *arguments: str) -> Any:
        return json.loads(self.do(*arguments, "--json"))

    @contextmanager
    def worker(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "punchlist", "worker", "--model", "rehearsal:rehearsal.yaml", *options]
        process = subprocess.Popen(command, cwd=self._project, env=self._environment, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)

    def work(self) -> None:
        """Until nothing is left that can be worked on."""
        self.do("worker", "--until-idle", "--model", "rehearsal:rehearsal.yaml")

    def approve(self, tool: str) -> None:
        """As soon as it is asked for."""
        asked: list[dict[str, Any]] = []

        def there() -> bool:
            asked[:] = [one for one in self.see("approvals") if one["tool"] == tool]
            return bool(asked)

        until(there, f"{tool} waits for approval")
        self.do("approvals", "approve", asked[0]["callId"])

    def todo(self, *arguments: str) -> str:
        return str(self.see("mission", "todo", "create", "dev", "build", *arguments)["id"])

    def status(self, todo: str) -> str:
        return str(self.see("mission", "todo", "show", todo)["status"])


@pytest.fixture
def office(punchlist: Cli, project: Path, environment: dict[str, str], project_database: str) -> Office:
    del project_database
    return Office(punchlist, project, environment)


@pytest.mark.spec("M8")
def test_work_waits_for_approval_is_sent_back_once_and_is_completed(office: Office, project: Path) -> None:
    office.open(FEEDBACK)
    todo = office.todo("Write the notes", "--criteria", "What is new, and known problems.")
    office.do("mission", "todo", "start", todo, "--why", "the release is near")
    with office.worker():
        office.approve("write_file")
        office.approve("edit_file")
        office.approve("run_command")
        until(lambda: office.status(todo) == "completed", "the Lead completes it")
    assert (project / "notes.txt").read_text() == "What is new\nKnown problems\n"
    told = office.do("mission", "chat", "show", CHAT)
    in_order = ["Execute: Write the notes.", "Written.", "The known problems are missing.", "Both parts are there."]
    assert sorted(told.index(line) for line in in_order) == [told.index(line) for line in in_order]
    assert office.see("mission", "todo", "list", "dev")["summary"]["active"] == 0
    office.do("db", "check")


@pytest.mark.spec("M9")
def test_what_an_agent_left_to_another_is_told_in_the_todo_chat_and_picked_up_by_the_lead(
    office: Office, project: Path
) -> None:
    office.open(ASYNC)
    (project / "build.log").write_text("72 s\n")
    todo = office.todo("Measure the build")
    office.do("mission", "todo", "start", todo, "--why", "it is slow")

    def results() -> list[dict[str, Any]]:
        return [
            one for one in office.see("mission", "chat", "show", CHAT)["messages"] if one["kind"] == "worker_result"
        ]

    with office.worker() as worker:
        # Meanwhile its owner waits for a person, so that the Lead has not looked yet.
        until(results, "the coder's result is in the TODO chat")
        worker.kill()
    with office.worker():
        office.approve("write_file")
        until(lambda: office.status(todo) == "completed", "the Lead completes it")
    assert ["It took 72 s." in one["content"] for one in results()] == [True]
    assert office.see("mission", "todo", "show", todo)["outcome"] == "The coder measured 72 s."
    office.do("db", "check")


@pytest.mark.spec("M10", "M12", "M13")
def test_a_late_todo_is_asked_about_and_the_lead_does_what_you_answer_in_the_chat(office: Office) -> None:
    office.open(OVERDUE)
    todo = office.todo("Ship it", "--deadline", "2026-01-01")
    office.do("mission", "cycle", "dev", "--work", "--model", "rehearsal:rehearsal.yaml")
    (asked,) = office.see("mission", "escalations")
    assert asked["question"].startswith("TODO overdue: Ship it. Status: pending since ")

    office.do("mission", "chat", "send", "dev", "Give it until 2099-01-01")
    office.work()
    assert office.see("mission", "todo", "show", todo)["deadline"] == "2099-01-01"
    assert office.see("mission", "escalations") == []

    office.do("mission", "chat", "send", "dev", "Cancel it after all")
    office.work()
    assert office.status(todo) == "cancelled"
    # All of it is still there, in the order in which it was said.
    told = office.do("mission", "chat", "show", "dev")
    in_order = [
        "TODO overdue: Ship it.",
        "A person has to say what becomes of it.",
        "Give it until 2099-01-01",
        "It has until 2099-01-01 now.",
        "Cancel it after all",
        "It is cancelled.",
    ]
    assert sorted(told.index(line) for line in in_order) == [told.index(line) for line in in_order]
    office.do("db", "check")


@pytest.mark.spec("M10", "M17")
def test_a_directive_reaches_the_owner_and_the_lead_in_every_cycle(office: Office) -> None:
    office.open(DIRECTIVE)
    office.do("mission", "directive", "add", "dev", "Builds come first this quarter")
    for cycles in (1, 2, 3):
        office.do("mission", "cycle", "dev", "--work", "--model", "rehearsal:rehearsal.yaml")
        told = office.do("mission", "chat", "show", "dev")
        assert told.count("> The Lead knows.") == cycles
        assert "> The owner knows." in told
    office.do("db", "check")


@pytest.mark.spec("M10")
def test_the_lead_knows_goals_metrics_and_capacity_in_the_chat(office: Office) -> None:
    office.open(OVERVIEW)
    office.todo("Ship it")
    office.do("mission", "chat", "send", "dev", "How are we doing?")
    office.work()
    assert "One is active." in office.do("mission", "chat", "show", "dev")
