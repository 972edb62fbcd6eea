"""`make pictures`: every page of `punchlist demo serve` in Chromium: light, dark, and in the width of a phone.

`board.png`, `mission.png` and `attention-phone.png` are shown in README and docs; the others are in `pictures/pages`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

OUTPUT = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
MISSION = "/missions/developer-experience"
SESSION = "release-1-4"
SECONDS = 300


@dataclass(frozen=True)
class Look:
    name: str
    width: int
    height: int
    scheme: str


LOOKS = (
    Look("light", 1440, 900, "light"),
    Look("dark", 1440, 900, "dark"),
    Look("phone", 360, 740, "light"),
)
SHOWN = {"board-light": "board", "mission-light": "mission", "attention-phone": "attention-phone"}
"""Pictures in README and docs."""


@contextmanager
def demo() -> Iterator[str]:
    """The rehearsed mission in the browser. Yields the link that logs in."""
    command = [sys.executable, "-u", "-m", "punchlist", "demo", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            links = (re.search(r"http://\S+/login\S+", line) for line in server.stdout)
            yield next(found.group(0) for found in links if found)
        finally:
            server.send_signal(signal.SIGINT)


def items(page: Page, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(f"async () => (await (await fetch('/api/v1{path}')).json()).items")
    return found


def add_session(page: Page) -> str:
    """A session with a list, as beside a third-party agent; the rehearsal has only chats of a mission."""
    page.evaluate(
        """async ([session, titles]) => {
            const headers = {"Content-Type": "application/json", "X-CSRF-Token": document.body.dataset.csrf};
            const body = JSON.stringify({titles});
            const told = await fetch(`/api/v1/conversations/${session}/todos`, {method: "POST", headers, body});
            if (!told.ok) throw new Error(await told.text());
        }""",
        [SESSION, ["Write the notes of the release", "Tag it", "Tell the support"]],
    )
    return SESSION


def prepare(page: Page, base: str) -> dict[str, str]:
    """Wait until the agents have asked, start a todo, and return the addresses of the pages."""
    page.goto(f"{base}{MISSION}/board")
    end = monotonic() + SECONDS
    while len(items(page, "/inbox")) < 4:
        if monotonic() > end:
            raise TimeoutError("The rehearsed agents did not ask.")
        page.wait_for_timeout(500)
    todos, runs = items(page, f"{MISSION}/todos"), items(page, "/runs")
    todo = next(each["id"] for each in todos if each["title"].startswith("Profile the build"))
    reported = next(each for each in runs if each["kind"] == "execute" and each["toolCalls"])
    worked = next(each for each in runs if each["kind"] == "execute" and each["status"] in ("done", "waiting"))
    return {
        "attention": "/",
        "mission": MISSION,
        "board": f"{MISSION}/board",
        "drawer": f"{MISSION}/board?todo={todo}",
        "todo": f"/todos/{todo}",
        "evidence": f"/todos/{reported['todoId']}/evidence",
        "new-todo": f"{MISSION}/new",
        "new-mission": "/missions/new",
        "chats": f"{MISSION}/chats",
        "chat": f"/chats/{reported['conversationId']}",
        "session-list": f"/chats/{add_session(page)}/todos",
        "runs": "/runs",
        "run": f"/runs/{worked['id']}",
        "turn": f"/turns/{worked['turnId']}",
        "flow": f"{MISSION}/flow",
        "history": f"{MISSION}/replay",
        "mission-settings": f"{MISSION}/settings",
        "conversations": "/conversations",
        "agents": "/agents",
        "search": "/search?q=tests",
        "settings": "/settings",
    }


def take(context: BrowserContext, base: str, addresses: dict[str, str], look: Look) -> None:
    page = context.new_page()
    for name, path in addresses.items():
        page.goto(base + path)
        page.wait_for_load_state("load")
        page.evaluate("() => document.fonts.ready")
        picture = f"{name}-{look.name}"
        file = OUTPUT / f"{SHOWN[picture]}.png" if picture in SHOWN else OUTPUT / "pages" / f"{picture}.png"
        page.screenshot(path=file)


def take_login(browser: Browser, base: str, look: Look) -> None:
    """Of a browser that is not logged in."""
    size = {"width": look.width, "height": look.height}
    context = browser.new_context(viewport=size, color_scheme=look.scheme)  # type: ignore[arg-type]
    take(context, base, {"login": "/login"}, look)
    context.close()


def take_all(browser: Browser, link: str) -> None:
    base = link.partition("/login")[0]
    first = browser.new_context()
    page = first.new_page()
    page.goto(link)
    page.wait_for_url(lambda url: "login" not in url)
    addresses, state = prepare(page, base), first.storage_state()
    for look in LOOKS:
        size = {"width": look.width, "height": look.height}
        context = browser.new_context(viewport=size, color_scheme=look.scheme, storage_state=state)  # type: ignore[arg-type]
        take(context, base, addresses, look)
        context.close()
        take_login(browser, base, look)


def main() -> None:
    shutil.rmtree(OUTPUT / "pages", ignore_errors=True)
    (OUTPUT / "pages").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        os.environ["XDG_DATA_HOME"] = str(Path(name) / "data")
        os.environ["XDG_CONFIG_HOME"] = str(Path(name) / "config")
        with demo() as link:
            take_all(playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS), link)


if __name__ == "__main__":
    main()
