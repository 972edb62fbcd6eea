"""The lines of one entry of a conversation. Pure functions of the entry, the width and whether it is expanded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from textual.content import Content

from punchlist.agent.message_kinds import ENDING
from punchlist.surfaces.figures import format_seconds
from punchlist.surfaces.tui.diff_lines import diff_lines, looks_like_diff
from punchlist.surfaces.tui.display_text import assemble, block, cut, hang, justified, line
from punchlist.surfaces.tui.entries import CallEntry, Entry, ListEntry, NoteEntry, ReplyEntry, SaidEntry
from punchlist.surfaces.tui.list_changes import list_change_words
from punchlist.surfaces.tui.markdown_lines import markdown_lines
from punchlist.surfaces.tui.theme import SIGNS, STYLES
from punchlist.views.call_text import call_diff

CALL_SIGNS: Final = {
    "validating": "pending",
    "scheduled": "pending",
    "awaiting_approval": "needs_you",
    "executing": "in_progress",
    "success": "completed",
    "error": "failed",
    "cancelled": "cancelled",
}
LIST_TOOLS: Final = frozenset({"create_todo", "list_todo", "start_todo", "complete_todo", "wait_todo", "TodoWrite"})
"""Their calls are drawn quietly: the list itself shows what they change."""
COMMAND_TOOLS: Final = frozenset({"run_command", "Bash"})
LIVE_LINES: Final = 6
LIVE_CHARACTERS: Final = 2_000
FAILED_LINES: Final = 4
MAX_LINES: Final = 400
"""Of an expanded call."""
MAX_LEFT: Final = 8
"""Open items that are named at the end of a turn."""
_EDGE: Final = "  │ "


def entry_lines(
    entry: Entry,
    width: int,
    *,
    expanded: bool = False,
    now: float | None = None,
    markdown: Callable[[str, int], list[Content]] = markdown_lines,
) -> list[Content]:
    """The lines of an entry, followed by a blank one where the next entry needs distance."""
    match entry:
        case SaidEntry():
            return [*_said(entry, width), Content("")]
        case ReplyEntry():
            return [*_reply(entry, width, markdown), Content("")]
        case CallEntry():
            return _call(entry, width, expanded, now)
        case NoteEntry():
            return [*_note(entry, width, expanded), Content("")]
        case ListEntry():
            return [*_list(entry, width, expanded), Content("")]


def _said(entry: SaidEntry, width: int) -> list[Content]:
    prompt = Content.styled("❯ ", "bold $working")
    lines: list[Content] = []
    for number, part in enumerate(block(entry.text).split("\n")):
        lines += hang(Content.styled(part, "bold"), width, prompt if number == 0 else Content("  "))
    return lines


def _reply(entry: ReplyEntry, width: int, markdown: Callable[[str, int], list[Content]]) -> list[Content]:
    if not entry.depth:
        return markdown(entry.text, width)
    name = Content.styled(f"↳ {line(entry.agent, 40)}", "$quiet")
    return [name, *(_indented(text) for text in markdown(entry.text, width - 2))]


def _indented(content: Content) -> Content:
    return content.pad_left(2)


def _note(entry: NoteEntry, width: int, expanded: bool) -> list[Content]:
    if entry.kind == ENDING:
        return _ending(entry, width, expanded)
    return _quiet(entry.text, width, expanded, entry.depth)


def _quiet(text: str, width: int, expanded: bool, depth: int) -> list[Content]:
    dot = Content.styled("  · " if depth else "· ", "$quiet")
    parts = block(text.strip()).split("\n")
    if not expanded:
        return [cut(Content("").join([dot, Content.styled(parts[0], "$quiet")]), width)]
    lines: list[Content] = []
    for number, part in enumerate(parts):
        lines += hang(Content.styled(part, "$quiet"), width, dot if number == 0 else " " * dot.cell_length)
    return lines


def _ending(entry: NoteEntry, width: int, expanded: bool) -> list[Content]:
    """How a turn ended, and what it left open. Of a worker the first line; its turn says the rest."""
    first, *left = block(entry.text.strip()).split("\n")
    reason = first.removeprefix("Ended as ").partition(":")[0]
    style = {"error": "$failed", "cancelled": "$quiet"}.get(reason, "$needs-you")
    sign = {"error": SIGNS["failed"], "cancelled": "·"}.get(reason, SIGNS["waiting"])
    if entry.depth:
        first, left = f"worker: {first.removesuffix(' Not finished:')}", []
    indent = "  " if entry.depth else ""
    lines = hang(Content.styled(first, style), width, Content.styled(f"{indent}{sign} ", style))
    shown = left if expanded else left[:MAX_LEFT]
    for part in shown:
        lines += hang(Content(part.removeprefix("- ")), width, Content.styled(f"  {SIGNS['pending']} ", "$quiet"))
    if len(left) > len(shown):
        lines.append(Content.styled(f"    … {len(left) - len(shown):,} more", "$quiet"))
    return lines


def _list(entry: ListEntry, width: int, expanded: bool) -> list[Content]:
    words = list_change_words(entry.before, entry.after)
    _, *items = entry.after.split("\n")
    return _quiet("\n".join([f"list: {words}", *items]), width, expanded, entry.depth)


# --- calls ------------------------------------------------------------------------------------------------


def _call(entry: CallEntry, width: int, expanded: bool, now: float | None) -> list[Content]:
    indent = 2 * min(entry.depth, 1)
    room = width - indent
    lines = [call_header(entry, room, expanded=expanded, now=now)]
    if expanded:
        lines += call_body(entry, room)
    elif entry.status == "executing":
        lines += _output(entry.output[-LIVE_CHARACTERS:], room, last=LIVE_LINES)
    elif entry.status == "error" or (entry.status == "cancelled" and line(entry.output) not in lines[0].plain):
        # The reason of a denial is read in full.
        lines += _output(shortened(entry.output, FAILED_LINES), room)
    return [content.pad_left(indent) for content in lines] if indent else lines


def call_header(entry: CallEntry, width: int, *, expanded: bool, now: float | None) -> Content:
    """`✓ run_command  sh check.sh            0.3 s`"""
    state = CALL_SIGNS.get(entry.status, "pending")
    changes_list = entry.tool in LIST_TOOLS
    style = "$quiet" if changes_list else "" if entry.depth else "bold"
    head = assemble((f"{SIGNS[state]} ", STYLES[state]), (line(entry.tool, 60), style), "  ")
    subject = Content.styled(line(list_change(entry) or entry.subject, 300), "$quiet" if changes_list else "")
    outcome = Content.styled(_outcome(entry, expanded), "$quiet")
    if entry.edited_by:
        edited = Content.styled(f"edited by {line(entry.edited_by, 40)}", "$working")
        outcome = Content("  ").join([edited, outcome]) if outcome.plain else edited
    time = Content.styled(_time(entry, now), "$quiet")
    # A long command must not hide that it waits.
    parts = [outcome, subject] if entry.status == "awaiting_approval" else [subject, outcome]
    return justified(head + Content("  ").join([part for part in parts if part.plain]), time, width)


def _outcome(entry: CallEntry, expanded: bool) -> str:
    match entry.status:
        case "awaiting_approval":
            return "needs your approval"
        case "success" if not expanded and not list_change(entry):
            parts = [part for part in entry.output.splitlines() if part.strip()]
            # What a command printed last says how it went.
            place = -1 if entry.tool in COMMAND_TOOLS else 0
            return line(parts[place], 200) if parts else ""
        case "cancelled" if not expanded:
            return line(entry.output or "cancelled", 200)
    return ""


def list_change(entry: CallEntry) -> str:
    """What a call of a list tool changed; empty for other calls, and for calls that have not succeeded."""
    if entry.status != "success":
        return ""
    match entry.tool, _object(entry.output), entry.arguments:
        case "create_todo", {"created": [*created]}, _:
            return f"{len(created)} planned: {'; '.join(str(each.get('title', '')) for each in created)}"
        case "complete_todo", {"title": title, "retry": True, "outcome": outcome}, _:
            return f"“{title}” failed and will be retried: {outcome}"
        case "complete_todo", {"title": title, "outcome": outcome}, _:
            return f"“{title}”: {outcome}"
        case "start_todo" | "wait_todo", {"title": title}, _:
            return f"“{title}”"
        case "list_todo", {"summary": {"total": total}}, _:
            return f"{total} tasks"
        case "TodoWrite", _, {"todos": [*todos]}:
            done = sum(isinstance(each, dict) and each.get("status") == "completed" for each in todos)
            return f"{done}/{len(todos)} done"
    return ""


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _time(entry: CallEntry, now: float | None) -> str:
    if entry.seconds is not None:
        return format_seconds(entry.seconds)
    return format_seconds(now) if now is not None and entry.status == "executing" else ""


def call_body(entry: CallEntry, width: int) -> list[Content]:
    """Arguments or the diff they describe, then the output."""
    diff = call_diff(entry.tool, entry.arguments)
    if diff:
        lines = _framed(diff_lines(diff, width - len(_EDGE)))
    else:
        lines = _framed(
            [
                part
                for name, value in entry.arguments.items()
                for part in hang(
                    Content(_value(value)), width - len(_EDGE), Content.styled(f"{line(name)}: ", "$quiet")
                )
            ]
        )
    output = _output(entry.output, width, first=MAX_LINES)
    separator = [Content.styled("  ├╴", "$rule")] if lines and output else []
    return [*lines[:MAX_LINES], *separator, *output]


def _value(value: Any) -> str:
    return block(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr))


def _output(text: str, width: int, *, first: int | None = None, last: int | None = None) -> list[Content]:
    if not text.strip():
        return []
    if looks_like_diff(text):
        return _framed(diff_lines(text, width - len(_EDGE))[: first or MAX_LINES])
    parts = block(text.rstrip("\n")).split("\n")
    if last is not None:
        shown, left = parts[-last:], 0
    else:
        shown = parts[:first]
        left = len(parts) - len(shown)
    lines = [piece for part in shown for piece in hang(Content(part), width - len(_EDGE))[:MAX_LINES]]
    lines = lines[-last:] if last is not None else lines
    if left:
        lines.append(Content.styled(f"… {left:,} more line{'s' if left > 1 else ''}", "$quiet"))
    return _framed(lines)


def shortened(text: str, count: int) -> str:
    """The first line and the last ones: what failed, and what was printed last."""
    parts = [part for part in text.strip().splitlines() if part.strip()]
    # The line that says how many are left out takes the room of one.
    if len(parts) <= count + 1:
        return "\n".join(parts)
    left = len(parts) - count
    return "\n".join([parts[0], f"… {left:,} more line{'s' if left > 1 else ''}", *parts[-count + 1 :]])


def _framed(lines: list[Content]) -> list[Content]:
    edge = Content.styled(_EDGE, "$rule")
    return [Content("").join([edge, content]) for content in lines]


def summary_line(entry: Entry, width: int) -> Content:
    """One line about an entry, for previews."""
    match entry:
        case CallEntry():
            return call_header(entry, width, expanded=False, now=None)
        case SaidEntry():
            return cut(assemble(("❯ ", "bold $working"), line(entry.text)), width)
        case ReplyEntry():
            return cut(Content(line(entry.text)), width)
        case NoteEntry():
            return cut(assemble((f"· {line(entry.text)}", "$quiet")), width)
        case ListEntry():
            return cut(assemble((f"· list: {line(list_change_words(entry.before, entry.after))}", "$quiet")), width)
