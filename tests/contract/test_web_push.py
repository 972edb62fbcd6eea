"""Web push: what a browser's push service gets, from a server on this machine that stands for it (I2)."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.web import API, WebSite, opened

from punchlist.app import PRIVATE_ADDRESSES
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions.changes import lock_mission
from punchlist.missions.escalations.service import escalate_stuck_work
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.notify.service import Notifier
from punchlist.notify.settings import NotifySettings
from punchlist.surfaces.web.logins import Logins

pytest.importorskip("pywebpush", reason="needs the extra push")
pytestmark = pytest.mark.spec("I2")
ADA = MissionScope("s", Actor(Role.PERSON, "ada"))


class PushService(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.status = 201


class _Handler(BaseHTTPRequestHandler):
    server: PushService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


class BrowserKeys:
    """The keys that a browser makes for a subscription."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._private, self._auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        point = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.keys = {"p256dh": _encoded(point), "auth": _encoded(self._auth)}

    def read(self, body: bytes) -> Any:
        import http_ece

        return json.loads(http_ece.decrypt(body, private_key=self._private, auth_secret=self._auth))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@pytest.fixture
def push_service() -> Iterator[PushService]:
    with PushService() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


@pytest.fixture
def site(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebSite]:
    monkeypatch.setenv(PRIVATE_ADDRESSES, "allow")
    with _logged_in(database) as site:
        yield site


@pytest.fixture
def strict_site(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebSite]:
    monkeypatch.delenv(PRIVATE_ADDRESSES, raising=False)
    with _logged_in(database) as site:
        yield site


@contextmanager
def _logged_in(database: str) -> Iterator[WebSite]:
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        site.http.headers["X-CSRF-Token"] = site.http.get(f"{API}/me").json()["csrf"]
        yield site


def ask(site: WebSite, title: str) -> None:
    """A todo whose work needs a decision."""
    todo = site.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, title)).todo
    with site.services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        escalate_stuck_work(write, todo, "Two tests depend on the order.")


def test_a_browser_gets_what_agents_ask_until_its_login_ends(site: WebSite, push_service: PushService) -> None:
    services, browser = site.services, BrowserKeys()
    site.http.post(f"{API}/missions", json=FILE)
    now = NotifySettings(window=timedelta(0))
    notifier = Notifier(services.store, services.inbox, now, {}, web_push=services.web_push)
    ask(site, "Before")
    assert notifier.run() == 0, "it is off until the person turns it on"
    subscription = {"endpoint": f"http://127.0.0.1:{push_service.server_port}/x", "keys": browser.keys}
    told = site.http.post(f"{API}/push", json=subscription)
    assert (told.status_code, told.json()["subscriptions"]) == (200, 1), told.text

    assert notifier.run() == 1
    (headers, body) = push_service.received.pop()
    assert b"Before" not in body
    message = browser.read(body)
    assert "Before" in message["body"]
    assert message["url"].startswith("/#request-")
    assert "answers" not in message, "only an approval can be answered without the page"
    from py_vapid import Vapid02

    assert Vapid02.verify(auth=headers["authorization"])
    assert f"k={told.json()['publicKey']}" in headers["authorization"]

    # A subscription that the service no longer knows is forgotten.
    push_service.status = 410
    ask(site, "Gone")
    notifier.run()
    assert services.web_push.subscriptions() == []
    # One of a browser that has logged out, too, and nothing is sent to it.
    push_service.status = 201
    site.http.post(f"{API}/push", json=subscription)
    push_service.received.clear()
    site.http.post("/logout", data={"csrf": site.http.headers["X-CSRF-Token"]}, follow_redirects=False)
    ask(site, "Logged out")
    notifier.run()
    assert push_service.received == []
    assert services.web_push.subscriptions() == []


def test_the_server_sends_to_no_other_address_than_a_push_service(strict_site: WebSite) -> None:
    site = strict_site
    keys = BrowserKeys().keys
    for endpoint in (
        "http://127.0.0.1:8420/x",
        "https://169.254.169.254/latest",
        "https://fcm.googleapis.com.evil.example/x",
        "https://evilfcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "http://fcm.googleapis.com/x",
        "https://user@evil.example#fcm.googleapis.com",
    ):
        told = site.http.post(f"{API}/push", json={"endpoint": endpoint, "keys": keys})
        assert told.status_code == 422, endpoint
    good = "https://fcm.googleapis.com/fcm/send/x"
    assert site.http.post(f"{API}/push", json={"endpoint": good, "keys": {**keys, "auth": "x"}}).status_code == 422
    assert site.http.post(f"{API}/push", json={"endpoint": good, "keys": keys}).status_code == 200
    assert site.http.request("DELETE", f"{API}/push", json={"endpoint": good}).json()["subscriptions"] == 0
