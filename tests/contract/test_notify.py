"""Notifications: by command and webhook, merged, once, not in quiet hours, never for one's own action (I2)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience
from tests.contract.test_inbox import escalate, fail_cycle, wait_for

from punchlist.app import Services
from punchlist.config import Settings, load
from punchlist.errors import ConfigError, NotFound
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.run_control import MissionRuns
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.notify.channels import SIGNATURE, TIMESTAMP, NotSent, send, sign
from punchlist.notify.service import RETRIES, Notifier
from punchlist.notify.settings import NotifyChannel, NotifySettings, Urgency, load_notify
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.surfaces.web.server import WebServer, build_app
from punchlist.toolcalls.approval_store import Approvals
from punchlist.views.inbox import Inbox
from punchlist.views.inbox_model import RequestKind

pytestmark = pytest.mark.spec("I2")
SECRET = "s3cret-of-the-hook"
KINDS = frozenset(RequestKind) - {RequestKind.WORKER}


class Hook(ThreadingHTTPServer):
    """A web server that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.status = 204

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.received]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        hook = cast("Hook", self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hook.received.append((dict(self.headers), body))
        self.send_response(hook.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store, cadence={"timezone": "UTC"})


def notifier(store: Store, *channels: NotifyChannel, **settings: Any) -> Notifier:
    services = SimpleNamespace(
        store=store,
        approvals=Approvals(store),
        plans=Plans(store),
        escalations=Escalations(store),
        runs=MissionRuns(store),
    )
    environment = {"HOOK_SECRET": SECRET, "API_TOKEN": "very-secret-token", "PATH": "/usr/bin:/bin"}
    inbox = Inbox(cast("Any", services))
    return Notifier(store, inbox, NotifySettings(channels, **settings), environment, allow_private=True)


def webhook(hook: Hook, **more: Any) -> NotifyChannel:
    return NotifyChannel("hook", webhook=hook.url, secret_env="HOOK_SECRET", **{"kinds": KINDS, **more})


def test_requests_within_the_window_are_one_signed_message(
    store: Store, team: Team, clock: StoppedClock, hook: Hook
) -> None:
    ours = notifier(store, webhook(hook))
    escalate(team, clock, "first")
    assert ours.run() == 0, "the window is open"
    clock.advance(seconds=30)
    escalate(team, clock, "very-secret-token")
    clock.advance(seconds=61)
    ours.run()
    clock.advance(seconds=61)
    ours.run()
    [message, *rest] = hook.messages
    titles = [request["todoTitle"] for each in (message, *rest) for request in each["requests"]]
    assert titles == ["first", "[hidden API_TOKEN]"]
    headers, body = hook.received[0]
    assert headers[SIGNATURE] == sign(SECRET, headers[TIMESTAMP], body)
    assert not any(b"very-secret-token" in body for _, body in hook.received)
    clock.advance(days=1)
    assert ours.run() == 0, "each request is sent once"


def test_many_requests_are_merged(store: Store, team: Team, clock: StoppedClock, hook: Hook) -> None:
    ours = notifier(store, webhook(hook))
    for number in range(3):
        escalate(team, clock, f"todo {number}")
    ours.run()
    clock.advance(seconds=61)
    assert ours.run() == 1
    assert hook.messages[0]["title"] == "Punchlist: 3 requests need you"


def test_several_processes_send_a_message_once(store: Store, team: Team, clock: StoppedClock, hook: Hook) -> None:
    escalate(team, clock)
    notifier(store, webhook(hook)).run()
    clock.advance(seconds=61)
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(lambda _: notifier(store, webhook(hook)).run(), range(4)))
    assert (sum(sent), len(hook.received)) == (1, 1)


def test_a_request_that_was_answered_in_time_is_not_sent(
    store: Store, team: Team, clock: StoppedClock, hook: Hook
) -> None:
    ours = notifier(store, webhook(hook))
    escalate(team, clock)
    ours.run()
    Escalations(store).answer(team.person, Escalations(store).list()[0].id, "keep")
    clock.advance(seconds=61)
    assert (ours.run(), hook.received) == (0, [])


def test_a_server_without_a_worker_tells_that_no_worker_is_alive(
    database: str, store: Store, team: Team, clock: StoppedClock, hook: Hook
) -> None:
    team.todo_in(TodoStatus.IN_PROGRESS)
    clock.advance(minutes=6)
    ours = notifier(store, webhook(hook, kinds=frozenset({RequestKind.WORKER})))
    assert ours.run_once() == 0, "the window is open"
    clock.advance(seconds=61)
    with opened_services(database) as services:
        services.notifier = ours
        with TestClient(build_app(WebServer(services, hosts_worker=False))):
            wait_until(lambda: bool(hook.received))
    assert hook.messages[0]["requests"][0]["kind"] == "worker"
    assert "No worker has run since" in hook.messages[0]["body"]
    clock.advance(days=1)
    assert ours.run() == 0, "once for each time without a worker"


