"""`punchlist serve` as a process, and Chromium in front of it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
]
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
WAIT = 30_000
"""Milliseconds that a page may take to show something, on a busy machine."""


class Server:
    """One process of `punchlist serve`; it can be ended and started again on the same port."""

    def __init__(
        self, project: Path, environment: dict[str, str], *arguments: str, command: Sequence[str] = ("serve",)
    ) -> None:
        self._project, self._environment, self._arguments = project, environment, (*command, *arguments)
        self.port = 0
        self.link = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "punchlist", *self._arguments, "--port", str(self.port)]
        self._process = subprocess.Popen(
            command, cwd=self._project, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/login\?code=\S+", line):
                self.link, self.port = found.group(), int(found.group(1))
                return
        raise AssertionError(f"The server ended with {self._process.wait(10)} and printed no link.")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@contextmanager
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def log_in(context: BrowserContext, server: Server) -> Page:
    """The attention page of a person who used the login link; anything wrong on a page fails the test."""
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_url(f"{server.url}/")
    page.wait_for_selector("body.ready")
    return page


def has_chromium() -> bool:
    return os.access(CHROMIUM, os.X_OK)
