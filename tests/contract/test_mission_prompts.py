"""What owners, reviewers and the Lead are told in their requests, with a worker and a scripted model (M8, M10, M12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words
from tests.contract.missions import BUILD, FILE, ONBOARDING, SLUG

from punchlist.conversations.message_queue import MessageQueue
from punchlist.engine.periodic import enqueue_cycle
from punchlist.missions.model import MissionScope
from punchlist.missions.planning.mission_state import MAX_PILLARS_LENGTH
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus


class Desk(Office):
    """The agents answer with nothing special unless a test says more."""

    def __init__(self, folder: Path, database: str, clock: StoppedClock, **mission: Any) -> None:
        super().__init__(folder, database, clock, self.reply, **mission)

    def reply(self, agent: str, request: ModelRequest) -> Reply:
        del agent, request
        return Reply("Noted.")

    def cycle(self) -> None:
        enqueue_cycle(self.services.store, self.team.person, self.team.mission)
        self.work()

    def told(self, agent: str, beginning: str) -> list[str]:
        """The requests to an agent that begin so."""
        return [text for who, one in self.asked if who == agent and (text := last_words(one)).startswith(beginning)]

    def states(self, agent: str) -> list[str]:
        return [
            "".join(message.text for message in one.messages[one.stable :]) for who, one in self.asked if who == agent
        ]


@pytest.fixture
def desk(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Desk]:
    opened = Desk(tmp_path / "project", database, clock)
    yield opened
    opened.close()


@pytest.mark.spec("M10", "M12")
def test_agents_know_the_names_that_their_tools_take(desk: Desk) -> None:
    desk.cycle()
    for state in desk.states("pillar-owner"):
        assert f"missionSlug {SLUG}. Your pillar “" in state
    for slug in (BUILD, ONBOARDING):
        assert any(f"pillarSlug {slug}." in state for state in desk.states("pillar-owner"))
    assert all(f"Its pillars, pillarSlug: {BUILD}, {ONBOARDING}." in state for state in desk.states("mission-lead"))


@pytest.mark.spec("M10")
def test_the_names_of_many_pillars_are_bounded(tmp_path: Path, database: str, clock: StoppedClock) -> None:
    pillars = [{"name": f"Pillar {number}", "slug": f"pillar-{number}-{'x' * 40}"} for number in range(50)]
    desk = Desk(tmp_path / "many", database, clock, pillars=[*FILE["pillars"], *pillars][:50])
    chat = desk.team.mission.conversation_id
    MessageQueue(desk.services.store).add(MissionScope(chat, desk.team.person.actor), "Hello")
    desk.work()
    (state,) = desk.states("mission-lead")
    names = state.partition("pillarSlug: ")[2].partition("\n")[0]
    assert "pillar-0-x" in names
    assert "more." in names
    assert len(names) <= MAX_PILLARS_LENGTH + 20
    desk.close()


@pytest.mark.spec("M8", "M18")
def test_a_reviewer_gets_the_whole_todo(desk: Desk) -> None:
    team = desk.team
    whole = {
        "description": "Run the profiler.",
        "justification": "It got slower.",
        "completion_criteria": "Three parts.",
    }
    todo = team.create("Profile the build", deadline="2026-03-01", **whole)
    team.create("Read the manual", parent_id=todo.id)
    team.todos.comment(team.person, SLUG, todo.id, "Look at the cache first.")
    desk.services.metrics.record(team.person, SLUG, "local-build-time", 72)
    team.update(todo, TodoAction.START)
    desk.work()
    reviews = desk.told("mission-lead", "Review: Profile the build")
    assert reviews
    for part in (*whole.values(), "Deadline: 2026-03-01", "> Look at the cache first.", "[local-build-time]: 72 s"):
        assert all(part in review for review in reviews), part
    assert all("must end before it is completed:\n- “Read the manual”" in review for review in reviews)


@pytest.mark.spec("M9", "M18")
def test_an_owner_that_gets_results_gets_the_comments_too(desk: Desk) -> None:
    def reply(agent: str, request: ModelRequest) -> Reply:
        if agent == "pillar-owner" and last_words(request).startswith("Execute") and not has_results(request):
            return call("delegate", type="coder", mission="Measure it.", **{"async": True})
        return Reply("Noted.")

    desk.answers = reply
    todo = desk.team.create("Profile the build")
    desk.team.todos.comment(desk.team.person, SLUG, todo.id, "Look at the cache first.")
    desk.team.update(todo, TodoAction.START)
    desk.work()
    (results,) = desk.told("pillar-owner", "Results for: Profile the build")
    assert "> Look at the cache first." in results


@pytest.mark.spec("M18")
def test_the_lead_sees_strategies_and_replaces_one(desk: Desk) -> None:
    def reply(agent: str, request: ModelRequest) -> Reply:
        if agent != "mission-lead" or has_results(request):
            return Reply("Noted.")
        assert "- Strategy: Replace slow loaders (active)" in last_words(request)
        given = {"missionSlug": SLUG, "pillarSlug": BUILD, "reason": "The cache is what is slow."}
        retire = call("mission_strategy", **given, action="retire", text="slow loaders").calls
        add = call("mission_strategy", **given, action="add", text="Cache modules").calls
        return Reply(calls=(*retire, replace(add[0], id="second")))

    desk.answers = reply
    desk.cycle()
    (build, _) = desk.services.missions.pillars(desk.team.mission)
    assert {each.description: each.status for each in build.strategies} == {
        "Replace slow loaders": "dropped",
        "Cache modules": "active",
    }
    desk.asked.clear()
    desk.answers = desk.reply
    desk.cycle()
    planned = desk.told("pillar-owner", "## TODO Planning Cycle")
    assert any("- Cache modules (active)" in prompt for prompt in planned)
    assert not any("slow loaders (active)" in prompt for prompt in planned)


@pytest.mark.spec("M10", "M13")
def test_the_lead_is_told_in_the_chat_what_waits_for_a_person(desk: Desk) -> None:
    """Also when the question is far back in the chat."""
    todo = desk.team.todo_in(TodoStatus.IN_PROGRESS, "Ship it", deadline="2026-02-21")
    for run in desk.services.runs.for_todo(todo.id):
        desk.services.runs.stop(desk.team.person, run.id, "not now")
    desk.clock.advance(days=2)
    desk.cycle()
    assert not [run for run in desk.services.runs.list() if run.status is RunStatus.QUEUED]
    desk.asked.clear()
    chat = desk.team.mission.conversation_id
    MessageQueue(desk.services.store).add(MissionScope(chat, desk.team.person.actor), "Give it a week")
    desk.work()
    (state,) = desk.states("mission-lead")
    questions = state.partition("Questions about TODOs that wait for a person:")[2]
    assert "TODO overdue: Ship it." in questions
    assert todo.id in questions
