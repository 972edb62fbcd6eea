"""Answers that are given again while nothing has changed are those of the database, and of the caller (X12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.web import WebSite, opened

from punchlist.app import Services
from punchlist.config import Settings
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.surfaces.web.answer_cache import MAX_ANSWERS, SECONDS, AnswerCache
from punchlist.surfaces.web.logins import Logins

ADA = MissionScope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as built:
        yield built


@pytest.mark.spec("X12")
def test_every_answer_has_the_newest_commit_of_every_process(site: WebSite, database: str) -> None:
    person = site.client()
    person.post("/missions", FILE)
    site.http.get(f"/login?code={Logins(site.services).new_code()}")
    with closing(Services(Settings(database, "s", "normal", None))) as other:
        for number in range(30):
            services = (other, site.services)[number % 2]
            new = NewMissionTodo(BUILD, f"Todo {number}")
            if number >= 10:
                todo = services.mission_todos.list(SLUG).items[0]
                services.mission_todos.comment(ADA, SLUG, todo.id, f"Remark {number}")
                assert f"Remark {number}" in site.http.get(f"/todos/{todo.id}").text
                assert f"Remark {number}" in str(person.get(f"/todos/{todo.id}")[1])
            else:
                services.mission_todos.create(ADA, SLUG, new)
                assert len(person.get(f"/missions/{SLUG}/todos")[1]["items"]) == number + 1
                assert f"Todo {number}" in site.http.get(f"/missions/{SLUG}/board").text


@pytest.mark.spec("X12", "X11")
def test_no_caller_gets_the_answer_of_another(site: WebSite) -> None:
    one, other = site.client(Role.PERSON, "one"), site.client(Role.VIEWER, "other")
    for _ in range(2):
        assert one.get("/me")[1]["name"] == "one"
        assert other.get("/me")[1]["name"] == "other"
        assert one.get("/tokens")[0] == 200
        assert other.get("/tokens")[0] == 403
    pages = set()
    for _ in range(2):
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        page = site.http.get("/settings").text
        assert site.http.get("/api/v1/me").json()["csrf"] in page
        pages.add(page)
    assert len(pages) == 2


@pytest.mark.spec("X12")
def test_an_answer_is_read_again_after_a_commit_and_after_a_second(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/store/punchlist.db") as site:
        now, reads = 0.0, 0
        todos = site.services.todos

        async def read() -> int:
            nonlocal reads
            reads += 1
            return reads

        async def read_while_another_writes() -> int:
            todos.add(ADA, ["Two"], reason="why")
            return await read()

        async def scenario() -> None:
            nonlocal now
            cache = AnswerCache(site.services.store, lambda: now)
            assert [await cache.get("k", read), await cache.get("k", read), await cache.get("l", read)] == [1, 1, 2]
            todos.add(ADA, ["One"], reason="why")
            assert [await cache.get("k", read), await cache.get("k", read)] == [3, 3]
            now += SECONDS
            assert await cache.get("k", read) == 4
            # What was read may lack what was written meanwhile.
            assert await cache.get("m", read_while_another_writes) == 5
            assert await cache.get("m", read) == 6
            for number in range(10 * MAX_ANSWERS):
                await cache.get(number, read)
            assert len(cache) <= MAX_ANSWERS
            cache.close()

        asyncio.run(scenario())
