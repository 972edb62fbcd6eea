"""How `punchlist todos` shows the lists of a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.render import ICONS, NO_TODOS, render_frame
from punchlist.kernel.text import one_line, visible
from punchlist.surfaces.cli.context import format_time, supports_color
from punchlist.surfaces.figures import percent
from punchlist.verification.model import CheckOutcome

if TYPE_CHECKING:
    from punchlist.plan.usage import PlanTodoUsage
    from punchlist.views.todos import NumberedTodo, TodoList

_ICONS: Final[dict[str, str]] = {status.value: icon for status, icon in ICONS.items()}
MAX_OUTCOME_LENGTH: Final = 200
MAX_CHECK_LENGTH: Final = 60
_COLORS: Final = {"✓": "32", "▶": "33;1", "○": "2", "✗": "2", "!": "31;1"}
_ICON: Final = re.compile(rf"^(│ *\d+ )([{''.join(_COLORS)}])")


def todos_box(todos: TodoList, columns: int) -> list[str]:
    """The numbered items in a frame, or a line that there are none."""
    if not todos.items:
        return [NO_TODOS]
    digits = max(len(str(item.number)) for item in todos.items)
    both = len({item.list for item in todos.items}) > 1
    labels = [(f"{item.number:>{digits}} {_icon(item)}", _label(item, both)) for item in todos.items]
    return [_colored(line) for line in render_frame(labels, _progress(todos), columns)]


def todos_text(todos: TodoList) -> str:
    """The items as lines, for output that is not a terminal."""
    if not todos.items:
        return NO_TODOS
    digits = max(len(str(item.number)) for item in todos.items)
    both = len({item.list for item in todos.items}) > 1
    lines = [f"  {item.number:>{digits}} {_icon(item)} {_label(item, both)}" for item in todos.items]
    return "\n".join(["Todo list updated:", *lines])


def todos_json(todos: TodoList, usage: Mapping[str, PlanTodoUsage] | None = None) -> dict[str, Any]:
    shown = todos.as_json()
    for item in shown["items"]:
        if usage and item["id"] in usage:
            item["costs"] = usage[item["id"]].as_json()
    return shown


def usage_lines(todos: TodoList, usage: Mapping[str, PlanTodoUsage]) -> list[str]:
    lines = []
    for item in todos.items:
        if used := usage.get(item.id):
            tokens = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
            lines.append(f"{item.number:>3}  {used.seconds:.1f} s, {tokens}, {len(used.evidence)} calls")
    return lines


class TodosView:
    """The lists of a session, for `--watch`."""

    def __init__(self, load: Callable[[], TodoList]) -> None:
        self.load = load

    def lines(self, value: TodoList, columns: int) -> Sequence[str]:
        return todos_box(value, columns)

    def text(self, value: TodoList) -> str:
        return todos_text(value)

    def json(self, value: TodoList) -> Any:
        return todos_json(value)


def _icon(item: NumberedTodo) -> str:
    return _ICONS.get(item.status, "?")


def _label(item: NumberedTodo, both: bool) -> str:
    notes = [f"waits for {'; for '.join(item.waits_for)}"] if item.waits_for else []
    notes += _verification_notes(item)
    if item.claim:
        notes.append(f"claimed by {item.claim.holder} until {format_time(item.claim.lease_until)}")
    if item.outcome:
        notes.append(one_line(item.outcome, MAX_OUTCOME_LENGTH))
    if both and item.list == "checklist":
        notes.append("checklist")
    return visible(" ".join(item.label.split("\n")) + (f" ({', '.join(notes)})" if notes else ""))


def _verification_notes(item: NumberedTodo) -> list[str]:
    """The mark of a completed item, or the check of an open one."""
    if item.mark is not None:
        return [item.mark.value]
    check, result = item.verification.check, item.verification.result
    if check is None or not item.is_open:
        return []
    failed = " failed" if result is not None and result.outcome is CheckOutcome.FAILED else ""
    return [f"check{failed}: {one_line(check.description, MAX_CHECK_LENGTH)}"]


def _progress(todos: TodoList) -> str:
    summary, (completed, total) = todos.summary, todos.progress
    dropped = summary.get("dropped", 0)
    cancelled = f", {summary['cancelled']} cancelled" if summary["cancelled"] else ""
    left = f", {dropped} dropped" if dropped else ""
    return f"Progress: {completed}/{total} ({percent(completed, total)}%){cancelled}{left}"


def _colored(line: str) -> str:
    if not supports_color():
        return line
    return _ICON.sub(lambda match: f"{match[1]}\x1b[{_COLORS[match[2]]}m{match[2]}\x1b[0m", line)
