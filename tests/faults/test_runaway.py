"""Missions that would never end: they stop at their limits, and a person is asked (TRUST: a runaway plan)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from tests.faults.mission_project import mission_project
from tests.faults.mission_worker import PERSON, SLUG, Nursery, begin

from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction

NEVER_DONE: Final = """
scenes:
  - agent: pillar-owner
    when: "Execute: (?P<title>[^.]*)"
    replies:
      - text: "I did {{ title }}."
  - agent: pillar-owner
    when: "feedback|Feedback|once more"
    replies:
      - text: I did it once more.
  - agent: mission-lead
    when: "Review: "
    replies:
      - text: Not good enough.
"""
CREATE: Final = (
    "{{tool: mission_todo_create, arguments: {{missionSlug: developer-experience, pillarSlug: build-performance, \
title: {}}}}}"
)
BREEDING: Final = f"""
scenes:
  - agent: pillar-owner
    when: "## TODO Planning Cycle"
    replies:
      - calls: [{CREATE.format("One")}, {CREATE.format("Two")}]
      - text: Two more.
  - agent: mission-lead
    when: "## Mission Review Cycle"
    replies:
      - calls: [{{tool: mission_todo_list, arguments: {{missionSlug: developer-experience, status: pending}}}}]
      - calls:
          - tool: mission_todo_update
            arguments: {{missionSlug: developer-experience, todoId: "{{{{ items[0].id }}}}", action: start, reason: Go}}
          - tool: mission_todo_update
            arguments: {{missionSlug: developer-experience, todoId: "{{{{ items[1].id }}}}", action: start, reason: Go}}
      - text: Started.
  - agent: pillar-owner
    when: "Execute: (?P<title>[A-Za-z]+)"
    replies:
      - calls: [{", ".join(CREATE.format(f'"{{{{ title }}}}{n}"') for n in range(4))}]
      - calls: [{", ".join(CREATE.format(f'"{{{{ title }}}}{n}"') for n in range(4, 8))}]
      - text: It led to more.
  - agent: mission-lead
    when: "Review: .*todoId (?P<todo>[0-9a-f-]+)"
    replies:
      - calls:
          - tool: mission_todo_complete
            arguments: {{missionSlug: developer-experience, todoId: "{{{{ todo }}}}", outcome: Done.}}
      - text: Next.
"""


@pytest.mark.spec("M8", "M13")
def test_a_lead_who_is_never_content_comes_to_an_end_and_a_person_is_asked(
    nursery: Nursery, tmp_path: Path, database: str
) -> None:
    task = mission_project(tmp_path / "project", database, NEVER_DONE)
    file = Path(task.folder) / "mission.json"
    content = json.loads(file.read_text())
    content["todo"]["maxReviews"] = 2
    file.write_text(json.dumps(content))
    house = task.house()
    begin(house, cycles=False)
    scope = MissionScope("cli", PERSON)
    todo = house.mission_todos.create(scope, SLUG, NewMissionTodo("build-performance", "Try it")).todo
    house.mission_todos.update(scope, SLUG, todo.id, TodoAction.START, "now")
    life = nursery.start(task)
    assert life.wait() == 0, life.said
    (run,) = house.runs.list(ended=True)
    assert (run.status, "a person is asked" in (run.result or "")) == ("done", True), run
    (question,) = house.escalations.list(SLUG)
    assert question.todo_id == todo.id
    assert house.mission_todos.get(todo.id).status == "in_progress"
    (pillar,) = [one.pillar for one in house.missions.pillars(house.missions.get(SLUG))]
    kinds = [one.kind for one in house.conversations.messages(pillar.todo_conversation_id) if one.turn_id is None]
    assert kinds.count("todo_feedback") == 3
    house.store.close()


@pytest.mark.spec("M2", "M14")
def test_todos_that_make_todos_stop_at_the_limits(nursery: Nursery, tmp_path: Path, database: str) -> None:
    task = mission_project(tmp_path / "project", database, BREEDING, begins=True)
    file = Path(task.folder) / "mission.json"
    content = json.loads(file.read_text())
    content["todo"] |= {"activeTodoLimit": 3, "backlogTodoLimit": 4}
    file.write_text(json.dumps(content))
    life = nursery.start(task)
    assert life.wait() == 0, life.said
    house = task.house()
    listed = house.mission_todos.list(SLUG)
    # Two were done, and of sixteen that they led to there are as many as there was room for.
    assert (listed.capacity.active, listed.capacity.backlog) == (2, 4), listed.items
    assert len([todo for todo in listed.items if todo.status == "completed"]) == 2
    assert {run.status for run in house.runs.list(ended=True)} == {"done"}
    with house.store.read() as tx:
        refused = tx.raw("SELECT explanation FROM tool_calls WHERE tool = 'mission_todo_create' AND status = 'error'")
    assert len(refused) == 16 - 6
    assert all("limit" in explanation for (explanation,) in refused)
    house.store.close()
