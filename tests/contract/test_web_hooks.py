"""Signed webhooks: they wake todos and start cycles once, and only with the right signature (X12)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.contract.missions import FILE, SLUG
from tests.contract.web import WebSite, opened

from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import ConditionKind
from punchlist.plan.model import NewCondition
from punchlist.plan.validation import parse_items
from punchlist.surfaces.web.webhooks import sign
from punchlist.tokens.validation import webhook_secret

PERSON = Scope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as built:
        yield built


class Sender:
    def __init__(self, site: WebSite, role: Role = Role.LEAD) -> None:
        self.site = site
        self.id = site.services.tokens.create(PERSON, f"ci-{role}", role, None).token.id
        self.secret = webhook_secret(site.services.trust, self.id)

    def send(self, body: Any, id: str = "m1", *, at: float | None = None, **changes: str) -> Any:
        content = json.dumps(body).encode()
        when = str(int(time.time() if at is None else at))
        headers = {
            "webhook-id": id,
            "webhook-timestamp": when,
            "webhook-signature": f"v1,{sign(self.secret, id, when, content).decode()}",
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        return self.site.http.post(f"/webhooks/{self.id}", content=content, headers=headers)


@pytest.mark.spec("X12", "C10")
def test_a_webhook_wakes_a_todo_once(site: WebSite) -> None:
    services = site.services
    agent = Scope("work", Actor(Role.SUPERVISOR, "agent"))
    turn = TurnScope("work", agent.actor, services.conversations.open_turn(agent).id)
    [todo] = services.plans.create(turn, parse_items([{"title": "Deploy it"}])).todos

    services.plans.wait(turn, todo.id, NewCondition(ConditionKind.EVENT, "ci-done"))
    body = {"type": "wake", "session": "work", "event": "ci-done", "note": "green"}
    assert Sender(site, Role.LEAD).send(body).status_code == 403
    sender = Sender(site, Role.PERSON)
    told = sender.send(body)
    assert (told.status_code, told.json()["woken"][0]["title"]) == (200, "Deploy it")
    # Sent again, as after a lost response: the same answer, and nothing happens.
    assert sender.send(body).json() == told.json()
    assert sender.send(body, "m2").status_code == 404
    [condition] = services.plans.conditions(turn)
    assert condition.resolved_by == "person:ci-person"


@pytest.mark.spec("X12")
def test_a_webhook_starts_a_cycle_in_the_role_of_its_token(site: WebSite) -> None:
    assert site.client().post("/missions", FILE)[0] == 201
    body = {"type": "cycle", "mission": SLUG}
    assert Sender(site, Role.WORKER).send(body).status_code == 403
    told = Sender(site).send(body)
    assert told.status_code == 200
    assert site.services.runs.get(told.json()["runId"]).created_by == "lead:ci-lead"


@pytest.mark.spec("X12")
def test_a_webhook_that_is_forged_old_or_revoked_is_refused(site: WebSite) -> None:
    sender, viewer = Sender(site), Sender(site, Role.VIEWER)
    body = {"type": "cycle", "mission": SLUG}
    assert viewer.send(body).status_code == 401
    assert sender.send(body, webhook_signature="v1,AAAA").status_code == 401
    assert sender.send(body, webhook_signature="").status_code == 401
    assert sender.send(body, webhook_id="other").status_code == 401
    for at in (time.time() - 400, time.time() + 400):
        assert sender.send(body, at=at).status_code == 401
    assert sender.send(body, webhook_timestamp="soon").status_code == 401
    site.services.tokens.revoke(PERSON, sender.id)
    assert sender.send(body).status_code == 401
