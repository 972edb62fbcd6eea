"""The pages in Chromium: a board with 500 cards, the same with 10,000 todos, a drop, an event of another process, and a
run with 20,000 calls.

Server, browser and the process that writes share the cores of the machine. Times of the browser are its own: from the
beginning of a navigation to the first byte, and to the mark that the last script of the page sets.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.figures import Bench, Figure, Limits, Skipped
from bench.missions import ended_todo
from bench.views import PERSON, fill
from bench.web import start_server
from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn
from punchlist.kernel.clock import system_clock, timestamp
from punchlist.kernel.events import Change, Role
from punchlist.kernel.ids import new_id
from punchlist.missions.config import file
from punchlist.missions.model import NewMissionTodo
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.runs.lifecycle import RunAction
from punchlist.runs.service import Runs
from punchlist.storage import event_log
from punchlist.storage.statements import Statement
from punchlist.toolcalls import repository as call_repository
from punchlist.toolcalls.stored_call import StoredCall

if TYPE_CHECKING:
    from playwright.sync_api import Page

SMALL: Final = "board"
LARGE: Final = "large-board"
FIRST_BYTE: Final = 0.100
INTERACTIVE: Final = 0.400
WIRE: Final = 60_000
CONFIRMED: Final = 0.150
DELAY: Final = 0.300
RUN: Final = 0.500
ARGUMENTS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
TRACE: Final = Statement(
    "INSERT INTO traces (id, conversation_id, turn_id, kind, name, output, started_at, ended_at) "
    "VALUES (:id, :chat, :turn, 'model', 'bench', :output, :start, :end)"
)
TIMES: Final = """async () => {
  while (!performance.getEntriesByName("ready").length) await new Promise((next) => setTimeout(next, 5));
  const [page] = performance.getEntriesByType("navigation");
  const files = [page, ...performance.getEntriesByType("resource")].filter((each) => !each.name.includes("/events"));
  return {
    firstByte: page.responseStart / 1000,
    ready: performance.getEntriesByName("ready")[0].startTime / 1000,
    wire: files.reduce((sum, each) => sum + each.transferSize, 0),
  };
}"""
DROP: Final = """async ([from, to]) => {
  const card = document.querySelector(`#column-${from} .card[data-todo]`);
  const column = document.querySelector(`#column-${to}`);
  const dataTransfer = new DataTransfer();
  const send = (target, name) =>
    target.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer }));
  send(card, "dragstart");
  send(column, "dragover");
  const begin = performance.now();
  send(column, "drop");
  while (!column.contains(card)) await new Promise(requestAnimationFrame);
  const drawn = performance.now() - begin;
  send(card, "dragend");
  return drawn / 1000;
}"""
CONFIRM: Final = """async () => {
  const board = document.querySelector("[data-board]");
  delete board.dataset.confirmed;
  document.querySelector("#move form").requestSubmit();
  while (!board.dataset.confirmed) await new Promise((next) => setTimeout(next, 2));
  return Number(board.dataset.confirmed) / 1000;
}"""
COUNTED: Final = """async (before) => {
  const count = () => Number(document.querySelector("#column-backlog [data-count]").textContent);
  while (count() <= before) await new Promise((next) => setTimeout(next, 2));
  return Date.now() / 1000;
}"""


def measure(bench: Bench) -> Iterator[Figure]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise Skipped("Chromium is not installed: the pages are not measured")
    quick = bench.sizes.rounds < 1_000
    rounds, cards, todos, calls = (2, 50, 500, 500) if quick else (11, 500, 10_000, 20_000)
    folder = bench.folder / "pages"
    (folder / ".git").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PUNCHLIST_", "XDG_"))}
    environment = {**kept, "HOME": str(folder)}
    os.environ["HOME"] = str(folder)
    services = Services(load(environment=environment, cwd=folder))
    with closing(services):
        _board(services, SMALL, cards, 0)
        _board(services, LARGE, cards, todos - cards)
        run_id = _long_run(services, calls)
        token = services.tokens.create(PERSON, "bench", Role.PERSON, timedelta(days=1)).text
        with start_server(folder, environment) as (port, _), _browser(chromium) as browser:
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            site = f"http://127.0.0.1:{port}"
            _log_in(context, site, token)
            small = [_open(context, f"{site}/missions/{SMALL}/board") for _ in range(rounds)]
            large = [_open(context, f"{site}/missions/{LARGE}/board") for _ in range(rounds)]
            yield Figure(
                f"pages: board with {cards} cards, first byte",
                [median(each["firstByte"] for each in small)],
                limits=Limits(seconds=FIRST_BYTE),
            )
            yield Figure(
                f"pages: board with {cards} cards, interactive",
                [median(each["ready"] for each in small)],
                limits=Limits(seconds=INTERACTIVE),
            )
            yield Figure(
                f"pages: the same of {todos:,} todos",
                [median(each["ready"] for each in large)],
                [median(each["ready"] for each in small)],
                limits=Limits(times=1.5),
            )
            with_empty_cache = browser.new_context(service_workers="block")
            _log_in(with_empty_cache, site, token, visit=False)
            wire = _open(with_empty_cache, f"{site}/missions/{SMALL}/board")["wire"]
            print(f"pages: the board with {cards} cards sends {wire / 1e3:.1f} kB with an empty cache", file=sys.stderr)
            if wire > WIRE:
                raise AssertionError(f"the board sends {wire} bytes")
            page = context.new_page()
            _go(page, f"{site}/missions/{SMALL}/board")
            drawn, confirmed = _drops(page, rounds)
            yield Figure("pages: a drop is drawn", [median(drawn)], limits=Limits(seconds=0.050))
            yield Figure("pages: a drop is confirmed", [median(confirmed)], limits=Limits(seconds=CONFIRMED))
            delays = _events(services, page, rounds)
            yield Figure("pages: an event of another process is shown", [median(delays)], limits=Limits(seconds=DELAY))
            opened = [_open(context, f"{site}/runs/{run_id}")["ready"] for _ in range(rounds)]
            yield Figure(f"pages: a run with {calls:,} calls opens", [median(opened)], limits=Limits(seconds=RUN))


@contextmanager
def _browser(chromium: str) -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Skipped("Playwright is not installed: the pages are not measured") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def _log_in(context: Any, site: str, token: str, *, visit: bool = True) -> None:
    context.set_default_timeout(60_000)
    assert context.request.post(f"{site}/login", form={"code": token}).ok
    if visit:
        page = context.new_page()
        _go(page, f"{site}/")
        # The files are cached from the second page on, as for a person.
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        page.close()


def _go(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("body.ready")


def _open(context: Any, url: str) -> dict[str, float]:
    page = context.new_page()
    page.goto(url)
    times: dict[str, float] = page.evaluate(TIMES)
    page.close()
    return times


def _drops(page: Page, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until a dropped card is in its new column, and from its reason being sent to the answer of the server."""
    drawn, confirmed = [], []
    for place in range(rounds):
        drawn.append(page.evaluate(DROP, [("pending", "backlog"), ("backlog", "pending")][place % 2]))
        page.locator("#move textarea").fill("bench")
        confirmed.append(page.evaluate(CONFIRM))
        page.wait_for_function("!document.querySelector('#move').open")
    return drawn, confirmed


