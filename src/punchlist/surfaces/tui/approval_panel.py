"""Waiting approvals, answered by one key.

A key answers only if it was pressed after the question could be read: keys that were typed before it appeared, and for
`ARM_SECONDS` afterwards, do nothing. Letters that make a text go into the prompt (`typed_keys.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from punchlist.surfaces.figures import age_of, format_age
from punchlist.surfaces.tui.approval_lines import (
    ALWAYS_KEYS,
    ApprovalLayout,
    approval_hint,
    approval_layout,
    chosen_line,
    confirm_lines,
    edited_approval,
)
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.screen_state import PendingApproval
from punchlist.surfaces.tui.typed_keys import TEXT_SECONDS, KeyReader

ARM_SECONDS: Final = 0.4
MAX_REASON: Final = 2_000
NO_RULE: Final = {
    "tool": "this tool is asked about every time",
    "prefix": "this call has no command prefix that could be allowed safely",
    "server": "this tool is not of an MCP server",
}
"""Why an "always" answer is not available."""
EDITED: Final = "the arguments are edited, and always would be about the call as it was; y runs it as shown"
NOT_SEEN: Final = "scroll down (PgDn) to read what it would allow"
_ANSWERS: Final = {
    "once": "once",
    "always_tool": "tool",
    "always_prefix": "prefix",
    "always_server": "server",
    "edit": "edit",
    "deny": "deny",
    "deny_with_reason": "reason",
}
"""The actions that answer."""


class _Body(VerticalScroll):
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if isinstance(self.parent, ApprovalPanel):
            self.parent.see_rows()


class ApprovalPanel(Vertical, can_focus=True):
    DEFAULT_CSS = """
    ApprovalPanel {
        height: auto; border: round $needs-you; padding: 0 1; background: $background; display: none;
    }
    ApprovalPanel.-shown { display: block; }
    ApprovalPanel.-bare, ApprovalPanel.-bare:blur { border: none; }
    ApprovalPanel.-dense > VerticalScroll { margin: 0; }
    ApprovalPanel:blur { border: round $border-blurred; }
    ApprovalPanel > Static { height: auto; }
    ApprovalPanel > VerticalScroll { height: auto; margin: 1 0; scrollbar-size-vertical: 1; }
    ApprovalPanel > Input { display: none; border: none; height: 1; padding: 0; background: $panel; }
    ApprovalPanel > Input.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.APPROVALS)]

    class Answered(Message):
        """`answer` is `once`, `tool`, `prefix`, `server`, `edit` or `deny`."""

        def __init__(self, panel: ApprovalPanel, approval: PendingApproval, answer: str, reason: str = "") -> None:
            super().__init__()
            self.panel = panel
            self.approval = approval
            self.answer = answer
            self.reason = reason

    class Unavailable(Message):
        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    arm_seconds: ClassVar[float] = ARM_SECONDS
    text_seconds: ClassVar[float] = TEXT_SECONDS

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.room: Callable[[], int] = lambda: self.screen.size.height
        """How many rows the panel may take."""
        self.take_text: Callable[[str], None] = lambda _: None
        """Receives letters that were no answer."""
        self._approvals: Sequence[PendingApproval] = ()
        self._edited: dict[str, Mapping[str, Any]] = {}
        """Arguments that the person has edited, by call."""
        self._chosen = 0
        self._now: datetime | None = None
        self._age = ""
        self._width = 0
        self._layout: ApprovalLayout | None = None
        self._seen: set[int] = set()
        """The rows of the body that were visible."""
        self._shown_at = float("inf")
        self._key_time = 0.0
        self._keys = KeyReader()
        self._held: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="approval-head")
        with _Body(can_focus=False):
            yield Static(markup=False, id="approval-body")
        yield Static(markup=False, id="approval-keys")
        yield Input(placeholder="Why not? The agent reads it.", max_length=MAX_REASON, compact=True)

    @property
    def approval(self) -> PendingApproval | None:
        return self._approvals[self._chosen] if self._chosen < len(self._approvals) else None

    def show(self, approvals: Sequence[PendingApproval], now: datetime) -> None:
        """Show these approvals. The chosen one stays chosen while it waits."""
        before = self.approval
        waiting = {one.call_id for one in approvals}
        self._edited = {id: arguments for id, arguments in self._edited.items() if id in waiting}
        self._approvals, self._now = [self._as_edited(one) for one in approvals], now
        places = [place for place, one in enumerate(approvals) if before and one.call_id == before.call_id]
        self._chosen = places[0] if places else 0
        self.set_class(bool(approvals), "-shown")
        if self.approval is None:
            self._shown_at = float("inf")
            self._close_input()
        elif before is None or not places:
            self._close_input()
            self._seen.clear()
            self.arm()
        self._draw()

    def show_edited(self, call_id: str, arguments: Mapping[str, Any]) -> None:
        """Ask about the call as the person has edited it. Nothing runs before that is answered."""
        self._edited[call_id] = arguments
        self._approvals = [self._as_edited(one) for one in self._approvals]
        self._seen.clear()
        self.arm()
        self._draw()

    def _as_edited(self, approval: PendingApproval) -> PendingApproval:
        arguments = self._edited.get(approval.call_id)
        return approval if arguments is None else edited_approval(approval, arguments)

    def arm(self) -> None:
        """Accept answers only after this question was painted."""
        self._shown_at = float("inf")
        self._release()

        def painted() -> None:
            self._shown_at = events.Event().time
            self.see_rows()

        self.call_after_refresh(painted)

    def _draw(self) -> None:
        approval = self.approval
        if approval is None or self._now is None:
            return
        self._width = width = max(self.outer_size.width - 4, 16) if self.outer_size.width else 76
        self._age = format_age(age_of(approval.asked_at, self._now))
        room = self.room() - self.query_one(Input).has_class("-shown")
        before = self._layout
        self._layout = layout = approval_layout(
            approval, width, room, self._chosen + 1, len(self._approvals), self._age
        )
        if before is None or before.always_rows != layout.always_rows:
            self._seen.clear()
        self.set_class(not layout.is_spaced, "-dense")
        self.set_class(not layout.is_framed, "-bare")
        head = self.query_one("#approval-head", Static)
        head.display = bool(layout.head)
        head.update(Content("\n").join(layout.head))
        self.query_one(_Body).styles.height = layout.rows
        self.query_one("#approval-body", Static).update(Content("\n").join(layout.body))
        self._draw_keys()
        self.call_after_refresh(self.see_rows)

    def fit(self) -> None:
        """Draw again if there is another number of rows for the panel."""
        if self.approval is not None:
            self._draw()

    def see_rows(self) -> None:
        """Note which rows of the body are on the screen."""
        if self._layout is not None and self.display and self.outer_size.height:
            first = round(self.query_one(_Body).scroll_y)
            self._seen.update(range(first, first + self._layout.rows))

    def _draw_keys(self) -> None:
        """The keys that answer; without the focus, the key that gives it."""
        layout, approval, width = self._layout, self.approval, self._width
        if layout is None or approval is None:
            return
        if not self.has_focus_within:
            keys: Sequence[Content] = approval_hint(width)
        elif self._keys.confirming:
            covered = approval.always.get(self._keys.answer, "")
            keys = confirm_lines(self._keys.answer, covered, width, max(len(layout.keys), 1))
        elif self._keys.held and self._is_armed:
            keys = chosen_line(self._keys.answer, width)
        else:
            keys = layout.keys
        # As many rows as before, so that nothing moves below the fingers.
        rows = len(layout.keys) if self.has_focus_within else len(keys)
        self.query_one("#approval-keys", Static).update(
            Content("\n").join([*keys, *[Content("")] * (rows - len(keys))])
        )

    def show_age(self, now: datetime) -> None:
        if self.approval is not None and format_age(age_of(self.approval.asked_at, now)) != self._age:
            self._now = now
            self._draw()

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        if not value:
            self._release()
        if self.approval is not None and self.is_mounted:
            self._draw_keys()

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    # --- what the person does -------------------------------------------------------------------------------------

    def take_key(self, event: events.Key) -> bool:
        """Handle a key before any binding; whether it was one for this panel.

        The application calls this in the order of the keys, so that a text keeps its letters in order.
        """
        self._key_time = event.time
        letter = event.character if event.is_printable else None
        if self.approval is None:
            return False
        if self._keys.confirms(letter, event.key):
            self._answer_held()
        elif self._keys.confirming and event.key == "escape":
            self._release()
        elif letter is None:
            self._release()
            return False
        elif self._keys.held:
            self._take_text(self._keys.text_with(letter))
        elif (answer := self._answer_of(event.key)) is not None:
            self._hold(letter, answer, event.time)
        elif self._has_binding(event.key):
            return False
        else:
            self._take_text(letter)
        return True

    def _hold(self, letter: str, answer: str, at: float) -> None:
        """An answer, unless another letter follows at once. "Always" needs the key twice."""
        why = self.unavailable_reason(f"always_{answer}") if answer in ALWAYS_KEYS else None
        confirm = answer in ALWAYS_KEYS and why is None and self._is_armed
        self._keys.hold(letter, answer, at, confirm=confirm)
        self._draw_keys()
        if not confirm:
            self._held = self.set_timer(self.text_seconds, self._answer_held)

    def _answer_held(self) -> None:
        answer = self._keys.answer
        self._release()
        if answer == "reason":
            self.action_deny_with_reason()
        elif answer:
            self._answer(answer)

    def _take_text(self, text: str) -> None:
        self._release()
        self.take_text(text)

    def _release(self) -> None:
        """Forget a key that was held."""
        if self._held is not None:
            self._held.stop()
            self._held = None
        if self._keys.held:
            self._keys.clear()
            self._draw_keys()

    @property
    def holds_key(self) -> bool:
        """Whether a key was pressed that is not known yet to be an answer."""
        return bool(self._keys.held)

    def _answer_of(self, key: str) -> str | None:
        """What a key answers, with the keys of the user's file."""
        return next((_ANSWERS[action] for action in self._actions_of(key) if action in _ANSWERS), None)

    def _has_binding(self, key: str) -> bool:
        """Whether a key does something here or on the screen."""
        return any(key in bindings.key_to_bindings for _, bindings in self.screen._binding_chain)

    def _actions_of(self, key: str) -> list[str]:
        return [
            binding.action
            for node, bindings in self.screen._binding_chain
            if node is self
            for binding in bindings.key_to_bindings.get(key, ())
        ]

    def on_key(self, event: events.Key) -> None:
        self._key_time = event.time
        if event.key == "escape" and self.query_one(Input).has_class("-shown"):
            event.stop()
            event.prevent_default()
            self._close_input()

    def action_once(self) -> None:
        self._answer("once")

    def action_always_tool(self) -> None:
        self._answer("tool")

    def action_always_prefix(self) -> None:
        self._answer("prefix")

    def action_always_server(self) -> None:
        self._answer("server")

    def action_edit(self) -> None:
        self._answer("edit")

    def action_deny(self) -> None:
        self._answer("deny")

    def action_deny_with_reason(self) -> None:
        if self._is_armed:
            self.query_one(Input).add_class("-shown")
            self.query_one(Input).focus()
            self._draw()

    def unavailable_reason(self, action: str) -> str | None:
        answer, approval = action.removeprefix("always_"), self.approval
        if action.startswith("always_") and approval is not None:
            if answer not in approval.always:
                return EDITED if approval.is_edited else NO_RULE[answer]
            rows = self._layout.always_rows.get(answer) if self._layout is not None else None
            if rows is not None and not self._seen.issuperset(rows):
                return NOT_SEEN
        if action in ("previous", "next") and len(self._approvals) < 2:
            return "only one waits"
        return None

    @property
    def _is_armed(self) -> bool:
        return self.approval is not None and self._key_time >= self._shown_at + self.arm_seconds

    def _answer(self, answer: str) -> None:
        approval = self.approval
        if approval is None or not self._is_armed:
            return
        if answer in ALWAYS_KEYS and (why := self.unavailable_reason(f"always_{answer}")) is not None:
            self.post_message(self.Unavailable(f"{ALWAYS_KEYS[answer]}: {why}."))
        else:
            self.post_message(self.Answered(self, approval, answer))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        approval, reason = self.approval, event.value.strip()
        self._close_input()
        if approval is not None:
            self.post_message(self.Answered(self, approval, "deny", reason))

    def action_previous(self) -> None:
        self._choose(-1)

    def action_next(self) -> None:
        self._choose(1)

    def _choose(self, step: int) -> None:
        if len(self._approvals) > 1:
            self._chosen = (self._chosen + step) % len(self._approvals)
            self._seen.clear()
            self.arm()
            self._draw()

    def action_scroll_back(self) -> None:
        self._scroll(-1)

    def action_scroll_on(self) -> None:
        self._scroll(1)

    def _scroll(self, step: int) -> None:
        body = self.query_one(_Body)
        body.scroll_relative(y=step * max(body.size.height - 1, 1), animate=False)

    def _close_input(self) -> None:
        field = self.query_one(Input)
        field.value = ""
        if field.has_class("-shown"):
            field.remove_class("-shown")
            self.focus()
            self._draw()