def test_without_a_channel_a_person_is_told_so(store: Store) -> None:
    assert notifier(store).run() == 0
    with pytest.raises(NotFound, match="have no"):
        notifier(store).run_once()


def wait_until(condition: Callable[[], bool]) -> None:
    limit = monotonic() + 20
    while not condition():
        assert monotonic() < limit
        sleep(0.01)


@contextmanager
def opened_services(database: str) -> Iterator[Services]:
    services = Services(Settings(database, "s", "normal", None))
    try:
        yield services
    finally:
        services.close()


def test_a_person_is_not_told_of_what_they_did(store: Store, team: Team, clock: StoppedClock, hook: Hook) -> None:
    ours = notifier(store, webhook(hook))
    wait_for(store, "s", person="Which region?")
    ours.run()
    clock.advance(seconds=61)
    assert (ours.run(), hook.received) == (0, []), "a session asks at its terminal"
    also = notifier(store, webhook(hook), sessions=True)
    also.run()
    clock.advance(seconds=61)
    assert also.run() == 1


def test_kinds_and_urgency_choose(store: Store, team: Team, clock: StoppedClock, hook: Hook) -> None:
    assert not webhook(hook, kinds=frozenset({RequestKind.APPROVAL})).wants(RequestKind.ESCALATION)
    assert not webhook(hook, urgency=Urgency.HIGH).wants(RequestKind.ESCALATION)
    assert webhook(hook, urgency=Urgency.HIGH).wants(RequestKind.APPROVAL)
    fail_cycle(team)
    ours = notifier(store, webhook(hook, urgency=Urgency.HIGH))
    ours.run()
    clock.advance(seconds=61)
    assert ours.run() == 0


def test_failures_are_retried_a_few_times(store: Store, team: Team, clock: StoppedClock, hook: Hook) -> None:
    hook.status = 500
    ours = notifier(store, webhook(hook))
    escalate(team, clock)
    ours.run()
    clock.advance(seconds=61)
    for delay in (*RETRIES, timedelta(days=1)):
        assert ours.run() == 0
        clock.advance(seconds=delay.total_seconds())
    assert len(hook.received) == len(RETRIES) + 1
    ours.run()
    assert len(hook.received) == len(RETRIES) + 1


def test_a_command_gets_the_message_as_json(store: Store, team: Team, clock: StoppedClock, tmp_path: Path) -> None:
    file = tmp_path / "message.json"
    program = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read())"
    ours = notifier(store, NotifyChannel("desktop", command=(sys.executable, "-c", program), kinds=KINDS))
    escalate(team, clock, "Profile the build")
    ours.run()
    clock.advance(seconds=61)
    assert ours.run() == 1
    message = json.loads(file.read_text())
    assert "Profile the build" in message["body"]
    assert message["requests"][0]["answers"] == ["extend", "cancel", "keep", "acknowledge"]


@pytest.mark.parametrize(
    ("at", "sent"),
    [
        ("2026-02-21T20:59", "2026-02-21T20:59"),
        ("2026-02-21T21:30", "2026-02-22T06:00"),
        ("2026-02-22T05:00", "2026-02-22T06:00"),
    ],
)
def test_quiet_hours_are_in_the_persons_time_zone(at: str, sent: str) -> None:
    settings = NotifySettings(quiet=(time(22), time(7)), timezone="Europe/Berlin")
    found = settings.after_quiet_hours(datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert found.isoformat()[:16] == sent


def test_only_the_users_own_file_sets_channels(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    text = '[[notify.channels]]\nname = "mine"\ncommand = ["true"]\n'
    (project / "punchlist.toml").write_text(text)
    assert load_notify(load(cwd=project, environment={"HOME": str(home)})).channels == ()
    (home / ".config" / "punchlist").mkdir(parents=True)
    user_file = home / ".config" / "punchlist" / "punchlist.toml"
    user_file.write_text(text)
    [channel] = load_notify(load(cwd=project, environment={"HOME": str(home)})).channels
    assert (channel.name, channel.command) == ("mine", ("true",))
    user_file.write_text('[[notify.channels]]\nname = "x"\ncommand = ["true"]\nwebhook = "https://example.org"\n')
    with pytest.raises(ConfigError, match="one of command, webhook and service"):
        load_notify(load(cwd=project, environment={"HOME": str(home)}))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_service_of_apprise_gets_the_message(hook: Hook) -> None:
    address = hook.url.removeprefix("http://").rstrip("/")
    channel = NotifyChannel("phone", service="json://${HOST_OF_TEST}")
    message = {"title": "2 requests", "body": "Approve the release"}
    send(channel, message, "now", {"HOST_OF_TEST": address}, allow_private=True)
    (received,) = hook.messages
    assert (received["title"], received["message"]) == ("2 requests", "Approve the release")
    with pytest.raises(NotSent, match="HOST_OF_TEST is not set"):
        send(channel, message, "now", {}, allow_private=True)
    with pytest.raises(NotSent, match="apprise does not know the service"):
        send(NotifyChannel("x", service="no-such-service"), message, "now", {}, allow_private=True)
