"""Waiting approvals, answered by one key.

A key answers only if it was pressed after the question could be read: keys that were typed before it appeared, and for
`ARM_SECONDS` afterwards, do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from punchlist.surfaces.figures import age_of, format_age
from punchlist.surfaces.tui.approval_lines import (
    ALWAYS_KEYS,
    approval_body,
    approval_head,
    approval_hint,
    approval_keys,
)
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.screen_state import PendingApproval

ARM_SECONDS: Final = 0.4
_FRAME: Final = 4
"""Rows of the border, and those around the question."""
MAX_REASON: Final = 2_000
NO_RULE: Final = {
    "tool": "this tool is asked about every time",
    "prefix": "this call has no command prefix that could be allowed safely",
    "server": "this tool is not of an MCP server",
}
"""Why an "always" answer is not available."""


class ApprovalPanel(Vertical, can_focus=True):
    DEFAULT_CSS = """
    ApprovalPanel {
        height: auto; border: round $needs-you; padding: 0 1; background: $background; display: none;
    }
    ApprovalPanel.-shown { display: block; }
    ApprovalPanel:blur { border: round $border-blurred; }
    ApprovalPanel > Static { height: auto; }
    ApprovalPanel > VerticalScroll { height: auto; margin: 1 0; scrollbar-size-vertical: 1; }
    ApprovalPanel > Input { display: none; border: none; height: 1; padding: 0; background: $panel; }
    ApprovalPanel > Input.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.APPROVALS)]

    class Answered(Message):
        """`answer` is `once`, `tool`, `prefix`, `server`, `edit` or `deny`."""

        def __init__(self, approval: PendingApproval, answer: str, reason: str = "") -> None:
            super().__init__()
            self.approval = approval
            self.answer = answer
            self.reason = reason

    class Unavailable(Message):
        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    arm_seconds: ClassVar[float] = ARM_SECONDS

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.room: Callable[[], int] | None = None
        """How many rows the panel may take; None in a conversation, which has parts of fixed height."""
        self._approvals: Sequence[PendingApproval] = ()
        self._chosen = 0
        self._now: datetime | None = None
        self._age = ""
        self._width = 0
        self._shown_at = float("inf")
        self._key_time = 0.0

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="approval-head")
        with VerticalScroll(can_focus=False):
            yield Static(markup=False, id="approval-body")
        yield Static(markup=False, id="approval-keys")
        yield Input(placeholder="Why not? The agent reads it.", max_length=MAX_REASON, compact=True)

    @property
    def approval(self) -> PendingApproval | None:
        return self._approvals[self._chosen] if self._chosen < len(self._approvals) else None

    def show(self, approvals: Sequence[PendingApproval], now: datetime) -> None:
        """Show these approvals. The chosen one stays chosen while it waits."""
        before = self.approval
        self._approvals, self._now = approvals, now
        places = [place for place, one in enumerate(approvals) if before and one.call_id == before.call_id]
        self._chosen = places[0] if places else 0
        self.set_class(bool(approvals), "-shown")
        if self.approval is None:
            self._shown_at = float("inf")
            self._close_input()
        elif before is None or not places:
            self._close_input()
            self._arm()
        self._draw()

    def _arm(self) -> None:
        """Accept answers only after this question was painted."""
        self._shown_at = float("inf")

        def painted() -> None:
            self._shown_at = events.Event().time

        self.call_after_refresh(painted)

    def _draw(self) -> None:
        approval = self.approval
        if approval is None or self._now is None:
            return
        self._width = width = max(self.content_region.width, 30)
        self.query_one(VerticalScroll).styles.max_height = self._body_height(approval)
        self._age = format_age(age_of(approval.asked_at, self._now))
        self._draw_head(approval)
        self.query_one("#approval-body", Static).update(Content("\n").join(approval_body(approval, width - 1)))
        self._draw_keys(approval)

    def _body_height(self, approval: PendingApproval) -> int:
        """What is left for the question, so that the keys below it stay visible."""
        if self.room is None:
            return max(self.screen.size.height - 17 - len(approval.always), 3)
        around = len(approval_head(approval, 1, 1, "", self._width)) + len(approval_keys(approval, self._width))
        return max(self.room() - around - _FRAME, 2)

    def _draw_head(self, approval: PendingApproval) -> None:
        head = approval_head(approval, self._chosen + 1, len(self._approvals), self._age, self._width)
        self.query_one("#approval-head", Static).update(Content("\n").join(head))

    def _draw_keys(self, approval: PendingApproval) -> None:
        """The keys that answer; without the focus, the key that gives it."""
        has_focus = self.has_focus_within
        keys = approval_keys(approval, self._width) if has_focus else approval_hint(self._width)
        self.query_one("#approval-keys", Static).update(Content("\n").join(keys))

    def show_age(self, now: datetime) -> None:
        if self.approval is not None and format_age(age_of(self.approval.asked_at, now)) != self._age:
            self._now, self._age = now, format_age(age_of(self.approval.asked_at, now))
            self._draw_head(self.approval)

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        if self.approval is not None and self.is_mounted:
            self._draw_keys(self.approval)

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    # --- what the person does -------------------------------------------------------------------------------------

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

    def unavailable_reason(self, action: str) -> str | None:
        answer = action.removeprefix("always_")
        if action.startswith("always_") and self.approval is not None and answer not in self.approval.always:
            return NO_RULE[answer]
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
        if answer in ALWAYS_KEYS and answer not in approval.always:
            self.post_message(self.Unavailable(f"{ALWAYS_KEYS[answer]}: {NO_RULE[answer]}."))
        else:
            self.post_message(self.Answered(approval, answer))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        approval, reason = self.approval, event.value.strip()
        self._close_input()
        if approval is not None:
            self.post_message(self.Answered(approval, "deny", reason))

    def action_previous(self) -> None:
        self._choose(-1)

    def action_next(self) -> None:
        self._choose(1)

    def _choose(self, step: int) -> None:
        if len(self._approvals) > 1:
            self._chosen = (self._chosen + step) % len(self._approvals)
            self._arm()
            self._draw()

    def action_scroll_back(self) -> None:
        self._scroll(-1)

    def action_scroll_on(self) -> None:
        self._scroll(1)

    def _scroll(self, step: int) -> None:
        body = self.query_one(VerticalScroll)
        body.scroll_relative(y=step * max(body.size.height - 1, 1), animate=False)

    def _close_input(self) -> None:
        field = self.query_one(Input)
        field.value = ""
        if field.has_class("-shown"):
            field.remove_class("-shown")
            self.focus()
