"""A list as it was after any of its changes, and at any time (X5)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, plan, todo
from tests.contract.missions import BUILD, FILE, SLUG, developer_experience
from tests.contract.web import opened

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.missions.todos.edits import EditedFields
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.plan.service import Plans
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store
from punchlist.views import moments
from punchlist.views.moments import Moment, checklist_moment, mission_moment, plan_moment


def shown(moment: Moment) -> list[tuple[str, str]]:
    return [(item.title, item.status) for item in moment.items]


@pytest.mark.spec("X5")
def test_a_mission_is_shown_as_it_was(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store)
    start = mission_moment(store, SLUG).version
    first = team.create("Profile the build")
    clock.advance(hours=1)
    before = timestamp(clock())
    team.update(first, TodoAction.START)
    clock.advance(hours=1)
    team.todos.edit(team.person, SLUG, first.id, EditedFields(title="Profile every build"), "clearer")
    team.create("Later", target=TodoStatus.BACKLOG)
    team.todos.complete(team.lead, SLUG, first.id, "three plugins")

    assert shown(mission_moment(store, SLUG, version=start)) == []
    assert shown(mission_moment(store, SLUG, version=start + 1)) == [("Profile the build", "pending")]
    then = mission_moment(store, SLUG, at=before)
    assert shown(then) == [("Profile the build", "in_progress")]
    assert then.change is not None
    assert (then.change.action, then.titles[then.change.subject]) == ("start", "Profile the build")
    now = mission_moment(store, SLUG)
    assert sorted(shown(now)) == [("Later", "backlog"), ("Profile every build", "completed")]
    assert now.counts == {"backlog": 1, "completed": 1}
    assert now.version == now.newest
    assert mission_moment(store, SLUG, version=10**8) == now
    assert mission_moment(store, SLUG, at="2001-01-01T00:00:00.000000Z").version == 0


@pytest.mark.spec("X5")
def test_a_long_column_is_counted_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "MAX_ITEMS", 2)
    team = developer_experience(store)
    for title in ("A", "B", "C"):
        team.create(title)
    moment = mission_moment(store, SLUG)
    assert shown(moment) == [("C", "pending"), ("B", "pending")]
    assert moment.counts == {"pending": 3}


@pytest.mark.spec("X5")
def test_a_plan_and_a_checklist_are_shown_as_they_were(
    store: Store, plans: Plans, checklists: Checklists, turn: TurnScope, agent: Scope
) -> None:
    first, _ = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=first)
    call(plans, turn, "complete_todo", todoId=first, outcome="done")
    states = [shown(plan_moment(store, turn.turn_id, version=number)) for number in range(5)]
    assert states == [
        [],
        [("A", "pending")],
        [("A", "pending"), ("B", "pending")],
        [("A", "in_progress"), ("B", "pending")],
        [("A", "completed"), ("B", "pending")],
    ]
    assert plan_moment(store, turn.turn_id).newest == 4

    checklists.rewrite(agent, [todo("A", "in_progress")])
    checklists.rewrite(agent, [todo("A", "completed"), todo("C")])
    session = agent.conversation_id
    assert shown(checklist_moment(store, session, version=1)) == [("A", "in_progress")]
    assert shown(checklist_moment(store, session)) == [("A", "completed"), ("C", "pending")]
    assert shown(checklist_moment(store, "another")) == []


@pytest.mark.spec("X5", "M15")
@pytest.mark.parametrize(
    "data", ["{}", '{"title": 7, "priority": "medium"}', '{"priority": "urgent"}', "[]", "no JSON"]
)
def test_a_history_with_incomplete_events_is_reported_as_damaged(database: str, data: str) -> None:
    with opened(database) as site:
        person = site.client()
        assert person.post("/missions", FILE)[0] == 201
        _, made = person.post(f"/missions/{SLUG}/todos", {"pillarSlug": BUILD, "title": "Profile"})
        services = site.services
        Checklists(services.store, services.conversations).rewrite(
            Scope("work", Actor(Role.SUPERVISOR, "agent")), [todo("One")]
        )
        whole = [person.get(path)[0] for path in (f"/missions/{SLUG}/replay", "/conversations/work/replay")]
        assert whole == [200, 200]
        changed = Statement("UPDATE events SET data = :data WHERE subject = :todo OR stream = 'checklist:work'")
        with site.services.store.write() as tx:
            assert tx.run(changed, data=data, todo=made["id"]) == 2
        for path in (f"/missions/{SLUG}/replay", "/conversations/work/replay"):
            status, told = person.get(path)
            assert (status, told["code"]) == (500, "store_damaged"), told
            assert "db check" in told["detail"]
        page = site.http.get(f"/missions/{SLUG}/replay", headers=person.headers)
        assert page.status_code == 500
        assert "is not what was written" in page.text
