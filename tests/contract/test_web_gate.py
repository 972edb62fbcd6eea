"""Nothing but the login, signed webhooks and health is reachable without a token; TRUST 24 to 26, 29, 30, 37."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.contract.missions import FILE
from tests.contract.web import API, WebSite, opened

from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.storage import event_log
from punchlist.surfaces.web.api.routes import ENDPOINTS
from punchlist.surfaces.web.logins import Logins
from punchlist.surfaces.web.rate_limit import RateLimit

REACHABLE = {"/healthz", "/readyz", "/login", "/webhooks/{id}"}


@pytest.fixture
def site(tmp_path: Any) -> Iterator[WebSite]:
    with opened(f"sqlite:///{tmp_path}/store/punchlist.db") as built:
        yield built


def _paths() -> list[tuple[str, str]]:
    found = [(each.method, API + each.path) for each in ENDPOINTS]
    return [*found, ("GET", f"{API}/events"), ("GET", f"{API}/openapi.json"), ("POST", "/logout")]


def _fill(path: str) -> str:
    return path.replace("{slug}", "m").replace("{id}", "x").replace("{", "").replace("}", "")


@pytest.mark.spec("X12", "X11")
def test_every_endpoint_refuses_strangers(site: WebSite) -> None:
    good = site.token("good", Role.PERSON)
    expired = site.token("old", Role.PERSON, timedelta(seconds=-1))
    revoked = site.token("gone", Role.PERSON)
    site.services.tokens.revoke(Scope("s", Actor(Role.PERSON, "ada")), "gone")
    strangers: list[tuple[int, dict[str, str]]] = [
        (401, {}),
        (401, {"Authorization": "Bearer wrong"}),
        (401, {"Authorization": f"Bearer {expired}"}),
        (401, {"Authorization": f"Bearer {revoked}"}),
        (401, {"Authorization": f"Basic {good}"}),
        (401, {"Cookie": f"punchlist={good}"}),
        (403, {"Authorization": f"Bearer {good}", "Host": "evil.example.com"}),
        (403, {"Authorization": f"Bearer {good}", "Host": "localhost.evil.example.com"}),
        (403, {"Authorization": f"Bearer {good}", "Origin": "null"}),
        (403, {"Authorization": f"Bearer {good}", "Origin": "http://evil.example.com"}),
    ]
    for method, path in _paths():
        for status, headers in strangers:
            told = site.http.request(method, _fill(path), headers=headers)
            assert told.status_code == status, (method, path, headers)
            assert told.headers["content-type"] == "application/problem+json"
    assert site.services.missions.list() == []


@pytest.mark.spec("X12")
def test_every_route_of_the_server_needs_a_token_but_the_open_ones(site: WebSite) -> None:
    """Pages and files too: the table of routes is read from the application."""
    seen = set()
    for route in site.app.routes:
        path = getattr(route, "path", "")
        for method in getattr(route, "methods", None) or {"GET"}:
            told = site.http.request(method, _fill(path) or "/", follow_redirects=False)
            if told.status_code != 401:
                seen.add(path)
    assert seen <= REACHABLE


@pytest.mark.spec("X12", "X11")
def test_every_change_is_refused_to_a_viewer(site: WebSite) -> None:
    viewer = site.client(Role.VIEWER)
    changes = [(each.method, each.path) for each in ENDPOINTS if each.changes]
    assert len(changes) > 30
    for method, path in changes:
        assert viewer.send(method, _fill(path), {}).status_code == 403, (method, path)


@pytest.mark.spec("X12")
def test_bodies_that_a_form_or_a_stranger_could_send_are_refused(site: WebSite) -> None:
    person = site.client()
    for content, kind, status in (
        (b"{}", "text/plain", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b'{"name": "' + b"x" * 1_100_000 + b'"}', "application/json", 413),
        (b"[" * 100_000, "application/json", 422),
        (b'{"name": "\\ud800"}', "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
    ):
        headers = {**person.headers, "Content-Type": kind}
        told = site.http.post(f"{API}/missions", content=content, headers=headers)
        assert told.status_code == status, (content[:20], told.text)


# --- the login --------------------------------------------------------------------------------------------


@pytest.mark.spec("X12")
def test_the_login_link_works_once_and_gives_a_cookie_that_scripts_cannot_read(site: WebSite) -> None:
    code = Logins(site.services).new_code()
    told = site.http.get(f"/login?code={code}")
    assert told.status_code == 200
    cookie = told.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert site.http.get(f"{API}/me").json()["role"] == "person"
    site.http.cookies.clear()
    assert site.http.get(f"/login?code={code}").status_code == 403
    assert site.http.get(f"{API}/me").status_code == 401
    # Neither the code nor the cookie is a bearer token.
    value = cookie.partition("=")[2].partition(";")[0]
    for text in (code, value, Logins(site.services).new_code()):
        assert site.http.get(f"{API}/me", headers={"Authorization": f"Bearer {text}"}).status_code == 401


@pytest.mark.spec("X12")
def test_a_change_with_a_cookie_needs_the_csrf_token_and_the_own_origin(site: WebSite) -> None:
    site.http.get(f"/login?code={Logins(site.services).new_code()}")
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    refused: list[dict[str, str]] = [
        {},
        {"X-CSRF-Token": "wrong"},
        # Another port of this host is another site, although browsers send it the cookie.
        {"X-CSRF-Token": csrf, "Origin": "http://localhost:9999"},
    ]
    for headers in refused:
        assert site.http.post(f"{API}/missions", json=FILE, headers=headers).status_code == 403, headers
    good = {"X-CSRF-Token": csrf, "Origin": "http://localhost"}
    assert site.http.post(f"{API}/missions", json=FILE, headers=good).status_code == 201
    with site.services.store.read() as tx:
        made = next(event for event in event_log.after(tx, 0) if event.action == "make_mission")
    assert made.actor.startswith("person:web-")
    assert site.http.post("/logout", data={"csrf": csrf}, follow_redirects=False).status_code == 303
    assert site.http.get(f"{API}/me").status_code == 401


def _at(site: WebSite, address: str) -> TestClient:
    """A client of this server at another address."""
    return TestClient(site.app, base_url="http://localhost", client=(address, 50_000))


@pytest.mark.spec("X12")
def test_an_address_that_guesses_waits_and_the_others_do_not(site: WebSite) -> None:
    guesser = _at(site, "10.0.0.1")
    told = [guesser.get(f"/login?code=guess-{number}").status_code for number in range(40)]
    assert told == [403] * 20 + [429] * 20
    assert guesser.post("/login", data={"code": "again"}).status_code == 429
    assert site.client().get("/me")[0] == 200
    assert _at(site, "10.0.0.2").get(f"/login?code={Logins(site.services).new_code()}").status_code == 200
    # An IPv6 client has a whole network of addresses.
    for number in range(25):
        last = _at(site, f"2001:db8::{number + 1:x}").post("/login", data={"code": "guess"})
    assert last.status_code == 429
    assert _at(site, "2001:db8:0:1::1").post("/login", data={"code": "guess"}).status_code == 403


@pytest.mark.spec("X12")
def test_successful_logins_and_pictures_of_other_sites_use_up_no_attempts(site: WebSite) -> None:
    picture = {"Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "cross-site"}
    for _ in range(30):
        assert site.http.get("/login?code=x", headers=picture).status_code == 403
        assert site.http.get(f"/login?code={Logins(site.services).new_code()}").status_code == 200


@pytest.mark.spec("X12")
def test_wrong_signatures_and_questions_about_readiness_are_limited_by_address(site: WebSite) -> None:
    stranger = _at(site, "10.0.0.3")
    told = [stranger.post("/webhooks/abc", content=b"{}").status_code for _ in range(30)]
    assert told == [401] * 20 + [429] * 10
    # A login from there is another matter.
    assert stranger.get("/login?code=x").status_code == 403
    assert {stranger.get("/readyz").status_code for _ in range(100)} == {200, 429}
    assert _at(site, "10.0.0.4").get("/readyz").status_code == 200


@pytest.mark.spec("X12")
def test_behind_a_proxy_the_address_is_what_the_proxy_says(site: WebSite) -> None:
    site.web.behind_proxy = True
    for number in range(30):
        # Only the last entry is the proxy's.
        site.http.get("/login?code=x", headers={"X-Forwarded-For": f"192.0.2.{number}, 10.0.0.5"})
    assert site.http.get("/login?code=x", headers={"X-Forwarded-For": "10.0.0.5"}).status_code == 429
    assert site.http.get("/login?code=x", headers={"X-Forwarded-For": "10.0.0.6"}).status_code == 403


@pytest.mark.spec("X12")
def test_every_response_forbids_scripts_of_others_and_says_nothing_of_errors(
    site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("/healthz", "/login", f"{API}/me", "/nothing"):
        policy = site.http.get(path).headers["content-security-policy"]
        assert "script-src 'self';" in policy or ("script-src" not in policy and path == "/login")
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("sk-secret-value in a traceback")

    monkeypatch.setattr(site.services.missions, "list", fail)
    person = site.client()
    site.http._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    status, told = person.get("/missions")
    assert status == 500
    assert "secret" not in json.dumps(told)


def test_a_client_that_sends_too_much_is_slowed_down_and_others_are_not() -> None:
    clock = [0.0]
    limit = RateLimit(10, 20, lambda: clock[0])
    assert [limit.allows("a") for _ in range(25)] == [True] * 20 + [False] * 5
    assert limit.allows("b")
    clock[0] = 0.5
    assert [limit.allows("a") for _ in range(7)] == [True] * 5 + [False] * 2
