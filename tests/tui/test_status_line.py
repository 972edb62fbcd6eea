"""The status line says everything at every width (C15)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from punchlist.surfaces.tui.screen_state import TurnFigures
from punchlist.surfaces.tui.status_text import MAX_ROWS, StatusValues, status_content

FIGURES = TurnFigures(
    "anthropic:claude-sonnet-4-5-20250929", "auto-edit", 13, 50, 1_234_567, 12.34, 20.0, 2_000_000, 190_000, 200_000
)
STATES = (
    StatusValues(FIGURES, "default", "working", waiting=2, queued=12, unseen=34),
    StatusValues(FIGURES, "default", "working", seconds=3_725.0),
    StatusValues(FIGURES, "auto-edit", "interrupted"),
    StatusValues(FIGURES, "default", "ended", reason="stalled: no progress in 3 continuations, and the attempt failed"),
    StatusValues(replace(FIGURES, limit=None), "auto-edit", "new", host="claude-code"),
)


@pytest.mark.spec("C15", "W9")
def test_every_part_is_shown_at_every_width() -> None:
    for width, values in product(range(22, 251), STATES):
        rows = status_content(values, width).plain.split("\n")
        text = "\n".join(rows)
        assert len(rows) <= MAX_ROWS, (width, text)
        assert all(len(row) <= width for row in rows)
        auto = "auto off" if values.figures.limit is None else "auto 13/50"
        for part in (auto, "edit", "1.2M", "$12.34", "95%"):
            assert part in text, (width, part, text)
        assert "cla" in text.replace("claude-code", ""), (width, text)
        assert not values.waiting or "◆ 2 waiting" in text
        assert values.mode != "default" or "def" in text
        if width >= 120:
            assert len(rows) <= 2


@pytest.mark.spec("C15")
def test_the_model_is_shortened_before_any_other_part() -> None:
    values = StatusValues(FIGURES, "auto-edit", "working", seconds=5)
    whole = status_content(values, 250).plain.removesuffix("F1 keys").rstrip()
    assert whole.endswith(" · anthropic:claude-sonnet-4-5-20250929")
    text = status_content(values, len(whole) - 1).plain
    assert "\n" not in text
    assert "working 5 s · auto 13/50 · auto-edit · 1.2M/2.0M tok · $12.34/$20.00 · ctx 95%" in text
    assert "anthropic:claude" not in text
    assert "claude-sonnet" in status_content(replace(values, problem="The database is busy."), 100).plain
    assert status_content(replace(values, problem="The database is busy."), 40).plain.startswith("✗ The database")
