"""The plans of this and earlier turns of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from punchlist.conversations.model import StoredTurn
from punchlist.surfaces.tui.display_text import assemble, cut, line
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.text_panel import TextPanel
from punchlist.surfaces.tui.theme import SIGNS, STYLES
from punchlist.views.todos import NumberedTodo

MAX_TURNS: Final = 30

Plans = Sequence[tuple[StoredTurn, Sequence[NumberedTodo]]]


class PlansScreen(TextPanel[Plans]):
    TITLE_TEXT = "Plans"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.PLANS)]

    def __init__(self, session: str) -> None:
        super().__init__()
        self._session = session

    def load(self) -> Plans:
        """Newest turn first."""
        services, scope = self.backend.services, self.backend.scope(self._session)
        turns = [turn for turn in services.conversations.turns(self._session) if turn.parent_turn_id is None]
        found = [(turn, services.todos.list(scope, turn.id).items) for turn in turns[:MAX_TURNS]]
        plans = [(turn, [item for item in items if item.list == "plan"]) for turn, items in found]
        return [(turn, items) for turn, items in plans if items]

    def lines(self, data: Plans, width: int) -> list[Content]:
        if not data:
            return [Content("No turn of this session has a plan.")]
        lines: list[Content] = []
        for turn, items in data:
            done = sum(not item.is_open for item in items)
            state = line(turn.end_reason or "running")
            lines.append(
                cut(
                    assemble((f"{turn.started_at[:16]}Z", "bold"), f"  {done}/{len(items)}  ", (state, "$quiet")), width
                )
            )
            lines += [_item(item, width) for item in items]
            lines.append(Content(""))
        return lines


def _item(item: NumberedTodo, width: int) -> Content:
    mark = f"  {item.mark}" if item.mark else ""
    outcome = f"  {line(item.outcome, 200)}" if item.outcome else ""
    sign = (f"  {SIGNS.get(item.status, '?')} ", STYLES.get(item.status, ""))
    return cut(assemble(sign, f"{item.number} {line(item.title)}", (mark, "$done"), (outcome, "$quiet")), width)
