"""The search box of every page: actions, runs and what is stored, by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.contract.missions import SLUG
from tests.web.conftest import PERSON, LogIn, Serve
from tests.web.test_pages import BOARD, LEAD, ONE_DATABASE, make

from punchlist.app import Services
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos.lifecycle import TodoAction
from punchlist.runs.model import RunKind

pytestmark = pytest.mark.spec("M15")


@ONE_DATABASE
def test_the_search_box_offers_actions_runs_and_each_mission_once(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    services.mission_todos.update(LEAD, SLUG, make(services), TodoAction.START, "Now")
    server = serve("--no-worker")
    page = person(server)
    page.goto(server.url + BOARD)
    page.wait_for_selector("body.ready")
    box, field = page.locator("#palette"), page.locator("#palette input[type=search]")
    page.keyboard.press("Control+k")
    expect(box.get_by_role("option").first).to_have_text(re.compile("^New todo"))
    expect(box.get_by_role("option", name=re.compile("^Developer Experience"))).to_have_count(1)
    # One Esc closes it, also when something is written.
    field.fill("slow plug")
    expect(box.get_by_role("option", name=re.compile("queued, pillar owner"))).to_have_count(1)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    page.keyboard.press("Control+k")
    field.fill("plan now")
    expect(box.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".toasts")).to_contain_text("A planning cycle is queued")
    expect(box).to_be_hidden()
    assert RunKind.CYCLE in {run.kind for run in services.runs.list(mission_id=mission.id, ended=True)}


@ONE_DATABASE
def test_clock_times_are_local_with_scripts_and_name_utc_without(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    services.metrics.record(MissionScope("s", PERSON), SLUG, "local-build-time", 72.0)
    server = serve("--no-worker")
    page = person(server, timezone_id="Asia/Kathmandu")
    page.goto(f"{server.url}/missions/{SLUG}/replay")
    page.wait_for_selector("body.ready")
    time = page.locator("time[data-time=moment]").first
    at = str(time.get_attribute("datetime"))
    shown = page.evaluate("at => new Date(at).toTimeString().slice(0, 8)", at)
    expect(time).to_have_text(re.compile(f"{shown}$"))
    assert shown != at[11:19]
    # What the server sends, for browsers without scripts.
    assert f"{at[:10]} {at[11:19]} UTC</time>" in page.request.get(page.url).text()
