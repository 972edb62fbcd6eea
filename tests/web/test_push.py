"""The service worker shows a pushed message, and its Approve answers the request."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import expect
from tests.web.conftest import LogIn, Serve
from tests.web.test_pages import ONE_DATABASE

from punchlist.notify.push import payload

pytest.importorskip("pywebpush", reason="needs the extra push")
MESSAGE = {
    "title": "Punchlist: approval in mission shop",
    "body": "7  approval  mission shop: make deploy\nAnswer with: punchlist inbox",
    "requests": [{"id": "call-7", "kind": "approval", "number": 7, "question": "$ make deploy"}],
}


@pytest.mark.spec("I2", "S5")
@ONE_DATABASE
def test_a_pushed_approval_is_shown_with_its_question_and_answered_from_the_notification(
    serve: Serve, person: LogIn
) -> None:
    server = serve("--no-worker")
    page = person(server)
    page.context.grant_permissions(["notifications"], origin=server.url)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    session = page.context.new_cdp_session(page)
    registrations: list[str] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda told: registrations.extend(each["registrationId"] for each in told["registrations"]),
    )
    session.send("ServiceWorker.enable")
    until = time.monotonic() + 20
    while not registrations and time.monotonic() < until:
        page.wait_for_timeout(20)
    push = {"origin": server.url, "registrationId": registrations[0], "data": json.dumps(payload(MESSAGE))}
    session.send("ServiceWorker.deliverPushMessage", push)
    # The message is shown some time after it was delivered.
    shown = page.evaluate(
        """async () => {
          const worker = await navigator.serviceWorker.ready;
          for (;;) {
            const [one] = await worker.getNotifications();
            if (one) return {body: one.body, actions: one.actions.map((each) => each.action), data: one.data};
            await new Promise((done) => setTimeout(done, 20));
          }
        }"""
    )
    assert shown["body"] == "$ make deploy"
    assert shown["actions"] == ["approve", "deny"]
    assert shown["data"] == {"url": "/#request-call-7", "answers": "call-7"}
    page.goto(f"{server.url}/settings")
    expect(page.get_by_role("button", name="Turn on")).to_be_enabled()
