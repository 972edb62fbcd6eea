"""Many open pages of one browser: they share one event stream, whoever of them is closed, hidden or frozen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog, Page, Request, expect
from tests.web.conftest import LogIn, Serve
from tests.web.test_pages import BOARD, ONE_DATABASE, column, make

from punchlist.app import Services
from punchlist.missions.model import Mission
from punchlist.missions.todos.lifecycle import TodoStatus

PAGES = 8
"""More than the connections of a browser to one host."""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Streams:
    """The event streams that the pages of a browser have open."""

    def __init__(self, first: Page) -> None:
        self._open: dict[Request, Page] = {}
        first.context.on("request", self._begin)
        for name in ("requestfailed", "requestfinished"):
            first.context.on(name, lambda request: self._open.pop(request, None))  # type: ignore[call-overload]

    def _begin(self, request: Request) -> None:
        if "/api/v1/events" in request.url:
            self._open[request] = request.frame.page

    @property
    def leaders(self) -> list[Page]:
        """The open page of each stream."""
        return [page for page in self._open.values() if not page.is_closed()]

    def wait(self, looking: Page, count: int = 1) -> list[Page]:
        """Wait until there are so many streams."""
        for _ in range(600):
            if len(self.leaders) == count:
                return self.leaders
            looking.wait_for_timeout(50)
        raise AssertionError(self._open)


def seen(page: Page, title: str) -> None:
    column(page, "backlog", title)


def boards(first: Page, url: str, count: int) -> list[Page]:
    pages = [first, *(first.context.new_page() for _ in range(count - 1))]
    for page in pages:
        page.goto(url + BOARD)
        page.wait_for_selector("body.ready")
    return pages


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_eight_pages_share_one_stream_and_none_misses_an_event_when_the_leading_one_is_closed(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    first = person(server)
    streams = Streams(first)
    pages = boards(first, server.url, PAGES)
    make(services, "Seen by all", TodoStatus.BACKLOG)
    for page in pages:
        seen(page, "Seen by all")
    assert len(streams.leaders) == 1
    while len(pages) > 1:
        (leader,) = streams.wait(pages[-1])
        number = len(pages)
        # One event that the leader may or may not have forwarded, and one that only its successor can get.
        make(services, f"Before {number}", TodoStatus.BACKLOG)
        leader.close()
        pages.remove(leader)
        make(services, f"After {number}", TodoStatus.BACKLOG)
        for page in pages:
            seen(page, f"Before {number}")
            seen(page, f"After {number}")


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_a_leading_page_that_freezes_is_replaced_and_hidden_pages_have_no_stream(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    first = person(server)
    streams = Streams(first)
    pages = boards(first, server.url, 3)
    (leader,) = streams.wait(first)
    # A dialog blocks the page, which cannot say so.
    dialogs = list[Dialog]()
    leader.on("dialog", lambda shown: dialogs.append(shown))  # noqa: PLW0108 - Playwright marks its handlers.
    leader.evaluate("setTimeout(() => alert('Wait'), 0)")
    others = [page for page in pages if page is not leader]
    make(services, "During the dialog", TodoStatus.BACKLOG)
    for page in others:
        seen(page, "During the dialog")
    dialogs[0].dismiss()
    seen(leader, "During the dialog")
    streams.wait(first)

    for page in pages:
        page.evaluate(HIDE, True)
    streams.wait(first, 0)
    make(services, "While nobody looks", TodoStatus.BACKLOG)
    pages[1].evaluate(HIDE, False)
    seen(pages[1], "While nobody looks")
    assert streams.wait(first) == [pages[1]]
    make(services, "While one is shown", TodoStatus.BACKLOG)
    seen(pages[1], "While one is shown")
    assert not pages[0].locator(".card", has_text="While nobody looks").count()
    pages[0].evaluate(HIDE, False)
    seen(pages[0], "While one is shown")
    assert streams.wait(first) == [pages[1]]


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_a_page_that_does_not_lead_shows_text_from_its_beginning_also_after_the_leading_one_is_closed(
    serve: Serve, person: LogIn, services: Services
) -> None:
    from punchlist.conversations import live_repository
    from punchlist.conversations.live_repository import NewLiveText
    from punchlist.conversations.model import Scope
    from punchlist.kernel.events import Actor, Role

    turn = services.conversations.open_turn(Scope("words", Actor(Role.SYSTEM, "agent")))

    def write(text: str, position: int) -> None:
        with services.store.write() as tx:
            live_repository.add_text(tx, NewLiveText("words", turn.id, "", position, text, 0, tx.now()))

    server = serve("--no-worker")
    first = person(server)
    streams = Streams(first)
    first.reload()
    streams.wait(first)
    write("Tests", 0)
    chat = first.context.new_page()
    chat.goto(f"{server.url}/chats/words")
    live = chat.locator("[data-live-text] .prose")
    expect(live).to_have_text("Tests")
    assert streams.wait(chat) == [first]
    write(" pass", 5)
    expect(live).to_have_text("Tests pass")
    first.close()
    write(" now", 10)
    expect(live).to_have_text("Tests pass now")


@pytest.mark.spec("M15", "X5")
@ONE_DATABASE
def test_a_restart_of_the_server_is_told_to_every_page(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    first = person(server)
    pages = boards(first, server.url, 2)
    server.stop()
    for page in pages:
        expect(page.locator(".offline")).to_be_visible()
    make(services, "While the server was down", TodoStatus.BACKLOG)
    server.start()
    for page in pages:
        expect(page.locator(".offline")).to_have_count(0)
        seen(page, "While the server was down")


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_the_service_worker_keeps_one_version_of_each_static_file(serve: Serve, person: LogIn) -> None:
    page = person(serve("--no-worker"))
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    kept = """async () => {
      const urls = [];
      for (const name of await caches.keys()) {
        for (const request of await (await caches.open(name)).keys()) urls.push(request.url);
      }
      return urls.filter((url) => url.includes("/static/base.css"));
    }"""
    # As after an update: the cache has the version before and not this one.
    page.evaluate("""async () => {
      const cache = await caches.open("static-2");
      for (const request of await cache.keys()) await cache.delete(request);
      await cache.put("/static/base.css?0123456789", new Response("old"));
    }""")
    assert len(page.evaluate(kept)) == 1
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    page.reload()
    for _ in range(600):
        found = page.evaluate(kept)
        if len(found) == 1 and not found[0].endswith("?0123456789"):
            return
        page.wait_for_timeout(50)
    raise AssertionError(found)
