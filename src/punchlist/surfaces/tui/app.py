"""The terminal application: screens, what they ask for, and what changes in the database.

The application calls services in threads and is told about every write of any process by polling the database's change
counter. A turn runs in a process of its own, so closing or killing the application never harms it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Literal, ParamSpec, TypeVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.conversation_screen import ConversationScreen
from punchlist.surfaces.tui.home_screen import HomeScreen
from punchlist.surfaces.tui.screen_state import ConversationState, HomeRow, PendingApproval
from punchlist.surfaces.tui.theme import THEMES, choose_theme
from punchlist.surfaces.tui.todo_panel import TodoChange

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

P = ParamSpec("P")
T = TypeVar("T")
Severity = Literal["information", "warning", "error"]
MODES: Final = ("default", "auto-edit", "plan")
"""The modes that Shift+Tab goes through. `yolo` is set by `/mode` only."""
QUIT_SECONDS: Final = 2.0
REDUCED_MOTION: Final = "PUNCHLIST_REDUCED_MOTION"


class PunchlistApp(App[str]):
    TITLE = "punchlist"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt_or_quit", "Quit", id="quit_now", show=False, priority=True, system=True),
        Binding("ctrl+q", "leave", "Quit", id="leave", show=False, priority=True),
    ]

    def __init__(self, backend: Backend, *, session: str | None = None, goal: str | None = None) -> None:
        super().__init__()
        self.backend = backend
        self._first_session = session
        self._goal = goal
        self.reduced_motion = bool(os.environ.get(REDUCED_MOTION))
        self._quit_at = 0.0
        self._title = ""
        self.running_session: str | None = None

    def on_mount(self) -> None:
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = choose_theme(os.environ)
        if self.reduced_motion:
            self.animation_level = "none"
        self.push_screen(HomeScreen())
        if self._first_session is not None:
            self.open_conversation(self._first_session)
            if self._goal:
                self.submit(self._first_session, self._goal)
        self.run_worker(self._watch, thread=True, group="watch", name="changes")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # The names of meanings exist in every theme, also in Textual's own.
        return dict(THEMES["dark"].variables)

    # --- changes ------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Tell the screen about every write, by this process or another. Runs in a thread."""
        from punchlist.storage.change_watch import ChangeWatch

        worker = get_current_worker()
        with ChangeWatch(self.backend.services.store) as watch:
            while not worker.is_cancelled:
                if watch.wait(0.5) and not worker.is_cancelled:
                    self.call_from_thread(self._data_changed)

    def _data_changed(self) -> None:
        shown = (one for one in reversed(self.screen_stack) if isinstance(one, HomeScreen | ConversationScreen))
        screen = next(shown, None)
        if screen is not None:
            screen.data_changed()

    async def in_thread(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    def act(self, work: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a service in a thread. An error is shown; the screen follows from the change in the database."""

        async def run() -> None:
            try:
                await asyncio.to_thread(work, *args, **kwargs)
            except PunchlistError as error:
                self.say(str(error), "error")

        self.run_worker(run(), group="actions")

    def say(self, text: str, severity: Severity = "information") -> None:
        self.notify(visible_block(text), severity=severity, markup=False, timeout=6.0)

    # --- screens ------------------------------------------------------------------------------------------------

    def open_conversation(self, session: str | None) -> None:
        """Show a session; None for a new one."""
        id = session or self.backend.services.new_session()
        if isinstance(self.screen, ConversationScreen):
            self.switch_screen(ConversationScreen(id))
        else:
            self.push_screen(ConversationScreen(id))

    def action_home(self) -> None:
        if len(self.screen_stack) > 2:
            self.pop_screen()

    def show_waiting(self, count: int) -> None:
        """Show in the window's title how many requests wait."""
        self._set_title(f"({count}) punchlist" if count else "punchlist")

    def conversation_changed(self, state: ConversationState) -> None:
        self.running_session = state.session if state.is_running else None
        mark = f"({len(state.approvals)}) " if state.approvals else ""
        self._set_title(f"{mark}punchlist · {state.session}")

    def _set_title(self, title: str) -> None:
        driver = self._driver
        if title != self._title and driver is not None and not self.is_headless:
            self._title = title
            driver.write(f"\x1b]2;{visible(title)}\x07")

    # --- what the person does -----------------------------------------------------------------------------------

    def submit(self, session: str, text: str) -> None:
        """Give the agent a message: now if it is idle, else into the queue."""
        state = self.screen.state if isinstance(self.screen, ConversationScreen) else None
        if state is not None and state.is_running:
            self.act(self.backend.queue, session, text)
        else:
            self.act(self.backend.start, session, text)

    def interrupt(self, session: str) -> None:
        self.act(self.backend.interrupt, session)

    def change_todo(self, session: str, change: TodoChange) -> None:
        self.act(self.backend.change_todo, session, change)

    def answer_approval(
        self, approval: PendingApproval, answer: str, reason: str = "", arguments: Mapping[str, Any] | None = None
    ) -> None:
        self.act(self.backend.answer_approval, approval, answer, reason=reason, arguments=arguments)

    def answer_request(self, row: HomeRow, text: str) -> None:
        del row, text

    def change_mode(self) -> None:
        mode = self.backend.options.mode
        self.backend.options.mode = MODES[(MODES.index(mode) + 1) % len(MODES)] if mode in MODES else MODES[0]

    def run_slash(self, session: str, line: str) -> None:
        del session
        self.say(f"{line}: no commands yet", "warning")

    def open_search(self) -> None: ...

    def action_keys(self) -> None: ...

    def action_resume(self) -> None: ...

    def action_interrupt_or_quit(self) -> None:
        """The first Ctrl+C says what a second one does."""
        now = time.monotonic()
        if now - self._quit_at < QUIT_SECONDS:
            self.action_leave()
            return
        self._quit_at = now
        self.say("Press Ctrl+C again to quit. Running turns go on.")

    def action_leave(self) -> None:
        self.exit(self._farewell())

    def _farewell(self) -> str:
        return f"Session {visible(self.running_session)} goes on running." if self.running_session else ""
