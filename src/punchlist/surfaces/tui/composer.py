"""The prompt: text of several lines, history, completions, attachments, and the queue of messages above it.

The composer reports what the person wants; the application does it. Enter sends, or queues while a turn runs. Tab
accepts a completion while one is offered, otherwise it queues. Escape closes what is open, then interrupts; twice, it
asks for an earlier message.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import TextArea
from textual.worker import get_current_worker

from punchlist.conversations.model import QueuedMessage
from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.tui.completion import Completion, CompletionKind, CompletionToken, token_at
from punchlist.surfaces.tui.completion_popup import CompletionPopup
from punchlist.surfaces.tui.composer_source import ComposerSource
from punchlist.surfaces.tui.external_editor import edit_text, lent_terminal
from punchlist.surfaces.tui.key_table import KEYS, KeyScope, bindings
from punchlist.surfaces.tui.prompt_history import HistoryCursor, PromptHistory
from punchlist.surfaces.tui.prompt_text import PromptText
from punchlist.surfaces.tui.queue_panel import QueuePanel
from punchlist.surfaces.tui.screen_state import GoOn

PLACEHOLDER: Final = "What should be done?  / commands  @ files  # items"
DOUBLE_SECONDS: Final = 0.8
"""Two presses of Escape within this time ask for an earlier message."""
_SLASH: Final = re.compile(r"/[A-Za-z0-9_-]+(?:\s|\Z)")
_OWN_ACTIONS: Final = frozenset(action.name for action in KEYS if action.scope is KeyScope.COMPOSER)
_TITLES: Final = {
    CompletionKind.SLASH: "Commands",
    CompletionKind.PATH: "Files",
    CompletionKind.ITEM: "Items",
    CompletionKind.HISTORY: "Earlier prompts",
}


class Composer(Vertical):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.COMPOSER)]
    DEFAULT_CSS = "Composer { height: auto; }"

    running: var[bool] = var(False)
    """Whether a turn runs: then messages are queued."""
    go_on: var[GoOn] = var(GoOn.NOTHING)
    """What Enter on an empty prompt does."""

    class Submitted(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Queued(Submitted):
        """The message must be queued. Call `refresh_queue` when it is."""

    class GoOnRequested(Message):
        """Enter on an empty prompt while something can be continued."""

    class SlashEntered(Message):
        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Interrupted(Message):
        """Escape while a turn runs."""

    class RewindRequested(Message):
        """Escape twice: return to an earlier message."""

    class BackRequested(Message):
        """Left on an empty prompt."""

    class KeysRequested(Message):
        """`?` on an empty prompt."""

    def __init__(
        self,
        source: ComposerSource,
        history: PromptHistory,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._source = source
        self._history = history
        self._monotonic = monotonic
        self._recall: HistoryCursor | None = None
        self._search_draft: str | None = None
        self._editing: QueuedMessage | None = None
        self._escaped_at = float("-inf")
        self._token: CompletionToken | None = None
        self.queue = QueuePanel()
        self.popup = CompletionPopup()
        self.prompt = PromptText(PLACEHOLDER)

    def compose(self) -> ComposeResult:
        yield self.queue
        yield self.popup
        yield self.prompt

    def on_mount(self) -> None:
        self.refresh_queue()

    def watch_go_on(self, go_on: GoOn) -> None:
        self.queue.hint = "Enter on an empty prompt sends the first" if go_on is GoOn.DELIVER else ""

    # --- what the application calls -------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return self.prompt.text

    def show_host(self, host: str) -> None:
        """Say what a message does in the session of a third-party agent; empty if none runs."""
        text = f"{visible(host)} works here. What you send starts an agent of Punchlist" if host else PLACEHOLDER
        if self.prompt.placeholder != Content(text):
            self.prompt.placeholder = Content(text)

    def set_text(self, text: str) -> None:
        self._reset()
        self.prompt.set_prompt(text)

    def focus_prompt(self) -> None:
        self.prompt.focus()

    def refresh_queue(self) -> None:
        """Read the queued messages again."""
        self._in_thread(self._source.queued, self.queue.show, group="queue")

    # --- keys -----------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        del parameters
        if action not in _OWN_ACTIONS:
            return True
        if not self.prompt.has_focus:
            return False
        match action:
            case "previous":
                return self.popup.is_open or self.prompt.on_first_line
            case "next":
                return self.popup.is_open or (self.prompt.on_last_line and self._recall is not None)
            case "complete":
                return self.popup.is_open or bool(self.text.strip())
            case "back" | "help":
                return not self.text
            case "search_history" | "edit_queue":
                return None if self.unavailable_reason(action) else True
        return True

    def unavailable_reason(self, action: str) -> str | None:
        if action == "search_history" and not self._history.entries:
            return "no earlier prompts in this project"
        if action == "edit_queue" and not self.queue.messages:
            return "nothing is queued"
        if action == "complete" and not self.text.strip() and not self.popup.is_open:
            return "the prompt is empty"
        if action == "next" and self._recall is None and not self.popup.is_open:
            return "no later prompt"
        if action in ("back", "help") and self.text:
            return "the prompt is not empty"
        return None

    def action_send(self) -> None:
        chosen = self.popup.chosen
        if chosen is not None and self._token is not None:
            typed = self._token.text if self._token.kind is CompletionKind.SLASH else None
            if chosen.insert.strip() != (typed or "").strip():
                self._accept(chosen)
                if not (chosen.complete and self._token_kind is CompletionKind.SLASH):
                    return
        line = self.prompt.line_before_cursor
        if line.endswith("\\"):
            self.prompt.replace_token(len(line) - 1, "\n")
            return
        self._send(queue=self.running)

    def action_newline(self) -> None:
        self.prompt.insert_text("\n")

    def action_complete(self) -> None:
        if self._token_kind is CompletionKind.SLASH and not self.popup.is_open:
            self._offer_slash(self.text)
        if (chosen := self.popup.chosen) is not None:
            self._accept(chosen)
        elif self.text.strip():
            self._send(queue=self.running)

    def action_previous(self) -> None:
        if self.popup.is_open:
            self.popup.move(-1)
        elif self._recall is None and not self.text and self.queue.messages:
            self.action_edit_queue()
        else:
            self._walk_history(-1)

    def action_next(self) -> None:
        if self.popup.is_open:
            self.popup.move(1)
        else:
            self._walk_history(1)

    def action_search_history(self) -> None:
        if self._search_draft is None:
            self._search_draft = self.text
        self._offer_history()

    async def action_open_editor(self) -> None:
        try:
            edited = edit_text(self.prompt.expanded_text, os.environ, terminal=lambda: lent_terminal(self.app))
        except SuspendNotSupported:
            self.app.notify("This terminal cannot be lent to an editor.", severity="warning")
            return
        except PunchlistError as error:
            self.app.notify(visible_block(str(error)), severity="error", markup=False)
            return
        if edited is not None:
            self.prompt.pastes.clear()
            self.set_text(edited)

    def action_escape(self) -> None:
        now, before = self._monotonic(), self._escaped_at
        if self.popup.is_open or self._search_draft is not None:
            self._leave_search()
            self.popup.close()
        elif self._editing is not None:
            self._reset()
            self.prompt.clear_prompt()
        elif self.running:
            self.post_message(self.Interrupted())
            self._escaped_at = now
        elif now - before <= DOUBLE_SECONDS:
            self._escaped_at = float("-inf")
            self.post_message(self.RewindRequested())
        else:
            self._escaped_at = now

    def action_back(self) -> None:
        self.post_message(self.BackRequested())

    def action_help(self) -> None:
        self.post_message(self.KeysRequested())

    def action_edit_queue(self) -> None:
        self.popup.close()
        self.queue.focus()

    # --- sending --------------------------------------------------------------------------------------------

    def _send(self, *, queue: bool) -> None:
        text = self.prompt.expanded_text.strip()
        if not text:
            if self.go_on and self._editing is None:
                self.post_message(self.GoOnRequested())
            return
        if self._editing is not None:
            self._save_edit(self._editing, text)
            return
        self._history.add(text)
        self._reset()
        self.prompt.clear_prompt()
        if text.startswith("!") and text[1:].strip():
            self.post_message(self.SlashEntered(f"/shell {text[1:].strip()}"))
        elif _SLASH.match(text):
            self.post_message(self.SlashEntered(text))
        else:
            self.post_message(self.Queued(text) if queue else self.Submitted(text))

    def _save_edit(self, queued: QueuedMessage, text: str) -> None:
        def saved(_: None) -> None:
            self._reset()
            self.prompt.clear_prompt()
            self.refresh_queue()

        self._in_thread(lambda: self._source.edit_queued(queued.id, text), saved, group="edit")

    def _reset(self) -> None:
        self._recall = self._search_draft = self._editing = self._token = None
        self.popup.close()
        self.prompt.border_title = ""

    # --- history --------------------------------------------------------------------------------------------

    def _walk_history(self, step: int) -> None:
        if self._recall is None:
            self._recall = HistoryCursor(self._history.entries, self.text)
        text = self._recall.move(step)
        if text is None:
            return
        recall = self._recall
        self.prompt.set_prompt(text)
        if step < 0:
            # So that the next press of the key goes further back, also through prompts of several lines.
            self.prompt.move_cursor((0, len(self.prompt.document[0])))
        self._recall = recall

    def _offer_history(self) -> None:
        found = self._history.search(self.text)
        self._token = CompletionToken(CompletionKind.HISTORY, 0, self.text)
        entries = [Completion(entry, " ".join(entry.split())) for entry in found]
        self.popup.show(entries, _TITLES[CompletionKind.HISTORY])
        self.prompt.border_title = "Type to search, Enter takes it, Esc leaves" if found else "No earlier prompt fits"

    def _leave_search(self) -> None:
        if self._search_draft is not None:
            draft, self._search_draft = self._search_draft, None
            self.prompt.set_prompt(draft)
            self.prompt.border_title = ""

    # --- completions ----------------------------------------------------------------------------------------

    @property
    def _token_kind(self) -> CompletionKind | None:
        return self._token.kind if self._token is not None else None

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        if self._recall is not None:
            if self.text == self._recall.text:
                self.popup.close()
                return
            self._recall = None
        if self._search_draft is not None:
            self._offer_history()
            return
        self._token = token = token_at(self.prompt.line_before_cursor, first_line=self.prompt.on_first_line)
        if token is None:
            self.popup.close()
        elif token.kind is CompletionKind.SLASH and " " not in token.text:
            # Names need no database, so they are there before the next key.
            self._offer_slash(token.text)
        else:
            self._in_thread(partial(self._find, token), partial(self._offer, token), group="completion")

    def _offer_slash(self, line: str) -> None:
        token = CompletionToken(CompletionKind.SLASH, 0, line)
        self._token = token
        self._offer(token, self._find(token))

    def _find(self, token: CompletionToken) -> Sequence[Completion]:
        match token.kind:
            case CompletionKind.SLASH:
                return self._source.slash_completions(token.text)
            case CompletionKind.PATH:
                return self._source.paths(token.text)
            case _:
                return self._source.items(token.text)

    def _offer(self, token: CompletionToken, found: Sequence[Completion]) -> None:
        if token != self._token:
            return
        if [each.insert.strip() for each in found] == [token.text.strip()]:
            found = ()
        self.popup.show(found, _TITLES[token.kind])

    def _accept(self, chosen: Completion) -> None:
        token = self._token
        self.popup.close()
        if token is None:
            return
        if token.kind is CompletionKind.HISTORY:
            self._search_draft = None
            self._reset()
            self.prompt.set_prompt(chosen.insert)
        else:
            self.prompt.replace_token(token.start, chosen.insert)

    # --- the queue ------------------------------------------------------------------------------------------

    @on(QueuePanel.EditRequested)
    def _edit_queued(self, event: QueuePanel.EditRequested) -> None:
        event.stop()
        self._reset()
        self._editing = event.queued
        self.prompt.set_prompt(event.queued.content)
        self.prompt.border_title = f"Changing queued message {event.number}: Enter saves, Esc leaves it"
        self.prompt.focus()

    @on(QueuePanel.RemoveRequested)
    def _remove_queued(self, event: QueuePanel.RemoveRequested) -> None:
        event.stop()
        queued = event.queued
        self._in_thread(lambda: self._source.remove_queued(queued.id), lambda _: self.refresh_queue(), group="edit")

    @on(QueuePanel.Left)
    def _left_queue(self, event: QueuePanel.Left) -> None:
        event.stop()
        self.prompt.focus()

    # --- work outside of the event loop ---------------------------------------------------------------------

    def _in_thread(self, read: Callable[[], Any], then: Callable[[Any], None], *, group: str) -> None:
        """Call `read` in a thread and `then` with its result. A newer call of the group replaces an older one."""

        def work() -> None:
            try:
                result = read()
            except PunchlistError as error:
                self.app.call_from_thread(
                    self.app.notify, visible_block(str(error)), severity="error", timeout=10, markup=False
                )
                return
            if self.is_mounted and not get_current_worker().is_cancelled:
                self.app.call_from_thread(then, result)

        self.run_worker(work, group=group, exclusive=True, thread=True, exit_on_error=False)
