"""A mission todo in detail: facts, deadline, work, questions and the newest part of its execution chat (M15)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from punchlist.missions.config.policy import cadence_of
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.surfaces.figures import format_count, format_seconds
from punchlist.surfaces.tui.display_text import assemble, block, hang, line
from punchlist.surfaces.tui.entries import Entry
from punchlist.surfaces.tui.entry_lines import summary_line
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.board_lines import deadline_text, sign
from punchlist.surfaces.tui.panels.runs_screen import RunsScreen
from punchlist.surfaces.tui.panels.text_panel import TextPanel
from punchlist.surfaces.tui.stored_entries import entries_from
from punchlist.views.todo_detail import TodoDetail, read_detail
from punchlist.views.todo_transcript import read_newest

SHOWN_ENTRIES: Final = 30
SHOWN_RUNS: Final = 5

TodoPicture = tuple[TodoDetail, list[Entry]]


class TodoScreen(TextPanel[TodoPicture]):
    TITLE_TEXT = "Todo"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.TODO)]

    def __init__(self, todo_id: str) -> None:
        super().__init__()
        self._todo_id = todo_id

    def load(self) -> TodoPicture:
        store = self.backend.services.store
        detail = read_detail(store, self._todo_id)
        # Several messages can become one entry.
        transcript = read_newest(store, self._todo_id, limit=2 * SHOWN_ENTRIES)
        entries = entries_from(transcript.entries, lambda _: None)
        return detail, entries[-SHOWN_ENTRIES:]

    def lines(self, data: TodoPicture, width: int) -> list[Content]:
        detail, entries = data
        return [*_facts(self, detail, width), *_runs(detail, width), *_chat(entries, width)]

    def action_chat(self) -> None:
        if self.data is not None:
            self.app.open_conversation(self.data[0].conversation_id)

    def action_runs(self) -> None:
        self.app.push_screen(RunsScreen(todo_id=self._todo_id))


def _facts(screen: TodoScreen, detail: TodoDetail, width: int) -> Iterator[Content]:
    todo = detail.todo
    yield from hang(Content.styled(line(todo.title), "bold"), width, Content.styled(*sign(todo)))
    parts = [
        Content(f"{todo.status.value.replace('_', ' ')}  {todo.priority.value}  {detail.mission.slug}/{detail.pillar}")
    ]
    if todo.deadline is not None:
        parts.append(Content(f"deadline {line(todo.deadline)}"))
        if todo.status in OPEN:
            parts.append(deadline_text(todo.deadline, cadence_of(detail.mission).timezone, screen.backend.now()))
    yield Content("  ").join(parts)
    blocks = (
        ("Description", todo.description),
        ("Why", todo.justification),
        ("Done when", todo.completion_criteria),
        ("Outcome", todo.outcome or ""),
        ("Completed although its check failed", todo.override_reason or ""),
        *((f"Question ({one.status})", one.question) for one in detail.escalations),
        *((f"{one.kind.capitalize()} of {line(one.agent)}", one.text) for one in detail.requests),
    )
    for heading, text in blocks:
        if text:
            yield from (Content(""), Content.styled(heading, "$quiet"))
            for part in block(text).split("\n"):
                yield from hang(Content(part), width, "  ")


def _runs(detail: TodoDetail, width: int) -> Iterator[Content]:
    if not detail.runs:
        return
    used = detail.usage
    tokens = f"{format_count(used.input_tokens + used.output_tokens)} tokens"
    yield from (
        Content(""),
        Content.styled(f"Runs: {used.runs}, {tokens}, {used.calls} calls, {format_seconds(used.seconds)}", "$quiet"),
    )
    for run in detail.runs[:SHOWN_RUNS]:
        yield assemble(f"  {run.id[-8:]}  ", (run.status.value, "$working"), f"  {line(run.why, max(width - 30, 10))}")


def _chat(entries: list[Entry], width: int) -> Iterator[Content]:
    yield from (Content(""), Content.styled("Execution chat (c opens all of it)", "$quiet"))
    yield from (Content("").join([Content("  "), summary_line(entry, width - 2)]) for entry in entries)
    if not entries:
        yield Content("  No work yet.")
