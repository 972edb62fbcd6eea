"""The line that always tells model, mode, continuation, tokens, cost, context and waiting approvals (C15)."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.content import Content
from textual.widgets import Static

from punchlist.surfaces.tui.display_text import assemble, line
from punchlist.surfaces.tui.figures import format_cost, format_count, format_seconds
from punchlist.surfaces.tui.screen_state import TurnFigures
from punchlist.surfaces.tui.theme import SPINNER, STILL

HIGH_CONTEXT = 0.8


@dataclass(frozen=True, slots=True)
class StatusValues:
    figures: TurnFigures = field(default_factory=TurnFigures)
    mode: str = "default"
    waiting: int = 0
    working: bool = False
    """A process works on the turn."""
    open: bool = False
    """The turn has not ended."""
    seconds: float = 0.0
    queued: int = 0
    unseen: int = 0
    """New entries below what is on the screen."""
    problem: str = ""
    """Why the screen may be out of date."""


def status_content(values: StatusValues, width: int, frame: int | None = None) -> Content:
    """At most two lines. `frame` animates the sign of a working turn."""
    figures = values.figures
    sign = STILL if frame is None else SPINNER[frame % len(SPINNER)]
    if values.waiting:
        state = assemble(("◆ ", "bold $needs-you"), (f"{values.waiting} waiting", "$needs-you"))
    elif values.working:
        state = assemble((f"{sign} ", "$working"), ("working", "$working"))
    elif values.open:
        state = assemble(("◇ ", "$needs-you"), ("paused", "$needs-you"))
    else:
        state = assemble(("· ", "$quiet"), ("idle", "$quiet"))
    if values.working:
        state = assemble(state, (f" {format_seconds(int(values.seconds))}", "$quiet"))
    parts = [
        state,
        Content.styled(_model(figures.model), "$quiet"),
        Content.styled(values.mode, "bold $failed" if values.mode == "yolo" else "$quiet"),
        Content.styled(_auto(figures), "$quiet"),
        Content.styled(_tokens(figures), "$quiet"),
        *_cost(figures),
        *_context(figures),
    ]
    if values.queued:
        parts.append(Content.styled(f"{values.queued} queued", "$working"))
    if values.unseen:
        parts.append(Content.styled(f"↓ {values.unseen} new", "$working"))
    if values.problem:
        parts.insert(0, assemble(("✗ ", "$failed"), (line(values.problem, 200), "$failed")))
    one = Content.styled(" · ", "$rule").join(parts)
    hint = Content.styled("  F1 keys", "$quiet")
    if one.cell_length + hint.cell_length <= width:
        return Content("").join([one, hint.pad_left(width - one.cell_length - hint.cell_length)])
    if one.cell_length <= width:
        return one
    return Content("\n").join(Content(" ").join(parts).wrap(width)[:2])


def _model(name: str) -> str:
    """The name without the folders of a rehearsal's file."""
    provider, colon, model = name.partition(":")
    return line(f"{provider}{colon}{model.rpartition('/')[2]}", 40) if name else "no model"


def _auto(figures: TurnFigures) -> str:
    return "auto off" if figures.limit is None else f"auto {figures.continuations}/{figures.limit}"


def _tokens(figures: TurnFigures) -> str:
    limit = f"/{format_count(figures.token_budget)}" if figures.token_budget else ""
    return f"{format_count(figures.tokens)}{limit} tok"


def _cost(figures: TurnFigures) -> list[Content]:
    if figures.cost is None:
        return []
    limit = f"/{format_cost(figures.budget)}" if figures.budget is not None else ""
    near = figures.budget is not None and figures.cost > HIGH_CONTEXT * figures.budget
    return [Content.styled(f"{format_cost(figures.cost)}{limit}", "$needs-you" if near else "$quiet")]


def _context(figures: TurnFigures) -> list[Content]:
    if not figures.context_window:
        return [Content.styled(f"ctx {format_count(figures.context)}", "$quiet")] if figures.context else []
    share = figures.context / figures.context_window
    return [Content.styled(f"ctx {share:.0%}", "$needs-you" if share > HIGH_CONTEXT else "$quiet")]


class StatusLine(Static):
    DEFAULT_CSS = "StatusLine { height: auto; max-height: 2; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(markup=False, id=id)
        self.values = StatusValues()
        self._frame = 0

    def show(self, values: StatusValues) -> None:
        if values != self.values:
            self.values = values
            self._draw()

    def tick(self, *, animated: bool) -> None:
        """Advance the sign of a working turn."""
        if self.values.working:
            self._frame = self._frame + 1 if animated else 0
            self._draw(animated=animated)

    def _draw(self, *, animated: bool = True) -> None:
        width = max(self.size.width - 2, 20) if self.size.width else 78
        self.update(status_content(self.values, width, self._frame if animated else None))

    def on_resize(self) -> None:
        self._draw()
