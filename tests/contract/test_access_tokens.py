"""Named access tokens on both databases: created, listed, revoked, recognised, never stored (X11, TRUST 25)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conftest import StoppedClock

from punchlist.audit.check import check
from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store
from punchlist.surfaces.cli.token import TokenRole
from punchlist.tokens.model import TOKEN_ROLES, TokenValidity
from punchlist.tokens.service import AccessTokens
from punchlist.tokens.validation import parse_lifetime

PERSON = Scope("s", Actor(Role.PERSON, "ada"))
DAY = timedelta(days=1)

pytestmark = pytest.mark.spec("X11")


def seal(text: str) -> str:
    return f"{len(text)}:{hash(text)}"


@pytest.fixture
def tokens(store: Store) -> AccessTokens:
    return AccessTokens(store, seal)


def validities(tokens: AccessTokens) -> list[str]:
    return [validity.value for _, validity in tokens.list()]


def test_a_token_is_recognised_and_its_text_is_nowhere_in_the_database(tokens: AccessTokens, store: Store) -> None:
    issued = tokens.create(PERSON, "ci", Role.WORKER, DAY)
    assert tokens.find_valid(issued.text) == issued.token
    assert (issued.token.name, issued.token.role, issued.token.created_by) == ("ci", Role.WORKER, "person:ada")
    secret = issued.text.split("_", 2)[2]
    with store.read() as tx:
        rows = [*tx.all(Statement("SELECT * FROM access_tokens")), *tx.all(Statement("SELECT * FROM events"))]
    assert rows
    assert all(secret not in str(row) for row in rows)


def test_only_the_exact_token_is_recognised(tokens: AccessTokens) -> None:
    text = tokens.create(PERSON, "ci", Role.WORKER, DAY).text
    other = tokens.create(PERSON, "other", Role.LEAD, DAY).text
    mixed = "_".join([*text.split("_")[:2], other.split("_", 2)[2]])
    for wrong in ("", "punchlist_", text[:-1], f"{text}x", text.upper(), mixed, text.replace("_", " "), f" {text}"):
        assert tokens.find_valid(wrong) is None, wrong


def test_a_token_ends_at_its_expiry_and_when_it_is_revoked(tokens: AccessTokens, clock: StoppedClock) -> None:
    short = tokens.create(PERSON, "short", Role.VIEWER, DAY)
    endless = tokens.create(PERSON, "endless", Role.PERSON, None)
    assert validities(tokens) == ["valid", "valid"]
    clock.now += DAY
    assert tokens.find_valid(short.text) is None
    assert validities(tokens) == ["valid", "expired"]
    assert tokens.find_valid(endless.text) == endless.token
    assert tokens.revoke(PERSON, endless.token.id).revoked_at
    assert tokens.find_valid(endless.text) is None
    assert validities(tokens) == ["revoked", "expired"]


def test_a_name_belongs_to_one_token_until_it_is_revoked(tokens: AccessTokens) -> None:
    first = tokens.create(PERSON, "ci", Role.WORKER, DAY)
    with pytest.raises(Conflict, match="punchlist token revoke ci"):
        tokens.create(PERSON, "ci", Role.LEAD, DAY)
    tokens.revoke(PERSON, "ci")
    second = tokens.create(PERSON, "ci", Role.LEAD, DAY)
    assert tokens.find_valid(first.text) is None
    assert tokens.find_valid(second.text) == second.token
    assert tokens.revoke(PERSON, "ci").id == second.token.id
    with pytest.raises(IllegalTransition, match="was revoked before"):
        tokens.revoke(PERSON, "ci")
    with pytest.raises(NotFound, match="no token 'nothing'"):
        tokens.revoke(PERSON, "nothing")


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.PERSON])
def test_only_a_person_creates_and_revokes_tokens(tokens: AccessTokens, role: Role) -> None:
    tokens.create(PERSON, "ci", Role.WORKER, DAY)
    agent = Scope("s", Actor(role, "agent"))
    with pytest.raises(NotAllowed, match="person may"):
        tokens.create(agent, "more", Role.WORKER, DAY)
    with pytest.raises(NotAllowed, match="person may"):
        tokens.revoke(agent, "ci")
    assert validities(tokens) == ["valid"]


@pytest.mark.parametrize("name", ["", "a b", "-x", "é", "a" * 51, "a\nb", "x."])
def test_a_wrong_name_is_refused(tokens: AccessTokens, name: str) -> None:
    with pytest.raises(InvalidInput, match="name: must be"):
        tokens.create(PERSON, name, Role.WORKER, DAY)
    assert tokens.list() == []


def test_there_is_no_token_for_the_system(tokens: AccessTokens) -> None:
    with pytest.raises(InvalidInput, match="role: must be one of"):
        tokens.create(PERSON, "x", Role.SYSTEM, DAY)
    assert {role.value for role in TokenRole} == {role.value for role in TOKEN_ROLES}


@pytest.mark.parametrize(
    ("column", "value"),
    [("role", "person"), ("expires_at", None), ("name", "other"), ("created_by", "person:eve"), ("seal", "")],
)
def test_a_token_that_was_changed_in_the_database_is_refused(
    tokens: AccessTokens, store: Store, column: str, value: str | None
) -> None:
    """TRUST 31: writing to the database is not enough to make a token."""
    issued = tokens.create(PERSON, "ci", Role.VIEWER, DAY)
    with store.write() as tx:
        tx.run(Statement(f"UPDATE access_tokens SET {column} = :value"), value=value)
    assert tokens.find_valid(issued.text) is None
    assert validities(tokens) == [TokenValidity.NOT_YOURS]
    if column != "seal":
        assert any("differs from its events" in problem for problem in check(store, SCHEMA_VERSION).problems)


def test_a_token_of_another_user_is_refused(tokens: AccessTokens, store: Store) -> None:
    issued = AccessTokens(store, lambda text: seal(f"other key {text}")).create(PERSON, "ci", Role.PERSON, DAY)
    assert tokens.find_valid(issued.text) is None
    assert validities(tokens) == [TokenValidity.NOT_YOURS]


def test_tokens_are_in_the_event_log_and_the_check_is_content(tokens: AccessTokens, store: Store) -> None:
    tokens.create(PERSON, "ci", Role.WORKER, DAY)
    tokens.create(PERSON, "other", Role.WORKER, None)
    tokens.revoke(PERSON, "ci")
    assert check(store, SCHEMA_VERSION).problems == []
    with store.read() as tx:
        rows = tx.all(Statement("SELECT actor, action, reason FROM events ORDER BY seq"))
    assert [tuple(row) for row in rows] == [
        ("person:ada", "create", "token ci"),
        ("person:ada", "create", "token other"),
        ("person:ada", "revoke", "token ci"),
    ]


@pytest.mark.parametrize(("written", "days"), [("1440m", 1), ("24h", 1), ("30d", 30), ("2w", 14), ("never", None)])
def test_an_expiry_is_a_number_and_a_unit(written: str, days: int | None) -> None:
    assert parse_lifetime(written) == (None if days is None else timedelta(days=days))


@pytest.mark.parametrize("written", ["", "0d", "-1d", "30", "d", "1y", "1.5d", "30 d", "99999d", "9999999d", "Never"])
def test_any_other_expiry_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="expires: must be a time such as 12h, 30d or 8w"):
        parse_lifetime(written)
