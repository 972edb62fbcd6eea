"""Who may take a todo, keep it, give it back and end it, with time as an argument (X3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from punchlist.claims import validation as claim_validation
from punchlist.claims.lifecycle import ClaimStatus
from punchlist.claims.model import Claim, Claimant, ListKind, NothingToClaim
from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.lifecycle import NEW

NOW = "2026-02-21T09:00:00.000000Z"
IN_FIVE = "2026-02-21T09:05:00.000000Z"
LATER = "2026-02-21T10:00:00.000000Z"
EARLIER = "2026-02-21T08:00:00.000000Z"
WHAT = "“Build” (id 1)"


def claimant(role: Role = Role.SUPERVISOR, at: str = "one") -> Claimant:
    return Claimant(Scope("s", Actor(role, "test")), at)


ONE, TWO, PERSON, WORKER = claimant(), claimant(at="two"), claimant(Role.PERSON), claimant(Role.WORKER)


def take(before: Claim | None = None, by: Claimant = ONE, now: str = NOW, seconds: int = 300) -> Claim:
    return claim_validation.new_claim(before, WHAT, "1", (ListKind.PLAN, "t"), by, now, seconds)


HELD = take()
FREE = HELD._replace(holder=None)
Act = Callable[[Claim | None, Claimant, int], Claim]


@pytest.mark.spec("X3")
def test_a_claim_says_who_holds_a_todo_until_when() -> None:
    assert Claim("1", ListKind.PLAN, "t", "supervisor:test in s (one)", 1, NOW, IN_FIVE) == HELD


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("claim", "now", "status"),
    [
        (None, NOW, NEW),
        (HELD, NOW, ClaimStatus.HELD),
        (HELD, "2026-02-21T09:04:59.999999Z", ClaimStatus.HELD),
        (HELD, IN_FIVE, ClaimStatus.LAPSED),
        (HELD, LATER, ClaimStatus.LAPSED),
        (FREE, NOW, ClaimStatus.FREE),
    ],
)
def test_a_lease_runs_out_at_its_moment(claim: Claim | None, now: str, status: str) -> None:
    assert claim_validation.claim_status(claim, now) == status
    assert claim_validation.is_held(claim, now) is (status == ClaimStatus.HELD)


@pytest.mark.spec("X3")
def test_every_claim_of_a_todo_has_a_higher_fence_whoever_makes_it() -> None:
    second = take(HELD, TWO, LATER)
    third = take(second._replace(holder=None), ONE, LATER)
    # A clock that went back.
    fourth = take(third._replace(holder=None), TWO, EARLIER)
    assert [HELD.fence, second.fence, third.fence, fourth.fence] == [1, 2, 3, 4]


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("by", "told"),
    [
        (TWO, "is claimed by supervisor:test in s (one) until 2026-02-21T09:05:00.000000Z"),
        (PERSON, "is claimed by supervisor:test in s (one) until"),
        (ONE, "You already hold “Build” (id 1) with fence 1 until 2026-02-21T09:05:00.000000Z"),
    ],
)
def test_what_is_held_cannot_be_taken(by: Claimant, told: str) -> None:
    with pytest.raises(Conflict) as refused:
        take(HELD, by)
    assert told in str(refused.value)


@pytest.mark.spec("X3")
def test_a_clock_that_jumps_back_keeps_a_todo_its_holders() -> None:
    with pytest.raises(Conflict):
        take(HELD, TWO, EARLIER)


@pytest.mark.spec("X3")
def test_a_claim_is_renewed_from_now_on_also_after_it_ran_out() -> None:
    for now, until in ((NOW, "2026-02-21T09:00:30.000000Z"), (LATER, "2026-02-21T10:00:30.000000Z")):
        assert claim_validation.renewed_claim(HELD, WHAT, ONE, 1, now, 30) == HELD._replace(lease_until=until)


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    "act",
    [
        lambda claim, by, fence: claim_validation.renewed_claim(claim, WHAT, by, fence, NOW, 30),
        lambda claim, by, fence: claim_validation.released_claim(claim, WHAT, by, fence, NOW),
    ],
    ids=["renew", "release"],
)
@pytest.mark.parametrize(
    ("claim", "by", "fence", "error", "told"),
    [
        (None, ONE, 1, Conflict, "is not claimed"),
        (FREE, ONE, 1, IllegalTransition, "a claim that is free"),
        (HELD, TWO, 1, NotAllowed, "Only its holder can"),
        (HELD, WORKER, 1, NotAllowed, "A worker may not"),
        (HELD, ONE, 2, Conflict, "has no claim with fence 2"),
        (take(HELD, TWO, LATER), ONE, 1, Conflict, "Fence 1 is outdated: “Build” (id 1) was claimed again"),
    ],
)
def test_only_the_holder_renews_and_releases_and_only_with_the_newest_fence(
    act: Act, claim: Claim | None, by: Claimant, fence: int, error: type[PunchlistError], told: str
) -> None:
    with pytest.raises(error, match=re.escape(told)):
        act(claim, by, fence)


@pytest.mark.spec("X3")
def test_a_person_can_take_a_todo_from_anybody_but_cannot_keep_it_for_them() -> None:
    assert claim_validation.released_claim(HELD, WHAT, PERSON, None, NOW).holder is None
    with pytest.raises(NotAllowed):
        claim_validation.renewed_claim(HELD, WHAT, PERSON, 1, NOW, 30)
    with pytest.raises(Conflict):
        claim_validation.released_claim(HELD, WHAT, PERSON, 7, NOW)
    with pytest.raises(InvalidInput, match="fence: is required"):
        claim_validation.released_claim(HELD, WHAT, ONE, None, NOW)


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("claim", "fence", "by", "now"),
    [
        (None, None, Role.SUPERVISOR, NOW),
        (FREE, None, Role.SUPERVISOR, NOW),
        (HELD, 1, Role.SUPERVISOR, NOW),
        # Nobody has taken it since.
        (HELD, 1, Role.SUPERVISOR, LATER),
        (HELD, None, Role.SUPERVISOR, LATER),
        (HELD, None, Role.PERSON, NOW),
    ],
)
def test_a_todo_is_ended_by_its_holder_or_a_person_or_when_nobody_holds_it(
    claim: Claim | None, fence: int | None, by: Role, now: str
) -> None:
    claim_validation.check_use(claim, WHAT, fence, by, now)


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("claim", "fence", "by", "told"),
    [
        (HELD, None, Role.SUPERVISOR, "is claimed by supervisor:test in s"),
        (HELD, None, Role.SYSTEM, "is claimed by supervisor:test in s"),
        (take(HELD, TWO, LATER), 1, Role.SUPERVISOR, "Fence 1 is outdated"),
        (take(HELD, TWO, LATER)._replace(holder=None), 1, Role.SUPERVISOR, "was claimed again with fence 2"),
        # Who gives a fence wants it looked at.
        (take(HELD, TWO, LATER), 1, Role.PERSON, "Fence 1 is outdated"),
        (None, 1, Role.SUPERVISOR, "has no claim with fence 1"),
        (HELD, 2, Role.SUPERVISOR, "has no claim with fence 2"),
    ],
)
def test_whoever_is_too_late_is_told_so(claim: Claim | None, fence: int | None, by: Role, told: str) -> None:
    with pytest.raises(Conflict, match=told):
        claim_validation.check_use(claim, WHAT, fence, by, NOW)


@pytest.mark.spec("X3")
@pytest.mark.parametrize("raw", [0, -1, 1.5, True, "300", "\x1b[31m", [], {}, 10**400, float("nan")])
@pytest.mark.parametrize("parse", [claim_validation.parse_seconds, claim_validation.parse_fence])
def test_seconds_and_fences_are_whole_numbers_in_their_range(parse: Callable[[Any], int], raw: Any) -> None:
    with pytest.raises(InvalidInput, match="must be") as refused:
        parse(raw)
    assert "\x1b" not in str(refused.value)


@pytest.mark.spec("X3")
def test_a_lease_is_five_minutes_if_nothing_is_said_and_a_day_at_most() -> None:
    with pytest.raises(InvalidInput, match="from 1 to 86400"):
        claim_validation.parse_seconds(86_401)
    assert [claim_validation.parse_seconds(raw) for raw in (None, 1, 86_400)] == [300, 1, 86_400]
    assert (
        claim_validation.parse_list(None),
        claim_validation.parse_list("plan"),
        claim_validation.parse_list("mission"),
    ) == (None, "plan", "mission")
    wrong: list[Any] = ["turn", "", 1, []]
    for raw in wrong:
        with pytest.raises(InvalidInput, match="list: must be one of plan, mission"):
            claim_validation.parse_list(raw)


def test_a_lease_past_the_end_of_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidInput, match="end of the calendar"):
        claim_validation.lease_end("9999-12-31T23:59:59.000000Z", 300)


@pytest.mark.spec("X3")
def test_whoever_finds_nothing_is_told_when_to_come_back() -> None:
    assert str(NothingToClaim(0, 0)) == "No todo is left to claim."
    assert str(NothingToClaim(2, 1, IN_FIVE)) == (
        "No todo is free now: 2 claimed, the first until 2026-02-21T09:05:00Z, 1 in progress or waiting. "
        "Try again later."
    )
