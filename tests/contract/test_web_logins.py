"""Logins with a named token: a cookie of its role that acts in its name and ends with it (X11, X12, TRUST 25)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.contract.missions import FILE, SLUG
from tests.contract.web import API, WebSite, opened

from punchlist.audit.check import check
from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.storage import event_log
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.statements import Statement
from punchlist.tokens.model import TOKEN_ROLES

pytestmark = pytest.mark.spec("X11", "X12")
ADA = Scope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as started:
        yield started


def browser(site: WebSite, token: str) -> TestClient:
    """A browser of its own that logged in with the form."""
    found = TestClient(site.app, base_url="http://localhost")
    told = found.post("/login", data={"code": token})
    assert told.status_code == 200, told.text
    return found


def me(http: TestClient) -> Any:
    told = http.get(f"{API}/me")
    return told.json() if told.status_code == 200 else told.status_code


def test_a_login_with_a_named_token_acts_in_its_name_and_the_settings_say_which_it_was(site: WebSite) -> None:
    token = site.services.tokens.create(ADA, "pers", Role.PERSON, timedelta(days=90))
    http = browser(site, token.text)
    who = me(http)
    assert (who["name"], who["role"]) == ("pers", "person")
    assert http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": who["csrf"]}).status_code == 201
    with site.services.store.read() as tx:
        made = next(event for event in event_log.after(tx, 0) if event.action == "make_mission")
    assert made.actor == "person:pers"
    page = http.get("/settings").text
    assert "Logged in as</dt><dd>pers (person)" in page
    assert "browser, logged in with pers" in page
    own = re.findall(r'<tr id="token-(\w+)">(?=[^\n]*class="tag">you)', page)
    assert own == [each.token.id for each in site.services.tokens.list() if each.token.parent_id == token.token.id]
    assert check(site.services.store, SCHEMA_VERSION).problems == []


@pytest.mark.parametrize("how", ["command", "page", "api", "log"])
def test_a_login_ends_with_the_token_that_it_was_made_with(site: WebSite, how: str) -> None:
    tokens = site.services.tokens
    token = tokens.create(ADA, "pers", Role.PERSON, timedelta(days=90))
    first, second = browser(site, token.text), browser(site, token.text)
    other = browser(site, site.token("other", Role.PERSON))
    csrf = {"X-CSRF-Token": me(other)["csrf"]}
    if how == "command":
        tokens.revoke(ADA, "pers")
    elif how == "page":
        assert other.post(f"/settings/tokens/{token.token.id}/revoke", data={"csrf": me(other)["csrf"]}).is_success
    elif how == "api":
        assert other.delete(f"{API}/tokens/pers", headers=csrf).status_code == 200
    else:
        # Only the row of the token, as an older version of this program would.
        with site.services.store.write() as tx:
            tx.run(Statement("UPDATE access_tokens SET revoked_at = created_at WHERE id = :id"), id=token.token.id)
    assert (me(first), me(second), me(other)["name"]) == (401, 401, "other")
    with pytest.raises(IllegalTransition):
        tokens.create(ADA, "web-late", Role.PERSON, None, login=True, parent_id=token.token.id)
    assert (
        TestClient(site.app, base_url="http://localhost").post("/login", data={"code": token.text}).status_code == 403
    )
    if how != "log":
        ended = [each for each in tokens.list() if each.token.parent_id == token.token.id]
        assert [each.validity.value for each in ended] == ["revoked", "revoked"]
        assert check(site.services.store, SCHEMA_VERSION).problems == []


def test_an_open_event_stream_of_a_login_ends_with_its_token(site: WebSite) -> None:
    token = site.services.tokens.create(ADA, "pers", Role.PERSON, None)
    login = browser(site, token.text)
    id = next(each.token.id for each in site.services.tokens.list() if each.token.parent_id == token.token.id)
    assert me(login)["name"] == "pers"
    assert site.services.tokens.is_valid(id)
    site.services.tokens.revoke(ADA, "pers")
    assert not site.services.tokens.is_valid(id)


@pytest.mark.parametrize(("lifetime", "most"), [(timedelta(hours=2), 2), (timedelta(days=90), 720), (None, 720)])
def test_a_login_lasts_no_longer_than_its_token_and_at_most_thirty_days(
    site: WebSite, lifetime: timedelta | None, most: int
) -> None:
    token = site.services.tokens.create(ADA, "pers", Role.PERSON, lifetime)
    http = browser(site, token.text)
    (cookie,) = [each.token for each in site.services.tokens.list() if each.token.parent_id == token.token.id]
    assert cookie.expires_at is not None
    lasts = parse_timestamp(cookie.expires_at) - parse_timestamp(cookie.created_at)
    assert timedelta(hours=most, minutes=-1) < lasts <= timedelta(hours=most, seconds=1)
    (kept,) = http.cookies.jar
    assert kept.expires is not None
    assert kept.expires <= time.time() + lasts.total_seconds() + 2


def test_a_cookie_without_its_parent_is_not_accepted(site: WebSite) -> None:
    """A writer of the database cannot separate it from its token."""
    http = browser(site, site.token("pers", Role.PERSON))
    with site.services.store.write() as tx:
        tx.run(Statement("UPDATE access_tokens SET parent_id = NULL WHERE parent_id IS NOT NULL"))
    assert me(http) == 401


@pytest.mark.parametrize("role", TOKEN_ROLES)
def test_every_role_logs_in_and_out_with_its_token_and_gets_no_more_than_its_role(site: WebSite, role: Role) -> None:
    assert site.client(name="maker").post("/missions", FILE)[0] == 201
    http = browser(site, site.token("mine", role))
    who = me(http)
    assert (who["name"], who["role"]) == ("mine", role.value)
    for path in ("/", f"/missions/{SLUG}/board", "/settings", "/search?q=build"):
        assert http.get(path).status_code == 200, path
    # As a bearer token of the same role.
    bearer = {"Authorization": f"Bearer {site.token('same', role)}"}
    with_cookie = {"X-CSRF-Token": who["csrf"]}
    for method, path, body in (
        ("POST", "/tokens", {"name": "x", "role": "person"}),
        ("POST", f"/missions/{SLUG}/directives", {"content": "Cache first"}),
        ("PUT", f"/missions/{SLUG}/settings", {}),
    ):
        told = [http.request(method, API + path, json=body, headers=each).status_code for each in (with_cookie, bearer)]
        assert role is Role.PERSON or told[0] == told[1] >= 400, (role, path)
    assert http.post("/logout", data={"csrf": who["csrf"]}, follow_redirects=False).status_code == 303
    http.cookies.clear()
    assert [each.validity.value for each in site.services.tokens.list() if each.token.parent_id] == ["revoked"]
    assert check(site.services.store, SCHEMA_VERSION).problems == []


def test_the_login_page_says_what_is_wrong_with_a_token_and_with_a_link(site: WebSite) -> None:
    http = TestClient(site.app, base_url="http://localhost")
    for text in ("punchlist_0123456789ab_" + "x" * 43, "nonsense", ""):
        told = http.post("/login", data={"code": text})
        assert told.status_code == 403
        assert "This token is unknown" in told.text
    assert "This link was used before" in http.get("/login?code=nonsense").text
