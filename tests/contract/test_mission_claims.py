"""Several agents take work from one mission (X3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience

from punchlist.claims import replay
from punchlist.claims import repository as claim_records
from punchlist.claims.model import ClaimGranted, ListKind, NothingToClaim
from punchlist.claims.tools import claim_tools
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Role
from punchlist.missions.model import MissionScope, MissionTodo
from punchlist.missions.todos import replay as todo_replay
from punchlist.missions.todos.claims import MissionClaims, claimable_mission
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.storage.store import Store


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def claims(store: Store) -> MissionClaims:
    return MissionClaims(store)


def take(claims: MissionClaims, scope: MissionScope, team: Team, at: str = "one") -> ClaimGranted[MissionTodo]:
    claimed = claims.claim(scope, at, team.slug)
    assert isinstance(claimed, ClaimGranted)
    return claimed


@pytest.mark.spec("X3")
def test_what_is_in_progress_is_claimed_the_most_urgent_first_then_the_oldest(
    team: Team, claims: MissionClaims, clock: StoppedClock
) -> None:
    for status in (TodoStatus.PENDING, TodoStatus.BACKLOG, TodoStatus.COMPLETED, TodoStatus.CANCELLED):
        team.todo_in(status, f"it is {status}", priority=TodoPriority.CRITICAL)
    for title, priority in (("low", "low"), ("first", "high"), ("critical", "critical"), ("second", "high")):
        clock.advance(seconds=1)
        team.todo_in(TodoStatus.IN_PROGRESS, title, priority=TodoPriority(priority))
    claimed = [take(claims, team.lead, team, at).todo.title for at in ("one", "two", "three", "four")]
    assert claimed == ["critical", "first", "second", "low"]
    nothing = claims.claim(team.lead, "five", team.slug)
    assert isinstance(nothing, NothingToClaim)
    assert str(nothing).startswith("No todo is free now: 4 claimed, the first until 2026-02-21T09:05:04")


@pytest.mark.spec("X3", "M4")
def test_an_owner_claims_what_is_of_its_pillar_and_nothing_else(
    store: Store, team: Team, claims: MissionClaims
) -> None:
    theirs = team.todo_in(TodoStatus.IN_PROGRESS, "theirs", pillar=ONBOARDING, priority=TodoPriority.CRITICAL)
    own = team.todo_in(TodoStatus.IN_PROGRESS, "own")
    assert take(claims, team.owner, team).todo.id == own.id
    with nothing_changes(store):
        assert isinstance(claims.claim(team.owner, "two", team.slug), NothingToClaim)
        with pytest.raises(NotAllowed, match=f"You act in pillar '{BUILD}' only"):
            claims.claim(team.owner, "one", team.slug, theirs.id)
        with pytest.raises(NotAllowed, match=f"You act in pillar '{BUILD}' only"):
            claims.claim(team.owner, "one", team.slug, pillar=ONBOARDING)
        with pytest.raises(NotAllowed, match="You act in mission"):
            claims.claim(team.owner, "one", "another")
        with pytest.raises(NotAllowed, match="You act in pillar"):
            claims.renew_claim(team.other_owner, "one", own.id, 1)
    got = claims.claim(team.person, "one", team.slug, pillar=ONBOARDING)
    assert isinstance(got, ClaimGranted)
    assert got.todo.id == theirs.id


@pytest.mark.spec("X3")
@pytest.mark.parametrize("role", [Role.WORKER, Role.SUPERVISOR])
def test_whoever_is_no_member_of_a_mission_claims_nothing_of_it(
    store: Store, team: Team, claims: MissionClaims, role: Role
) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match=f"A {role} may not claim a mission todo"):
            claims.claim(team.scope(role), "one", team.slug)
        with pytest.raises(NotAllowed, match=f"A {role} may not renew a mission todo"):
            claims.renew_claim(team.scope(role), "one", todo.id, 1)
        with pytest.raises(NotAllowed, match=f"A {role} may not release a mission todo"):
            claims.release_claim(team.scope(role), "one", todo.id, 1)


@pytest.mark.spec("X3")
def test_a_claim_lapses_is_renewed_taken_and_given_back(team: Team, claims: MissionClaims, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    assert take(claims, team.owner, team).claim.fence == 1
    clock.advance(minutes=6)
    assert claims.renew_claim(team.owner, "one", todo.id, 1, 60).lease_until == "2026-02-21T09:07:00.000000Z"
    with pytest.raises(Conflict, match=r"claimed by owner:pillar-owner in mission-developer-experience \(one\) until"):
        claims.claim(team.lead, "two", team.slug, todo.id)
    clock.advance(minutes=2)
    assert take(claims, team.lead, team, "two").claim.fence == 2
    with pytest.raises(Conflict, match="Fence 1 is outdated"):
        claims.renew_claim(team.owner, "one", todo.id, 1)
    with pytest.raises(NotAllowed, match="Only its holder"):
        claims.release_claim(team.owner, "one", todo.id, 2)
    claims.release_claim(team.lead, "two", todo.id, 2)
    assert take(claims, team.owner, team).claim.fence == 3
    claims.release_claim(team.person, "terminal", todo.id, None)
    assert take(claims, team.owner, team).claim.fence == 4


@pytest.mark.spec("X3")
def test_only_what_is_in_progress_in_this_mission_is_claimed(store: Store, team: Team, claims: MissionClaims) -> None:
    pending = team.todo_in(TodoStatus.PENDING)
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="it is pending; only todos in progress"):
            claims.claim(team.lead, "one", team.slug, pending.id)
        with pytest.raises(NotFound):
            claims.claim(team.lead, "one", team.slug, "nothing")
        with pytest.raises(NotFound):
            claims.claim(team.person, "one", "no-such-mission")
        with pytest.raises(NotFound):
            claims.release_claim(team.lead, "one", "nothing", 1)


@pytest.mark.spec("X3", "X5", "M6")
def test_the_lead_ends_a_todo_whoever_holds_it_and_the_trail_tells(
    store: Store, team: Team, claims: MissionClaims
) -> None:
    done, dropped = team.todo_in(TodoStatus.IN_PROGRESS, "done"), team.todo_in(TodoStatus.IN_PROGRESS, "dropped")
    take(claims, team.owner, team)
    take(claims, team.owner, team)
    team.todos.complete(team.lead, team.slug, done.id, "seen and good")
    team.update(dropped, TodoAction.CANCEL)
    with pytest.raises(IllegalTransition, match="Cannot renew a claim that is free"):
        claims.renew_claim(team.owner, "one", done.id, 1)
    ended = [event for event in team.trail() if event.action in ("complete", "cancel")]
    held = {"holder": "owner:pillar-owner in mission-developer-experience (one)", "fence": 1}
    assert [json.loads(event.data)["claim"] for event in ended] == [held, held]
    told = replay.replay_claims(team.trail())
    assert {id: (one.holder, one.fence) for id, one in told.items()} == {done.id: (None, 1), dropped.id: (None, 1)}
    with store.read() as tx:
        assert [id for id, one in told.items() if replay.claim_differs(one, claim_records.find(tx, id))] == []
        assert list(todo_replay.compare(tx, team.mission.id, team.trail())) == []


@pytest.mark.spec("X3")
def test_the_tools_claim_from_the_mission_that_a_caller_is_bound_to(team: Team, claims: MissionClaims) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)

    def call(scope: MissionScope, name: str, **arguments: object) -> Any:
        tools = claim_tools(lambda _: {ListKind.MISSION: claimable_mission(claims, scope, "one")})
        (tool,) = [tool for tool in tools if tool.name == name]
        return tool.run(scope, arguments).data

    claimed = call(team.owner, "claim_todo")
    assert isinstance(claimed["todo"], dict)
    assert (claimed["todo"]["id"], claimed["fence"]) == (todo.id, 1)
    assert call(team.owner, "renew_claim", todoId=todo.id, fence=1, seconds=9)["fence"] == 1
    assert call(team.owner, "release_claim", todoId=todo.id, fence=1) == {"id": todo.id, "released": True}
    with pytest.raises(InvalidInput, match="missionSlug: is required"):
        call(team.person, "claim_todo")
    assert call(team.person, "claim_todo", missionSlug=team.slug)["fence"] == 2
    with pytest.raises(NotAllowed, match="you cannot claim from plan; available: mission"):
        call(team.owner, "claim_todo", list="plan")