def _events(services: Services, page: Page, rounds: int) -> list[float]:
    """Seconds from a commit of this process to the page of the browser, whose column counts one card more."""
    delays = []
    for place in range(rounds):
        # Otherwise it could be part of the refresh for the event before.
        page.wait_for_timeout(500)
        before = int(page.locator("#column-backlog [data-count]").inner_text())
        shown = page.evaluate_handle(f"(before) => ({{ at: ({COUNTED})(before) }})", before)
        new = NewMissionTodo("speed", f"Shown at once {place}", target=TodoStatus.BACKLOG)
        services.mission_todos.create(PERSON, SMALL, new)
        committed = time.time()
        delays.append(max(shown.evaluate("(each) => each.at") - committed, 0.0))
    return delays


# --- content ----------------------------------------------------------------------------------------------


def _board(services: Services, slug: str, cards: int, ended: int) -> None:
    """A mission with so many open todos, and others that have ended over 300 days."""
    limits = {"activeTodoLimit": cards, "backlogTodoLimit": 2 * cards}
    text = json.dumps({"name": slug, "slug": slug, "todo": limits, "pillars": [{"name": "Speed", "slug": "speed"}]})
    mission = services.missions.apply(PERSON, file.parse_mission(text), text).mission
    [state] = services.missions.pillars(mission)
    priorities = list(TodoPriority)
    for number in range(cards):
        target = TodoStatus.PENDING if number % 2 else TodoStatus.BACKLOG
        new = NewMissionTodo(
            "speed", f"Todo {number} of the board", "Work to do. " * 10, priority=priorities[number % 3], target=target
        )
        services.mission_todos.create(PERSON, slug, new)
    now = system_clock()
    with services.store.write() as tx:
        for number in range(ended):
            at = timestamp(now - timedelta(days=300) * number / ended)
            todo_repository.insert_todo(tx, ended_todo(mission, state.pillar.id, at))
        tx.raw_step("ANALYZE")


def _long_run(services: Services, calls: int) -> str:
    """A run of hours: model and tool calls by turns, every fiftieth failed."""
    todo_id, chat = fill(services.store, 10, 10)
    [run] = Runs(services.store).for_todo(todo_id)
    begin = system_clock() - timedelta(hours=6)
    turn = StoredTurn(
        new_id(), chat, None, "owner", "completed", timestamp(begin), timestamp(system_clock()), None, run.id
    )
    reply = json.dumps({"text": "I look at the next file. " * 10, "tokens": [9_000, 120], "cost": 0.01})
    with services.store.write() as tx:
        conversation_repository.add_turn(tx, turn)
        for number in range(calls):
            start, end = (timestamp(begin + timedelta(seconds=number + part)) for part in (0, 0.8))
            if number % 2:
                status, arguments = "error" if number % 50 == 49 else "success", '{"command": "make test"}'
                call = StoredCall(
                    new_id(), chat, turn.id, number, "run_command", arguments, None, status, None, None, "{}",
                    "", "", "12 passed\n" * 100, None, None, None, start, start, end,
                )  # fmt: skip
                call_repository.insert_call(tx, call)
            else:
                tx.run(TRACE, id=new_id(), chat=chat, turn=turn.id, output=reply, start=start, end=end)
        change = Change(
            f"run:{run.id}", chat, "bench", RunAction.SET_TURN, run.id, run.status, run.status, "work",
            {"turn_id": turn.id},
        )  # fmt: skip
        event_log.append(tx, change)
        tx.raw_step("ANALYZE")
    return run.id
