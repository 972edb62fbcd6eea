"""The line that always tells model, mode, continuation, tokens, cost, context and waiting approvals (C15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from textual.content import Content
from textual.widgets import Static

from punchlist.surfaces.figures import format_cost, format_count, format_seconds
from punchlist.surfaces.tui.display_text import assemble, cut, line
from punchlist.surfaces.tui.screen_state import SessionState, TurnFigures
from punchlist.surfaces.tui.theme import SPINNER, STILL

HIGH_CONTEXT = 0.8
MAX_REASON = 48


@dataclass(frozen=True, slots=True)
class StatusValues:
    figures: TurnFigures = field(default_factory=TurnFigures)
    mode: str = "default"
    """Of the next turn."""
    state: SessionState = "ended"
    waiting: int = 0
    """Approvals."""
    seconds: float = 0.0
    """How long the turn has worked."""
    queued: int = 0
    unseen: int = 0
    """New entries below what is on the screen."""
    problem: str = ""
    """Why the screen may be out of date."""
    reason: str = ""
    """Why the last turn ended."""
    host: str = ""
    """The third-party agent that runs in the session."""

    @property
    def is_moving(self) -> bool:
        """Whether the sign moves and the seconds count."""
        return self.state in ("working", "starting") and not self.waiting


def status_content(values: StatusValues, width: int, frame: int | None = None) -> Content:
    """At most two lines. `frame` animates the sign of a working turn."""
    figures = values.figures
    parts = [
        _state(values, STILL if frame is None else SPINNER[frame % len(SPINNER)]),
        Content.styled(_model(figures.model), "$quiet"),
        _mode(values),
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
    return Content("\n").join(_rows(parts, width)[:2])


def _rows(parts: Sequence[Content], width: int) -> list[Content]:
    """As many parts on each line as fit."""
    rows: list[Content] = []
    for part in parts:
        if rows and rows[-1].cell_length + 3 + part.cell_length <= width:
            rows[-1] = Content.styled(" · ", "$rule").join([rows[-1], part])
        else:
            rows.append(cut(part, width))
    return rows


def _state(values: StatusValues, sign: str) -> Content:
    if values.waiting:
        return assemble(("◆ ", "bold $needs-you"), (f"{values.waiting} waiting for you", "$needs-you"))
    match values.state:
        case "working" | "starting":
            seconds = f" {format_seconds(int(values.seconds))}" if values.state == "working" else "…"
            return assemble((f"{sign} {values.state}", "$working"), (seconds, "$quiet"))
        case "waiting":
            return assemble(("◇ waits", "$needs-you"))
        case "interrupted":
            return assemble(("✗ interrupted", "$failed"), (" · Enter resumes it", "$quiet"))
        case _ if values.host:
            return assemble((f"▷ {line(values.host, 30)} runs", "$working"))
        case "ended":
            return _ended(values.reason)
        case _:
            return assemble(("· idle", "$quiet"))


def _ended(reason: str) -> Content:
    """`✓ completed`, `✗ error: no answer`, `◇ stalled: no progress in 3 continuations`"""
    name, _, why = reason.partition(":")
    text = line(f"{name}: {why.strip()}" if why.strip() else name, MAX_REASON)
    match name:
        case "completed":
            return assemble(("✓ completed", "$done"))
        case "error":
            return assemble((f"✗ {text}", "$failed"))
        case "open" | "capped" | "budget" | "stalled":
            return assemble((f"◇ {text}", "$needs-you"))
        case "cancelled":
            return assemble((f"· {text}", "$quiet"))
        case _:
            return assemble(("· idle", "$quiet"))


def _mode(values: StatusValues) -> Content:
    """The mode of the turn, and of the next one if it is another."""
    mode = values.figures.mode or values.mode
    shown = Content.styled(mode, "bold $failed" if mode == "yolo" else "$quiet")
    return shown if mode == values.mode else assemble(shown, (f", then {values.mode}", "$working"))


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
        self._height = -1

    def show(self, values: StatusValues) -> None:
        if values != self.values:
            self.values = values
            self._draw()

    def tick(self, *, animated: bool) -> None:
        """Advance the sign of a working turn."""
        if self.values.is_moving:
            self._frame = self._frame + 1 if animated else 0
            self._draw(animated=animated)

    def _draw(self, *, animated: bool = True) -> None:
        width = max(self.size.width - 2, 20) if self.size.width else 78
        content = status_content(self.values, width, self._frame if animated else None)
        height = content.plain.count("\n")
        # A layout of the whole screen, ten times a second, would cost most of what a working conversation costs.
        self.update(content, layout=height != self._height)
        self._height = height

    def on_resize(self) -> None:
        self._draw()
