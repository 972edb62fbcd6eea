"""How pages name conversations and what their list shows, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from tests.contract.missions import FILE
from tests.contract.rehearsing import Rehearsing, calls, claims, plans, says
from tests.contract.web import WebSite, opened

from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.web.logins import Logins

pytestmark = pytest.mark.spec("M15")


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as site:
        assert site.client().post("/missions", FILE)[0] == 201
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        yield site


def _text(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_session_is_named_by_its_goal_and_listed_with_its_last_message(site: WebSite, tmp_path: Path) -> None:
    scope = Scope("run-x7k", Actor(Role.SUPERVISOR, "supervisor"))
    replies = (calls(("list_directory", {})), says("**Done:** the build takes `72 s`."))
    Rehearsing(site.services.store, scope, tmp_path, *replies).run("# Why is the build slow?")
    listed = re.findall(r'<li id="conversation-[^>]*>.*?</li>', site.http.get("/conversations").text, re.DOTALL)
    rows = [_text(row) for row in listed]
    [row] = [row for row in rows if "build slow" in row]
    assert re.search(r"Why is the build slow\? .*Done: the build takes 72 s\.", row)
    assert any(row.startswith("Mission chat Developer Experience") for row in rows)
    for path in ("/chats/run-x7k", "/chats/run-x7k/todos", "/chats/run-x7k/replay"):
        assert "Why is the build slow?" in _text(site.http.get(path).text), path
    assert re.search(r"<h1[^>]*>Why is the build slow\?</h1>", site.http.get("/chats/run-x7k").text)


@pytest.mark.spec("X12")
def test_one_conversation_is_read_as_in_the_list(site: WebSite, tmp_path: Path) -> None:
    scope = Scope("run-x7k", Actor(Role.SUPERVISOR, "supervisor"))
    Rehearsing(site.services.store, scope, tmp_path, says("Done.")).run("Why is the build slow?")
    person = site.client(name="reader")
    listed = person.get("/conversations")[1]["items"]
    assert len(listed) > 1
    for each in listed:
        assert person.get(f"/conversations/{each['id']}") == (200, each)
    assert person.get("/conversations/none")[0] == 404


@pytest.mark.spec("T15", "W9", "C13", "T12")
def test_a_conversation_shows_what_was_said_and_done_in_order(site: WebSite, tmp_path: Path) -> None:
    scope = Scope("run-x7k", Actor(Role.SUPERVISOR, "supervisor"))
    Rehearsing(
        site.services.store,
        scope,
        tmp_path,
        plans("Look at it", "Never done"),
        calls(("delegate", {"type": "researcher", "mission": "Find the cause."}), text="I look."),
        calls(claims(0)),
        *[says("I *stop* here.")] * 20,
        researcher=[says("The cache is cold.")],
    ).run("Why is the build slow?")
    page = _text(site.http.get("/chats/run-x7k?before=100").text)
    shown = ("Why is the build slow?", "I look.", "Find the cause.", "The cache is cold.", "I stop here.", "Never done")
    places = [page.find(text) for text in shown]
    assert -1 not in places, page
    assert places[:5] == sorted(places[:5]), page
