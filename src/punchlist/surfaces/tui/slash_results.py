"""Carries out what a slash command returned: one case for each of the eight kinds (S11)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from punchlist.surfaces.tui.dialogs import ChoiceDialog, ConfirmDialog, LineDialog, TextDialog
from punchlist.surfaces.tui.screen_state import Severity
from punchlist.surfaces.tui.slash_commands.model import (
    ConfirmAction,
    ConfirmShellCommands,
    DialogName,
    LoadHistory,
    MessageLevel,
    OpenDialog,
    QuitApplication,
    ScheduleTool,
    ShowMessage,
    SlashContext,
    SlashResult,
    SubmitPrompt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from punchlist.surfaces.tui.app import PunchlistApp

MODE_MEANINGS: Final = (
    ("plan", "only read; nothing is changed"),
    ("default", "ask before files change and commands run"),
    ("auto-edit", "change files; ask before commands run"),
    ("yolo", "never ask"),
)
_SEVERITIES: Final[dict[MessageLevel, Severity]] = {
    MessageLevel.INFO: "information",
    MessageLevel.WARNING: "warning",
    MessageLevel.ERROR: "error",
}
TOAST_LINES: Final = 3
"""A longer message opens a dialog."""


class SlashResults:
    def __init__(self, app: PunchlistApp, session: str) -> None:
        self._app = app
        self._session = session

    async def run(self, line: str, context: SlashContext) -> None:
        """Run a line, and carry out its result."""
        app = self._app
        result = await app.in_thread(app.slash_registry().run, line, context)
        await self.carry_out(result, context)

    async def carry_out(self, result: SlashResult, context: SlashContext) -> None:
        app = self._app
        match result:
            case ScheduleTool(tool, arguments, approved):
                app.call_tool(self._session, tool, arguments, approved=approved)
            case ShowMessage():
                self._show_message(result)
            case QuitApplication():
                app.action_leave()
            case OpenDialog(dialog, argument):
                self._open(dialog, argument)
            case LoadHistory(session):
                app.open_conversation(session)
            case SubmitPrompt(prompt):
                app.submit(self._session, prompt)
            case ConfirmShellCommands():
                await self._confirm_commands(result, context)
            case ConfirmAction():
                await self._confirm_action(result, context)

    async def _confirm_commands(self, asked: ConfirmShellCommands, context: SlashContext) -> None:
        app = self._app
        if await app.push_screen_wait(ConfirmDialog("Run these commands?", "\n".join(asked.commands))):
            output = await app.in_thread(app.backend.run_commands, asked.commands)
            await self.run(asked.line, replace(context, shell_output=output))

    async def _confirm_action(self, asked: ConfirmAction, context: SlashContext) -> None:
        if await self._app.push_screen_wait(ConfirmDialog(asked.question, asked.detail)):
            await self.run(asked.line, replace(context, confirmed=True))

    def _show_message(self, message: ShowMessage) -> None:
        if message.is_report or len(message.text.splitlines()) > TOAST_LINES:
            self._app.push_screen(TextDialog("punchlist", message.text))
        else:
            self._app.say(message.text, _SEVERITIES[message.level])

    # --- dialogs ------------------------------------------------------------------------------------------------

    def _open(self, dialog: DialogName, argument: str) -> None:
        app = self._app
        own: dict[DialogName, Callable[[], None]] = {
            DialogName.APPROVALS: lambda: app.on_conversation("focus_approvals"),
            DialogName.TODOS: lambda: app.on_conversation("focus_todos"),
            DialogName.COMMANDS: app.action_command_palette,
            DialogName.GO_ON: lambda: app.turns.go_on(self._session),
            DialogName.KEYS: app.action_show_keys,
            DialogName.MODE: lambda: self._mode(argument),
            DialogName.MODEL: lambda: self._model(argument),
        }
        if dialog in own:
            own[dialog]()
        else:
            app.open_panel(dialog, argument, self._session)

    def _mode(self, argument: str) -> None:
        app = self._app
        if argument:
            app.set_mode(argument)
            return
        app.push_screen(ChoiceDialog("Mode", MODE_MEANINGS, app.backend.options.mode), app.set_mode)

    def _model(self, argument: str) -> None:
        app = self._app
        if argument:
            app.set_model(argument)
            return
        app.push_screen(LineDialog("Model", app.backend.model, "anthropic:…, openai:…, ollama:…"), app.set_model)
