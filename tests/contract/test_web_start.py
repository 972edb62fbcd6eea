"""What a starting server prepares, so that the first requests do not wait for it (M15)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.web import opened

from punchlist.app import Services
from punchlist.config import Settings
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.surfaces.web import warm_up
from punchlist.surfaces.web.pages.render import environment
from punchlist.views import search_index, search_repository
from punchlist.views.live import newest_event

pytestmark = pytest.mark.spec("M15")
ADA = MissionScope("s", Actor(Role.PERSON, "ada"))


def wait(done: Callable[[], bool]) -> None:
    until, pause = time.monotonic() + 30, Event()
    while not done():
        assert time.monotonic() < until
        pause.wait(0.02)


def wait_for_index(services: Services) -> None:
    """Without a search."""

    def done() -> bool:
        with services.store.read() as tx:
            return search_repository.progress(tx) == newest_event(services.store)

    wait(done)


def test_the_index_is_complete_and_stays_so_before_anyone_searches(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "INDEX_SECONDS", 0.05)
    # On PostgreSQL, young events are applied again, because earlier ones can still become visible.
    monkeypatch.setattr(search_index, "UNSETTLED", timedelta(seconds=-1))
    before = Services(Settings(database, "s", "normal", None))
    before.missions.apply(ADA, file.parse_value(FILE), "{}")
    _todo(before)
    before.close()
    with opened(database) as site:
        wait_for_index(site.services)
        _todo(site.services, "Written while the server runs")
        wait_for_index(site.services)


def _todo(services: Services, title: str = "Profile") -> str:
    return services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, title)).todo.id


def test_templates_are_compiled_before_the_first_page(database: str) -> None:
    templates = environment()
    cache = templates.cache
    assert cache is not None
    cache.clear()
    names = templates.list_templates(extensions=["html"])
    with opened(database):
        wait(lambda: len(cache) == len(names))
