"""What owners recommend stays open until the Lead or a person decides (M4, M10), on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.missions import ONBOARDING, Team, developer_experience

from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.missions import replay as mission_replay
from punchlist.missions.model import MissionTodo
from punchlist.missions.recommendations.model import MAX_LENGTH, MAX_OPEN
from punchlist.missions.recommendations.service import Recommendations
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M4", "M10")


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def recommendations(store: Store) -> Recommendations:
    return Recommendations(store)


def recommend(team: Team, todo: MissionTodo, action: TodoAction, **more: Any) -> None:
    with pytest.raises(NotAllowed, match=r"the Lead decides. It was posted to the mission chat as a recommendation"):
        team.todos.update(team.owner, team.slug, todo.id, action, "Builds got slower.", **more)


def test_a_refused_action_waits_until_it_is_accepted_which_performs_it(
    team: Team, recommendations: Recommendations
) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG, "Profile the build")
    recommend(team, todo, TodoAction.PROMOTE)
    (view,) = recommendations.list(team.slug)
    waiting = view.recommendation
    assert (waiting.number, waiting.kind, waiting.content) == (1, "promote", "Builds got slower.")
    assert (view.pillar_slug, waiting.created_by) == ("build-performance", "owner:pillar-owner")
    decided, change = recommendations.accept(team.lead, team.slug, 1, "Yes, it blocks releases.")
    assert (decided.status, decided.decided_by, decided.decision) == (
        "accepted",
        "lead:mission-lead",
        "Yes, it blocks releases.",
    )
    assert change is not None
    assert change.todo.status is TodoStatus.PENDING
    assert recommendations.list(team.slug) == []
    assert [one.recommendation for one in recommendations.list(team.slug, decided=True)] == [decided]
    (note,) = Conversations(team.store).messages(team.pillars["build-performance"].conversation_id)
    assert "Recommendation 1 (promote) was accepted." in note.content


def test_arguments_are_kept_and_used(team: Team, recommendations: Recommendations) -> None:
    todo = team.create()
    recommend(team, todo, TodoAction.REPRIORITIZE, priority=TodoPriority.CRITICAL)
    recommend(team, todo, TodoAction.EXTEND, deadline="2099-03-31")
    for number in (1, 2):
        recommendations.accept(team.person, team.slug, number, "ok")
    changed = team.todos.get(todo.id)
    assert (changed.priority, changed.deadline) == ("critical", "2099-03-31")


def test_a_recommendation_is_declined_with_a_reason(team: Team, recommendations: Recommendations) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG)
    recommend(team, todo, TodoAction.PROMOTE)
    for text in ("", "x" * (MAX_LENGTH + 1)):
        with pytest.raises(InvalidInput, match="reason: "):
            recommendations.decline(team.lead, team.slug, 1, text)
    decided = recommendations.decline(team.lead, team.slug, 1, "Not this quarter.").recommendation
    assert (decided.status, decided.decision) == ("declined", "Not this quarter.")
    assert team.todos.get(todo.id) == todo
    with pytest.raises(IllegalTransition, match="that is declined"):
        recommendations.accept(team.lead, team.slug, 1, "Changed my mind.")
    with pytest.raises(NotFound, match="has no recommendation 7"):
        recommendations.decline(team.lead, team.slug, 7, "No.")


def test_repeating_a_recommendation_adds_nothing(team: Team, recommendations: Recommendations) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG)
    for _ in range(3):
        recommend(team, todo, TodoAction.PROMOTE)
    assert len(recommendations.list(team.slug)) == 1
    assert len(Conversations(team.store).messages(team.mission.conversation_id)) == 1
    recommendations.decline(team.lead, team.slug, 1, "No.")
    recommend(team, todo, TodoAction.PROMOTE)
    assert [one.recommendation.number for one in recommendations.list(team.slug)] == [2]


def test_a_change_to_the_todo_settles_what_was_recommended_for_it(team: Team, recommendations: Recommendations) -> None:
    promoted, other, gone = (team.todo_in(TodoStatus.BACKLOG, title) for title in ("A", "B", "C"))
    recommend(team, promoted, TodoAction.PROMOTE)
    recommend(team, other, TodoAction.REPRIORITIZE, priority=TodoPriority.CRITICAL)
    recommend(team, gone, TodoAction.PROMOTE)
    team.update(promoted, TodoAction.PROMOTE, "Agreed.")
    team.update(other, TodoAction.REPRIORITIZE, "High is enough.", priority=TodoPriority.HIGH)
    team.todos.update(team.owner, team.slug, gone.id, TodoAction.CANCEL, "Not needed.")
    assert recommendations.list(team.slug) == []
    found = [one.recommendation for one in recommendations.list(team.slug, decided=True)]
    assert [(one.status, one.decision) for one in found] == [
        ("accepted", "Agreed."),
        ("declined", "High is enough."),
        ("declined", "The todo is cancelled now: Not needed."),
    ]
    assert found[2].decided_by == "system:punchlist"


def test_what_cannot_be_performed_stays_open(store: Store, recommendations: Recommendations) -> None:
    team = developer_experience(store, active=1)
    todo = team.todo_in(TodoStatus.BACKLOG)
    recommend(team, todo, TodoAction.PROMOTE)
    team.create("Takes the only slot")
    with pytest.raises(IllegalTransition):
        recommendations.accept(team.lead, team.slug, 1, "Yes.")
    assert len(recommendations.list(team.slug)) == 1
    assert team.todos.get(todo.id) == todo


def test_only_the_lead_and_people_decide_and_each_owner_recommends_for_its_pillar(
    team: Team, recommendations: Recommendations
) -> None:
    recommendations.add(team.owner, team.slug, "Buy a faster machine.")
    for scope in (team.owner, team.other_owner, team.worker):
        with pytest.raises(NotAllowed):
            recommendations.accept(scope, team.slug, 1, "I agree with myself.")
        with pytest.raises(NotAllowed):
            recommendations.decline(scope, team.slug, 1, "No.")
    with pytest.raises(NotAllowed):
        recommendations.add(team.worker, team.slug, "Pay me.")
    with pytest.raises(NotAllowed, match="You act in pillar"):
        recommendations.add(team.owner, team.slug, "For the others.", pillar_slug=ONBOARDING)
    assert recommendations.accept(team.person, team.slug, 1, "Ordered.").change is None


def test_the_number_of_open_recommendations_is_limited(team: Team, recommendations: Recommendations) -> None:
    for number in range(MAX_OPEN):
        recommendations.add(team.owner, team.slug, f"Idea {number}")
    with pytest.raises(IllegalTransition, match=r"100 recommendations .* wait for a decision, the limit"):
        recommendations.add(team.owner, team.slug, "One more")
    assert len(recommendations.list(team.slug)) == MAX_OPEN


def test_recommendations_are_rebuilt_from_the_events_of_the_mission(
    team: Team, recommendations: Recommendations
) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG)
    recommend(team, todo, TodoAction.PROMOTE)
    recommendations.add(team.owner, team.slug, "Buy a faster machine.")
    recommendations.accept(team.lead, team.slug, 1, "Yes.")
    recommendations.decline(team.person, team.slug, 2, "No money.")
    rows = {one.recommendation.id: one.recommendation for one in recommendations.list(team.slug, decided=True)}
    with team.store.read() as tx:
        assert mission_replay.replay(team.trail())["recommendations"] == rows
        assert list(mission_replay.compare(tx, team.mission.id, team.trail())) == []
