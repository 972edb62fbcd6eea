"""The terminal application: screens, what they ask for, and what changes in the database.

The application calls services in threads and is told about every write of any process (`views/live_hub.py`). A turn
runs in a process of its own, so closing or killing the application never harms it.

The first frame needs only Home. The rest is imported in a thread after it was painted.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final, ParamSpec, TypeVar, cast

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.screen import ModalScreen

from punchlist.errors import ConfigError, PunchlistError, StoreError
from punchlist.kernel.text import visible
from punchlist.surfaces.tui.data_screen import DataScreen
from punchlist.surfaces.tui.home_screen import HomeScreen
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.refresh import RETRY_SECONDS
from punchlist.surfaces.tui.terminal_app import TerminalApp
from punchlist.surfaces.tui.theme import NO_COLOR, THEMES, choose_theme
from punchlist.surfaces.tui.turn_control import TurnControl

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from punchlist.surfaces.tui.approval_panel import ApprovalPanel
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.composer import Composer
    from punchlist.surfaces.tui.conversation_screen import ConversationScreen
    from punchlist.surfaces.tui.entries import CallEntry
    from punchlist.surfaces.tui.peek import Peek
    from punchlist.surfaces.tui.screen_state import ConversationState, HomeRow, PendingApproval
    from punchlist.surfaces.tui.slash_commands.model import DialogName, SlashContext
    from punchlist.surfaces.tui.slash_commands.registry import SlashRegistry
    from punchlist.surfaces.tui.todo_panel import TodoEdit

P = ParamSpec("P")
T = TypeVar("T")
MODES: Final = ("default", "auto-edit", "plan")
"""The modes that Shift+Tab goes through. `yolo` is set by `/mode` only."""
QUIT_SECONDS: Final = 2.0
FAREWELL_SECONDS: Final = 2.0
REDUCED_MOTION: Final = "PUNCHLIST_REDUCED_MOTION"


def _slash_provider() -> type[Provider]:
    from punchlist.surfaces.tui.palette import SlashProvider

    return SlashProvider


def import_the_rest() -> None:
    """Import what the application needs after its first frame."""
    for name in ("backend", "conversation_screen", "peek", "slash_results", "slash_commands.builtin"):
        import_module(f"punchlist.surfaces.tui.{name}")


class PunchlistApp(TerminalApp):
    TITLE = "punchlist"
    CSS_PATH = "app.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_slash_provider}
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyScope.APP),
        Binding("ctrl+c", "interrupt_or_quit", "Quit", id="quit_now", show=False, priority=True, system=True),
        Binding("ctrl+q", "leave", "Quit", id="leave", show=False, priority=True),
    ]

    def __init__(
        self, open_backend: Callable[[], Backend], *, session: str | None = None, goal: str | None = None
    ) -> None:
        """`session` opens a conversation, with a `goal` to begin with; otherwise the application begins on Home."""
        # Without this, Textual replaces colours by shades of grey.
        super().__init__(ansi_color=True if os.environ.get(NO_COLOR) else None)
        # Before the styles are computed for the first time.
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = choose_theme(os.environ)
        self.backend: Backend
        self.is_ready = False
        """Whether there is a backend."""
        self._open_backend = open_backend
        self._first_session = session
        self._goal = goal
        self.turns = TurnControl(self)
        self.reduced_motion = bool(os.environ.get(REDUCED_MOTION))
        self._quit_at = 0.0
        self._slash_commands: SlashRegistry | None = None

    def on_mount(self) -> None:
        if self.reduced_motion:
            self.animation_level = "none"
        self.push_screen(HomeScreen())
        self.call_after_refresh(lambda: self.run_worker(self._start(), name="start"))

    async def _start(self) -> None:
        await asyncio.to_thread(import_the_rest)
        self.backend = await asyncio.to_thread(self._open_backend)
        self._use_keys_of_user()
        self.is_ready = True
        if (screen := self._shown) is not None:
            screen.start()
        if self._first_session is not None:
            self.open_conversation(self._first_session)
            if self._goal:
                self.submit(self._first_session, self._goal)
        await self.release_input()
        self.run_worker(self._follow(), group="live", name="live")
        self.run_worker(self._load_commands(), group="commands")

    def _use_keys_of_user(self) -> None:
        from punchlist.surfaces.tui.keymap import load_user_keys

        keys = load_user_keys(os.environ)
        self.set_keymap(keys.textual_keymap)
        for problem in keys.problems:
            self.say(problem, "warning")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # The names of meanings exist in every theme, also in Textual's own.
        return dict(THEMES["dark"].variables)

    @property
    def input_since(self) -> float:
        if not self.is_ready:
            return inf
        return self.conversation.started_at if self.conversation is not None else 0.0

    # --- changes ------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Give the screen every event and all streamed text, of this process and others."""
        from punchlist.views.live_text import LiveText

        while True:
            try:
                subscription = await asyncio.to_thread(self.backend.services.live.subscribe)
                break
            except StoreError as error:
                self.say(str(error), "error")
                await asyncio.sleep(RETRY_SECONDS)
        async with subscription:
            self._data_changed()
            while not subscription.closed:
                items = await subscription.batch()
                texts = [item for item in items if isinstance(item, LiveText)]
                screen = self._shown
                if texts and screen is not None:
                    screen.add_live(texts)
                if len(texts) < len(items):
                    self._data_changed()

    @property
    def _shown(self) -> DataScreen | None:
        """The screen below all dialogs."""
        return next((one for one in reversed(self.screen_stack) if isinstance(one, DataScreen)), None)

    @property
    def conversation(self) -> ConversationScreen | None:
        """The conversation that is shown, if one is."""
        screen = self._shown
        # Any other screen of data is a conversation, and its module is imported by then.
        return None if screen is None or isinstance(screen, HomeScreen) else cast("ConversationScreen", screen)

    def _data_changed(self) -> None:
        if (screen := self._shown) is not None:
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

    # --- screens ------------------------------------------------------------------------------------------------

    def open_conversation(self, session: str | None, at: int | None = None) -> None:
        """Show a session; None for a new one. `at` is the position of a message in it."""
        from punchlist.surfaces.tui.conversation_screen import ConversationScreen

        id = session or self.backend.services.new_session()
        while isinstance(self.screen, ModalScreen):
            self.pop_screen()
        if self.conversation is not None:
            self.switch_screen(ConversationScreen(id, at))
        else:
            self.push_screen(ConversationScreen(id, at))

    def action_home(self) -> None:
        if (conversation := self.conversation) is not None:
            self.pop_screen()
            if isinstance(self.screen, HomeScreen):
                self.screen.returned_from(conversation.session)

    def show_waiting(self, count: int) -> None:
        """Show in the window's title how many requests wait."""
        self.set_window_title(f"({count}) punchlist" if count else "punchlist")

    def conversation_changed(self, state: ConversationState) -> None:
        mark = f"({len(state.approvals)}) " if state.approvals else ""
        self.set_window_title(f"{mark}punchlist · {state.session}")

    # --- what the person does -----------------------------------------------------------------------------------

    def submit(self, session: str, text: str) -> None:
        self.turns.submit(session, text)

    def interrupt(self, session: str) -> None:
        self.act(self.backend.interrupt, session)

    def change_todo(self, session: str, change: TodoEdit) -> None:
        self.act(self.backend.change_todo, session, change)

    def answer_approval(self, panel: ApprovalPanel, approval: PendingApproval, answer: str, reason: str = "") -> None:
        if answer == "edit":
            self._edit_arguments(panel, approval)
        else:
            self.act(self.backend.answer_approval, approval, answer, reason=reason)

    def _edit_arguments(self, panel: ApprovalPanel, approval: PendingApproval) -> None:
        """Edit the arguments in `$EDITOR`, or in a dialog where it cannot be started, and ask about the edited call."""
        from punchlist.surfaces.tui.arguments_text import parse_arguments
        from punchlist.surfaces.tui.dialogs import ArgumentsDialog
        from punchlist.surfaces.tui.external_editor import edit_text, lent_terminal

        text = json.dumps(dict(approval.arguments), indent=2, ensure_ascii=False)

        def edited(arguments: dict[str, Any] | None) -> None:
            if arguments is not None and panel.is_mounted:
                panel.show_edited(approval.call_id, arguments)

        try:
            written = edit_text(text + "\n", os.environ, suffix=".json", terminal=lambda: lent_terminal(self))
        except (SuspendNotSupported, ConfigError):
            self.push_screen(ArgumentsDialog(f"Arguments of {visible(approval.tool)}", text), edited)
            return
        # Keys that were typed into the editor's last moments answer nothing.
        panel.arm()
        if written is None or written.strip() == text:
            return
        arguments, problem = parse_arguments(written)
        if arguments is None:
            self.say(problem, "error")
            self.push_screen(ArgumentsDialog(f"Arguments of {visible(approval.tool)}", written), edited)
        else:
            edited(arguments)

    def answer_request(self, row: HomeRow, text: str) -> None:
        self.act(self.backend.answer_request, row, text)

    def change_mode(self) -> None:
        mode = self.backend.options.mode
        self._set_options(mode=MODES[(MODES.index(mode) + 1) % len(MODES)] if mode in MODES else MODES[0])

    def _set_options(self, **chosen: str) -> None:
        self.backend.set_options(**chosen)
        self.act(self.backend.share_options, self.conversation.session if self.conversation is not None else "")

    def call_tool(self, session: str, tool: str, arguments: Mapping[str, Any], *, approved: bool = False) -> None:
        """Make a call of the person; its card is part of the history while the application runs."""

        def show(entry: CallEntry) -> None:
            self.call_from_thread(self._show_call, session, entry)

        self.act(self.backend.call_tool, session, tool, arguments, show, approved=approved)

    def _show_call(self, session: str, entry: CallEntry) -> None:
        if self.conversation is not None and self.conversation.session == session:
            self.conversation.history.extend([entry])

    # --- slash commands -----------------------------------------------------------------------------------------

    async def _load_commands(self) -> None:
        """Read the command files; names are completed without a database from then on."""
        from punchlist.surfaces.tui.slash_commands.builtin import open_registry

        self._slash_commands, problems = await asyncio.to_thread(open_registry, self.backend.services, os.environ)
        for problem in problems:
            self.say(problem, "warning")

    def slash_registry(self) -> SlashRegistry:
        from punchlist.surfaces.tui.slash_commands.builtin import BUILT_IN
        from punchlist.surfaces.tui.slash_commands.registry import SlashRegistry

        return self._slash_commands or SlashRegistry(BUILT_IN)

    def slash_context(self, session: str) -> SlashContext:
        from punchlist.surfaces.tui.slash_commands.model import SlashContext

        state = self.conversation.state if self.conversation is not None else None
        running = state is not None and state.is_running
        backend = self.backend
        return SlashContext(backend.services, backend.scope(session), backend.options.mode, backend.model, running)

    def make_composer(self, session: str) -> Composer:
        from punchlist.surfaces.tui.composer import Composer
        from punchlist.surfaces.tui.composer_source import SessionSource
        from punchlist.surfaces.tui.prompt_history import PromptHistory

        backend = self.backend
        source = SessionSource(
            backend.services, backend.scope(session), self.slash_registry, lambda: self.slash_context(session)
        )
        history = PromptHistory.of_project(backend.services.workspace, os.environ)
        return Composer(source, history, id="composer")

    def make_peek(self) -> Peek:
        from punchlist.surfaces.tui.peek import Peek

        return Peek(id="peek")

    def run_slash(self, session: str, line: str) -> None:
        from punchlist.surfaces.tui.slash_results import SlashResults

        self.run_worker(SlashResults(self, session).run(line, self.slash_context(session)), group="slash")

    def run_or_write(self, name: str, *, needs_argument: bool) -> None:
        """Run a command in the conversation that is shown; one that needs an argument is written into the prompt."""
        screen = self.conversation
        if screen is not None and needs_argument:
            screen.composer.set_text(f"{name} ")
            screen.composer.focus_prompt()
        elif screen is not None:
            self.run_slash(screen.session, name)
        else:
            self.run_slash(self.backend.services.current_session(), name)

    def on_conversation(self, action: str) -> None:
        """Run an action of the conversation that is shown."""
        if self.conversation is not None:
            getattr(self.conversation, f"action_{action}")()

    def set_mode(self, mode: str | None) -> None:
        if mode is not None:
            self._set_options(mode=mode)
            self.say(f"The mode of the next turn is {mode}.")
            self._data_changed()

    def set_model(self, model: str | None) -> None:
        if model is not None:
            self._set_options(model=model)
            self.say(f"The model of the next turn is {model}.")
            self._data_changed()

    def open_panel(self, dialog: DialogName, argument: str, session: str) -> None:
        """Open a panel of its own."""
        from punchlist.surfaces.tui.panels.open_panel import open_panel

        self.run_worker(open_panel(self, dialog, argument, session), group="panel")

    def action_show_keys(self) -> None:
        from punchlist.surfaces.tui.key_sheet import show_keys

        # Toasts would cover the first keys.
        self.clear_notifications()
        show_keys(self)

    def unavailable_reason(self, action: str) -> str | None:
        return "open a conversation first" if action == "app.copy_mode" and self.conversation is None else None

    def action_copy_mode(self) -> None:
        from punchlist.surfaces.tui.copy_screen import CopyScreen, transcript_text

        if self.conversation is None:
            self.say("Open a conversation first; copy mode shows its text.", "warning")
        else:
            self.push_screen(CopyScreen(transcript_text(self.conversation.history.entries)))

    # --- quitting -----------------------------------------------------------------------------------------------

    def action_interrupt_or_quit(self) -> None:
        """The first Ctrl+C says what a second one does."""
        now = time.monotonic()
        if now - self._quit_at < QUIT_SECONDS:
            self.action_leave()
            return
        self._quit_at = now
        self.say("Press Ctrl+C again to quit. Running turns go on.")

    def action_leave(self) -> None:
        self.run_worker(self._leave(), group="leave", exclusive=True)

    async def _leave(self) -> None:
        """Quit, and say what goes on running. A database that does not answer does not hold the person up."""
        farewell = ""
        if self.is_ready:
            with suppress(PunchlistError, TimeoutError):
                async with asyncio.timeout(FAREWELL_SECONDS):
                    farewell = await asyncio.to_thread(self.backend.farewell)
        self.exit(farewell)
