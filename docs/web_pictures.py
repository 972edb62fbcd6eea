"""`make pictures`: pages of mission control in Chromium, as PNG images."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from punchlist.missions.config.starter import STARTER

OUTPUT = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
SIZE = {"width": 1440, "height": 720}
PICTURES = {
    "board": "/missions/developer-experience/board",
    "mission": "/missions/developer-experience",
}
SECOND_PILLAR = {"name": "Test Reliability", "slug": "test-reliability", "description": "No test fails by chance."}
TODOS = [
    ("build-performance", "Replace babel by swc", ["-p", "high", "--deadline", "2030-03-01"]),
    ("build-performance", "Cache dependencies in CI", []),
    ("build-performance", "Split the main bundle", []),
    ("build-performance", "Profile the plugins", ["--backlog"]),
    ("test-reliability", "Quarantine tests that fail by chance", ["-p", "high"]),
    ("test-reliability", "Freeze the clock in the calendar's tests", ["--backlog"]),
]


def punchlist(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "punchlist", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


def prepare(folder: Path) -> None:
    """A project with a mission and some todos."""
    mission = json.loads(STARTER)
    mission["pillars"].append(SECOND_PILLAR)
    (folder / "mission.json").write_text(json.dumps(mission))
    punchlist(folder, "mission", "apply", "mission.json", "--yes")
    for value in (130, 124, 118, 101, 95, 88):
        punchlist(folder, "mission", "metric", "record", "developer-experience", "local-build-time", str(value))
    for pillar, title, options in TODOS:
        punchlist(folder, "mission", "todo", "create", "developer-experience", pillar, title, *options)


def take(browser: Browser, link: str) -> None:
    context = browser.new_context(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(link)
    page.wait_for_url(lambda url: "login" not in url)
    for name, path in PICTURES.items():
        page.goto(link.partition("/login")[0] + path)
        page.wait_for_load_state("load")
        page.screenshot(path=OUTPUT / f"{name}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "shop"
        (folder / ".git").mkdir(parents=True)
        os.environ["XDG_DATA_HOME"] = str(Path(name) / "data")
        os.environ["XDG_CONFIG_HOME"] = str(Path(name) / "config")
        prepare(folder)
        serve = [sys.executable, "-m", "punchlist", "serve", "--port", "0", "--no-worker"]
        with subprocess.Popen(serve, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                assert server.stdout is not None
                links = (re.search(r"http://\S+/login\S+", line) for line in server.stdout)
                link = next(found.group(0) for found in links if found)
                with sync_playwright() as playwright:
                    take(playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS), link)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
