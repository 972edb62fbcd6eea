"""Several agents take work from one plan: claims, leases, fences (X3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import by_hand, call, everything, nothing_changes, plan, trail

from punchlist.audit.check import check
from punchlist.claims import replay
from punchlist.claims.model import ClaimGranted, ListKind, NothingToClaim
from punchlist.claims.repository import claim_from_row
from punchlist.claims.tools import claim_tools
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.plan.model import TurnTodo
from punchlist.plan.service import Plans
from punchlist.plan.tools import claimable_plan
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

ADA = Actor(Role.PERSON, "ada")


def tool(plans: Plans, scope: TurnScope, name: str, /, at: str = "one", **arguments: Any) -> Any:
    """Call one of the tools that claim as a model does, from a place."""
    tools = claim_tools(lambda _: {ListKind.PLAN: claimable_plan(plans, scope, at)})
    (found,) = [tool for tool in tools if tool.name == name]
    result = found.run(scope, arguments)
    assert json.loads(result.text) == result.data
    return result.data


def claim(plans: Plans, scope: TurnScope, at: str = "one", todo_id: str | None = None) -> ClaimGranted[TurnTodo]:
    claimed = plans.claim(scope, at, todo_id)
    assert isinstance(claimed, ClaimGranted)
    return claimed


@pytest.mark.spec("X3")
def test_each_gets_its_own_todo_in_the_order_of_the_plan(plans: Plans, turn: TurnScope) -> None:
    first, second = plan(plans, turn, "A", "B")
    one, two = tool(plans, turn, "claim_todo", "one"), tool(plans, turn, "claim_todo", "two", seconds=30)
    assert [(got["todo"]["id"], got["fence"], got["claimedUntil"]) for got in (one, two)] == [
        (first, 1, "2026-02-21T09:05:00.000000Z"),
        (second, 1, "2026-02-21T09:00:30.000000Z"),
    ]
    assert tool(plans, turn, "claim_todo", "three") == {
        "todo": None,
        "next": "No todo is free now: 2 claimed, the first until 2026-02-21T09:00:30Z. Try again later.",
    }


@pytest.mark.spec("X3", "T5")
def test_a_claim_changes_nothing_about_its_todo_and_the_list_shows_it(
    plans: Plans, turn: TurnScope, clock: StoppedClock
) -> None:
    plan(plans, turn, "A", "B")
    before = call(plans, turn, "list_todo")
    tool(plans, turn, "claim_todo", "one")
    tool(plans, turn, "claim_todo", "two")
    held = call(plans, turn, "list_todo")
    told = [(item.pop("claimedBy"), item.pop("claimedUntil")) for item in held["items"]]
    assert told == [(f"supervisor:test in s ({at})", "2026-02-21T09:05:00.000000Z") for at in ("one", "two")]
    assert held == before
    clock.advance(seconds=300)
    assert call(plans, turn, "list_todo") == before


@pytest.mark.spec("X3")
def test_while_a_todo_is_held_others_neither_start_nor_end_it(store: Store, plans: Plans, turn: TurnScope) -> None:
    todo_id, _ = plan(plans, turn, "A", "B")
    claim(plans, turn)
    with nothing_changes(store):
        for name, arguments in (
            ("start_todo", {}),
            ("complete_todo", {"outcome": "mine"}),
            ("complete_todo", {"outcome": "mine", "status": "cancelled"}),
            ("complete_todo", {"outcome": "mine", "status": "failed"}),
        ):
            with pytest.raises(Conflict, match=r"claimed by supervisor:test in s \(one\) until 2026-02-21T09:05:00"):
                call(plans, turn, name, todoId=todo_id, **arguments)
            with pytest.raises(Conflict, match="no claim with fence 2"):
                call(plans, turn, name, todoId=todo_id, fence=2, **arguments)
            with pytest.raises(InvalidInput, match="fence: must be"):
                call(plans, turn, name, todoId=todo_id, fence="1", **arguments)
    assert call(plans, turn, "start_todo", todoId=todo_id, fence=1)["status"] == "in_progress"
    assert call(plans, turn, "complete_todo", todoId=todo_id, fence=1, outcome="done")["status"] == "completed"


@pytest.mark.spec("X3")
def test_whoever_is_overtaken_cannot_end_a_todo(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    (todo_id,) = plan(plans, turn, "A")
    claim(plans, turn, "one")
    clock.advance(minutes=6)
    assert claim(plans, turn, "two").claim.fence == 2
    # Even when the clock says that the first lease still runs.
    for hours in (0, -1, 2):
        clock.advance(hours=hours)
        with pytest.raises(Conflict, match="Fence 1 is outdated"):
            call(plans, turn, "complete_todo", todoId=todo_id, outcome="late", fence=1)
        with pytest.raises(Conflict, match="Fence 1 is outdated"):
            plans.renew_claim(turn, "one", todo_id, 1)
    assert call(plans, turn, "complete_todo", todoId=todo_id, outcome="done", fence=2)["status"] == "completed"
    with pytest.raises(IllegalTransition):
        call(plans, turn, "complete_todo", todoId=todo_id, outcome="again", fence=2)


@pytest.mark.spec("X3")
def test_a_lease_that_ran_out_is_renewed_when_nobody_has_taken_the_todo(
    store: Store, plans: Plans, turn: TurnScope, clock: StoppedClock
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    claim(plans, turn)
    events = len(trail(store))
    clock.advance(hours=1)
    renewed = tool(plans, turn, "renew_claim", todoId=todo_id, fence=1, seconds=60)
    assert renewed == {"id": todo_id, "fence": 1, "claimedUntil": "2026-02-21T10:01:00.000000Z"}
    assert isinstance(plans.claim(turn, "two"), NothingToClaim)
    assert len(trail(store)) == events


@pytest.mark.spec("X3")
def test_a_stranger_can_neither_renew_nor_release(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "A")
    claim(plans, turn, "one")
    other = TurnScope("s", Actor(Role.SUPERVISOR, "another"), turn.turn_id)
    with nothing_changes(store):
        for scope, at in ((turn, "two"), (other, "one")):
            for name in ("renew_claim", "release_claim"):
                with pytest.raises(NotAllowed, match="Only its holder"):
                    tool(plans, scope, name, at, todoId=todo_id, fence=1)


@pytest.mark.spec("X3")
def test_a_todo_that_is_given_back_is_the_next_ones(store: Store, plans: Plans, turn: TurnScope) -> None:
    first, _ = plan(plans, turn, "A", "B")
    claim(plans, turn, "one")
    assert tool(plans, turn, "release_claim", todoId=first, fence=1) == {"id": first, "released": True}
    with pytest.raises(IllegalTransition, match="Cannot renew a claim that is free"):
        plans.renew_claim(turn, "one", first, 1)
    again = claim(plans, turn, "two")
    assert (again.todo.id, again.claim.fence) == (first, 2)
    told = [(e.action, e.subject, e.actor, json.loads(e.data)["fence"]) for e in trail(store) if "fence" in e.data]
    by = "supervisor:test"
    assert told == [("claim", first, by, 1), ("release", first, by, 1), ("claim", first, by, 2)]


@pytest.mark.spec("X3")
def test_a_person_can_always_end_a_todo_and_take_it_back_and_the_trail_tells(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    person = TurnScope("s", ADA, turn.turn_id)
    first, second = plan(plans, turn, "A", "B")
    claim(plans, turn, "one")
    claim(plans, turn, "one")
    call(plans, person, "complete_todo", todoId=first, outcome="did it myself")
    plans.release_claim(person, "terminal", second, None)
    ended, released = [event for event in trail(store) if event.action in ("complete", "release")]
    held = {"holder": "supervisor:test in s (one)", "fence": 1}
    assert (ended.actor, ended.action, json.loads(ended.data)["claim"]) == ("person:ada", "complete", held)
    assert (released.actor, released.action) == ("person:ada", "release")
    assert {name: json.loads(released.data)[name] for name in held} == held
    assert claim(plans, turn, "two").todo.id == second


@pytest.mark.spec("X3", "C8")
def test_with_its_todo_a_claim_ends_and_whoever_tries_again_claims_again(plans: Plans, turn: TurnScope) -> None:
    first, second = plan(plans, turn, "A", "B")
    for expected in (1, 2):
        assert claim(plans, turn).claim.fence == expected
        call(plans, turn, "complete_todo", todoId=first, outcome="it broke", status="failed", fence=expected)
    assert call(plans, turn, "list_todo")["items"][0]["id"] == second
    assert claim(plans, turn).todo.id == second
    call(plans, turn, "complete_todo", todoId=second, outcome="not needed", status="cancelled", fence=1)
    assert tool(plans, turn, "claim_todo") == {"todo": None, "next": "No todo is left to claim."}


@pytest.mark.spec("X3")
def test_a_todo_is_claimed_by_its_id_if_it_is_open_and_free(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    first, second, third = plan(plans, turn, "A", "B", "C")
    (theirs,) = plan(plans, other_turn, "theirs")
    assert tool(plans, turn, "claim_todo", todoId=second)["todo"]["title"] == "B"
    call(plans, turn, "complete_todo", todoId=third, outcome="done")
    with nothing_changes(store):
        for todo_id, error, told in (
            (second, Conflict, "You already hold “B”"),
            (third, IllegalTransition, "it is completed"),
            (theirs, NotFound, "belongs to another turn"),
            ("nothing", NotFound, "There is no todo 'nothing'"),
        ):
            with pytest.raises(error, match=told):
                tool(plans, turn, "claim_todo", todoId=todo_id)
        with pytest.raises(Conflict, match="is claimed by"):
            tool(plans, turn, "claim_todo", "two", todoId=second)
    call(plans, turn, "start_todo", todoId=first)
    assert isinstance(plans.claim(turn, "two"), NothingToClaim)
    assert claim(plans, turn, "two", first).todo.status == "in_progress"


@pytest.mark.spec("X3", "C10", "C12")
def test_what_waits_is_not_claimed_and_what_is_held_has_its_resources(
    plans: Plans, turn: TurnScope, clock: StoppedClock
) -> None:
    items = [
        {"title": "Deploy", "blockedBy": ["Build", {"event": "go"}]},
        {"title": "Build", "resources": ["app.py"]},
        {"title": "Lint", "resources": ["app.py"]},
        {"title": "Write"},
    ]
    made = {one["title"]: one["id"] for one in call(plans, turn, "create_todo", items=items)["created"]}
    with pytest.raises(IllegalTransition, match=r"cannot be claimed yet\. It waits for “Build”"):
        claim(plans, turn, "one", made["Deploy"])
    assert [claim(plans, turn, at).todo.title for at in ("one", "two")] == ["Build", "Write"]
    assert str(plans.claim(turn, "three")).endswith("2 in progress or waiting. Try again later.")
    clock.advance(minutes=6)
    # Its holder died: the resource is the first one's again, but whoever works with it keeps it.
    plans.release_claim(TurnScope("s", ADA, turn.turn_id), "terminal", made["Build"], None)
    call(plans, turn, "wait_todo", todoId=made["Build"], **{"for": {"event": "go"}})
    assert claim(plans, turn, "one").todo.title == "Lint"
    plans.report_event("s", "go", ADA)
    assert claim(plans, turn, "two").todo.title == "Write"
    with pytest.raises(IllegalTransition, match=r"“Lint”, which claims app\.py too"):
        plans.start(turn, made["Build"])
    assert "app.py" in str(call(plans, turn, "list_todo")["items"][1]["waitsFor"])
    call(plans, turn, "complete_todo", todoId=made["Lint"], outcome="done", fence=1)
    assert claim(plans, turn, "one").todo.title == "Build"


@pytest.mark.spec("X3", "T13")
def test_a_worker_claims_nothing(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "A")
    worker = TurnScope("s", Actor(Role.WORKER, "coder"), turn.turn_id)
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="A worker may not claim a plan todo"):
            plans.claim(worker, "one")
        with pytest.raises(NotAllowed, match="A worker may not renew a plan todo"):
            plans.renew_claim(worker, "one", todo_id, 1)
        with pytest.raises(NotAllowed, match="A worker may not release a plan todo"):
            plans.release_claim(worker, "one", todo_id, 1)
    assert all(Role.WORKER not in tool.roles for tool in claim_tools(lambda _: {}))


@pytest.mark.spec("X3", "T14")
def test_in_a_turn_that_has_ended_nothing_is_claimed_or_kept(
    store: Store, plans: Plans, conversations: Conversations, turn: TurnScope
) -> None:
    first, _ = plan(plans, turn, "A", "B")
    claim(plans, turn)
    conversations.end_turn(turn, reason="a new prompt")
    with nothing_changes(store):
        own: dict[str, Any] = {"todoId": first, "fence": 1}
        for name, arguments in (("claim_todo", {}), ("renew_claim", own), ("release_claim", own)):
            with pytest.raises(IllegalTransition, match=r"has ended \(a new prompt\)"):
                tool(plans, turn, name, **arguments)


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("name", "arguments", "error", "told"),
    [
        ("claim_todo", {"todoId": 7.5}, InvalidInput, "todoId: must be text"),
        ("claim_todo", {"todoId": "a\x1bb"}, InvalidInput, "todoId: must not contain control"),
        ("claim_todo", {"seconds": 0}, InvalidInput, "seconds: must be"),
        ("claim_todo", {"list": "turn"}, InvalidInput, "list: must be one of plan, mission"),
        ("claim_todo", {"list": "mission"}, NotAllowed, "you cannot claim from mission; available: plan"),
        ("claim_todo", {"missionSlug": "m"}, NotAllowed, "you cannot claim from mission"),
        (
            "claim_todo",
            {"list": "plan", "missionSlug": "m"},
            InvalidInput,
            "missionSlug: applies to the list mission",
        ),
        ("renew_claim", {"fence": 1}, InvalidInput, "todoId: is required"),
        ("renew_claim", {"todoId": "x"}, InvalidInput, "fence: must be"),
        ("renew_claim", {"todoId": "x", "fence": 1, "seconds": 10**9}, InvalidInput, "seconds: must be"),
        ("renew_claim", {"todoId": "x", "fence": 1}, NotFound, "There is no todo 'x'"),
        ("release_claim", {"todoId": "x", "fence": 2**70}, InvalidInput, "fence: must be"),
    ],
)
def test_a_bad_claim_is_refused_in_words(
    store: Store, plans: Plans, turn: TurnScope, name: str, arguments: dict[str, Any], error: type[Exception], told: str
) -> None:
    plan(plans, turn, "A")
    with nothing_changes(store), pytest.raises(error, match=told):
        tool(plans, turn, name, **arguments)


@pytest.mark.spec("X3", "T7")
def test_a_holder_that_a_model_sends_has_no_effect(store: Store, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A")
    forged: dict[str, Any] = {"holder": "person:root", "actor": "person:root", "fence": 99, "conversationId": "x"}
    tool(plans, turn, "claim_todo", **forged)
    assert [claim_from_row(row).holder for row in everything(store)["claims"]] == ["supervisor:test in s (one)"]


@pytest.mark.spec("X3", "X5")
def test_the_trail_tells_who_had_what_and_the_check_finds_nothing_wrong(
    store: Store, plans: Plans, turn: TurnScope, clock: StoppedClock
) -> None:
    first, second, third = plan(plans, turn, "A", "B", "C")
    for at in ("one", "two", "three"):
        claim(plans, turn, at)
    call(plans, turn, "complete_todo", todoId=first, outcome="done", fence=1)
    plans.release_claim(turn, "two", second, 1)
    clock.advance(hours=1)
    claim(plans, turn, "four")
    assert check(store, SCHEMA_VERSION).problems == []
    events = trail(store, f"plan:{turn.turn_id}")
    assert {id: (one.holder, one.fence) for id, one in replay.replay_claims(events).items()} == {
        first: (None, 1),
        second: ("supervisor:test in s (four)", 2),
        third: ("supervisor:test in s (three)", 1),
    }
    assert replay.count_claimed_todos(events) == len(everything(store)["claims"]) == 3

    def differences() -> list[str]:
        return check(store, SCHEMA_VERSION).problems

    for change in ("holder = 'person:root'", "fence = fence + 1", "claimed_at = '2027'"):
        by_hand(store, f"UPDATE claims SET {change} WHERE todo_id = :id", id=first)
        assert f"the claim of todo {first} differs from its events" in str(differences())
        by_hand(store, "DELETE FROM claims WHERE todo_id = :id", id=first)
        assert "claims: has 2 rows, its events made 3" in differences()
        by_hand(
            store,
            "INSERT INTO claims VALUES (:id, 'plan', :turn, NULL, 1, '2026-02-21T09:00:00.000000Z', '2026')",
            id=first,
            turn=turn.turn_id,
        )
        assert differences() == []
