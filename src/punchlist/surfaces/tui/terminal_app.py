"""What the application needs of a terminal: early keys, its title, toasts that do not cover the prompt, how it ends."""

from __future__ import annotations

import os
import sys
import time
from bisect import insort
from collections.abc import Callable
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeGuard

from rich.text import Text
from textual import events
from textual.app import App
from textual.notifications import Notification, Notify

from punchlist.kernel.text import visible, visible_block

if TYPE_CHECKING:
    from textual.driver import Driver

    from punchlist.surfaces.tui.screen_state import Severity

TOAST_SECONDS: Final = 6.0
READ_SECONDS: Final = 1.0
"""A toast that was on the screen for this long is removed by the next key."""
MAX_TOASTS: Final = 2
_NEVER_HELD: Final = ("ctrl+c", "ctrl+q")


class TerminalApp(App[str]):
    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._window_title = ""
        self._held: list[events.Event] = []
        """Keys and pastes for a screen that is not there yet."""

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        if sys.platform == "win32" or found.__name__ != "LinuxDriver":
            return found
        from punchlist.surfaces.tui.terminal_driver import TerminalDriver

        return TerminalDriver

    def set_window_title(self, title: str) -> None:
        driver = self._driver
        if title != self._window_title and driver is not None and not self.is_headless:
            self._window_title = title
            driver.write(f"\x1b]2;{visible(title)}\x07")

    # --- toasts -------------------------------------------------------------------------------------------------

    def say(self, text: str, severity: Severity = "information") -> None:
        self.notify(visible_block(text), severity=severity, markup=False, timeout=TOAST_SECONDS)

    def _on_notify(self, event: Notify) -> None:
        """Show the newest toasts, each text once."""
        same = [shown for shown in self._notifications if shown.message == event.notification.message]
        others = [shown for shown in self._notifications if shown not in same]
        self._remove_toasts([*same, *others[: len(others) - MAX_TOASTS + 1]])

    # --- keys ---------------------------------------------------------------------------------------------------

    @property
    def input_since(self) -> float:
        """Since when the screen takes keys and pastes; infinite while it is not there yet."""
        return 0.0

    async def release_input(self) -> None:
        """Give the screen what was typed before it was there."""
        while self._held and self.input_since < inf:
            await self._take(self._held.pop(0))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.MouseEvent) and self.input_since == inf:
            return
        if not self._is_early(event):
            await self._take(event)
            return
        # A forwarded one went to the screen that an earlier key has left. It is given to the new one as a new event.
        kept = event.copy() if isinstance(event, events.Key) else events.Paste(event.text)
        kept.time = event.time
        insort(self._held, kept, key=attrgetter("time"))
        self.call_later(self.release_input)

    def _is_early(self, event: events.Event) -> TypeGuard[events.Key | events.Paste]:
        if not isinstance(event, (events.Key, events.Paste)) or getattr(event, "key", "") in _NEVER_HELD:
            return False
        return event.time < self.input_since if event.is_forwarded else self.input_since == inf or bool(self._held)

    async def _take(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded and self._notifications:
            now = time.time()
            self._remove_toasts([shown for shown in self._notifications if now - shown.raised_at >= READ_SECONDS])
        if isinstance(event, events.Key) and not event.is_forwarded:
            take_key: Callable[[events.Key], bool] | None = getattr(self.focused, "take_key", None)
            if take_key is not None and take_key(event):
                return
        await super().on_event(event)

    def _remove_toasts(self, toasts: list[Notification]) -> None:
        for toast in toasts:
            self._unnotify(toast, refresh=False)
        if toasts:
            self._refresh_notifications()

    # --- the end ------------------------------------------------------------------------------------------------

    def _fatal_error(self) -> None:
        """Textual would print the traceback with the values of all locals, which may be secrets."""
        from punchlist.surfaces.tui.crash_log import crash_sentence, write_crash

        error = sys.exception() or self._exception
        if error is not None and not self._exit_renderables:
            log = write_crash(error, os.environ)
            self._exit_renderables.append(Text(f"punchlist: {crash_sentence(error, log)} Running turns go on."))
        self._close_messages_no_wait()
