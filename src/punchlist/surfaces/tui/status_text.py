"""The line that always tells state, continuation, mode, tokens, cost, context and model (C15). Pure.

Every part is on the screen at every width. Where one row is too narrow, there are two; then parts have shorter forms,
the model's first; and at last there are three rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from textual.content import Content

from punchlist.surfaces.figures import age_of, format_cost, format_count, format_seconds
from punchlist.surfaces.tui.display_text import assemble, cells, cut, line, pack
from punchlist.surfaces.tui.screen_state import SessionState, TurnFigures
from punchlist.surfaces.tui.theme import SPINNER, STILL

if TYPE_CHECKING:
    from datetime import datetime

    from punchlist.surfaces.tui.screen_state import ConversationState

HIGH_CONTEXT: Final = 0.8
MAX_REASON: Final = 48
MAX_MODEL: Final = 40
MIN_MODEL: Final = 4
MAX_ROWS: Final = 3
_DOT: Final = Content.styled(" · ", "$rule")
_SHORT_MODES: Final = {"auto-edit": "edit", "default": "def"}


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


def status_values(
    state: ConversationState, mode: str, now: datetime, *, starts: bool, unseen: int = 0, problem: str = ""
) -> StatusValues:
    """`mode` is that of the next turn; `starts`: a turn is about to begin."""
    # Since the turn began, also before the conversation was opened.
    seconds = age_of(state.turn.started_at, now) if state.is_running and state.turn is not None else 0.0
    return StatusValues(
        state.figures,
        mode,
        "starting" if starts and not state.is_running else state.state,
        len(state.approvals),
        seconds,
        len(state.queued),
        unseen,
        problem,
        (state.turn.end_reason or "") if state.turn is not None else "",
        state.host,
    )


def status_content(values: StatusValues, width: int, frame: int | None = None) -> Content:
    """At most three rows, and one more for a problem. `frame` animates the sign of a working turn."""
    rows = _rows(values, width, STILL if frame is None else SPINNER[frame % len(SPINNER)])
    if values.problem:
        rows.insert(0, cut(assemble((f"✗ {line(values.problem, 200)}", "$failed")), width))
    elif len(rows) == 1:
        hint, used = Content.styled("  F1 keys", "$quiet"), cells(rows[0])
        if used + hint.cell_length <= width:
            rows = [Content("").join([rows[0], hint.pad_left(width - used - hint.cell_length)])]
    return Content("\n").join(rows)


def _rows(values: StatusValues, width: int, sign: str) -> list[Content]:
    long, short = _parts(values, sign), _short_parts(values, sign)
    more = _extras(values)
    model, end = _model(values.figures.model), _model_name(values.figures.model)
    blank = Content(" ")
    for most, parts, name, separator in (
        (1, [*long, *more], model, _DOT),
        (1, [*long, *more], end, _DOT),
        (2, [*long, *more], model, _DOT),
        (2, [*long, *more], end, _DOT),
        (2, [*short, *more], end, _DOT),
        (3, [*short, *more], end, _DOT),
        (3, [*short, *more], end, blank),
    ):
        rows = pack([*parts, Content.styled(name, "$quiet")], width, separator)
        if len(rows) <= most:
            return rows
    for parts in ([*short, *more], short):
        rows = pack(parts, width, blank)
        if len(rows) < MAX_ROWS:
            return [*rows, cut(Content.styled(end, "$quiet"), width)]
        room = width - cells(rows[-1]) - 1
        if len(rows) == MAX_ROWS and room >= MIN_MODEL:
            return [*rows[:-1], blank.join([rows[-1], cut(Content.styled(end, "$quiet"), room)])]
    return rows[:MAX_ROWS]


def _parts(values: StatusValues, sign: str) -> list[Content]:
    figures = values.figures
    return [
        _state(values, sign),
        Content.styled(_auto(figures), "$quiet"),
        _mode(values),
        Content.styled(_tokens(figures), "$quiet"),
        *_cost(figures),
        *_context(figures),
    ]


def _short_parts(values: StatusValues, sign: str) -> list[Content]:
    figures = values.figures
    return [
        _short_state(values, sign),
        Content.styled(_auto(figures), "$quiet"),
        _short_mode(values),
        Content.styled(format_count(figures.tokens), "$quiet"),
        *(Content.styled(format_cost(figures.cost), "$quiet") for _ in _cost(figures) if figures.cost is not None),
        *_context(figures, ""),
    ]


def _extras(values: StatusValues) -> list[Content]:
    """What is on the screen elsewhere too."""
    extras = []
    if values.queued:
        extras.append(Content.styled(f"{values.queued} queued", "$working"))
    if values.unseen:
        extras.append(Content.styled(f"↓ {values.unseen} new", "$working"))
    return extras


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


def _short_state(values: StatusValues, sign: str) -> Content:
    """The state in at most 13 cells."""
    if values.waiting:
        return assemble((f"◆ {values.waiting} waiting", "$needs-you"))
    if values.state == "working":
        return assemble((f"{sign} {format_seconds(int(values.seconds))}", "$working"))
    if values.state == "ended" and not values.host:
        return _ended(values.reason.partition(":")[0])
    return cut(_state(replace(values, host=line(values.host, 8)), sign), 13)


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


def _short_mode(values: StatusValues) -> Content:
    mode, following = (_SHORT_MODES.get(each, each) for each in (values.figures.mode or values.mode, values.mode))
    shown = Content.styled(mode, "bold $failed" if mode == "yolo" else "$quiet")
    return shown if mode == following else assemble(shown, (f"→{following}", "$working"))


def _model(name: str) -> str:
    """The name without the folders of a rehearsal's file."""
    provider, colon, model = name.partition(":")
    return line(f"{provider}{colon}{model.rpartition('/')[2]}", MAX_MODEL) if name else "no model"


def _model_name(name: str) -> str:
    """The name without its provider."""
    return line(name.rpartition(":")[2].rpartition("/")[2], MAX_MODEL) or "no model"


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


def _context(figures: TurnFigures, name: str = "ctx ") -> list[Content]:
    if not figures.context_window:
        return [Content.styled(f"ctx {format_count(figures.context)}", "$quiet")] if figures.context else []
    share = figures.context / figures.context_window
    return [Content.styled(f"{name}{share:.0%}", "$needs-you" if share > HIGH_CONTEXT else "$quiet")]
