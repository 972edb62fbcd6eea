"""The words and numbers of the lines that `punchlist run` shows."""

from __future__ import annotations

import pytest

from punchlist.surfaces.cli.run_lines import (
    answer_text,
    auto_text,
    call_name,
    status_line,
)
from punchlist.surfaces.figures import format_cost, format_count, format_seconds
from punchlist.toolcalls.model import ToolCallRequest


@pytest.mark.spec("C15")
def test_the_status_line_has_time_tokens_cost_and_continuations() -> None:
    assert status_line(2, 12.7, 3_140, 0.02, auto_text(3, 10), 80) == "⠹ 12 s · 3.1k tokens · $0.02 · auto 3/10"
    assert status_line(0, 0, 0, None, auto_text(0, None), 80) == "⠋ 0 s · 0 tokens · auto off"
    assert status_line(1, 75, 31_400, 1.5, auto_text(10, 10), 40) == "⠙ 1 min 15 s·31.4k tok·$1.50·auto 10/10"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0004, "1 ms"),
        (0.099, "99 ms"),
        (0.1, "0.1 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3725, "1 h 2 min"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (99_940, "99.9k"), (99_960, "100k"), (999_960, "1.0M"), (10**8, "100M")],
)
def test_counts(number: int, text: str) -> None:
    assert format_count(number) == text


def test_costs() -> None:
    assert [format_cost(cost) for cost in (0.0, 0.00042, 0.01, 12.345)] == ["$0.00", "$0.0004", "$0.01", "$12.35"]


def test_the_argument_of_a_call_leaves_room_for_its_time() -> None:
    request = ToolCallRequest("run_command", {"command": "echo " + "x" * 500 + "\nrm -rf /"})
    assert len(call_name(request, 200)) == len("run_command ") + 60
    assert len(f"▶ {call_name(request, 40)} (59 min 59 s)") <= 40
    assert call_name(ToolCallRequest("TodoWrite", {"todos": []}), 80) == "TodoWrite"


def test_text_of_a_model_keeps_its_tabs_and_lines() -> None:
    assert answer_text("a\r\n\tb\x1b[31m") == "a\n    b\\x1b[31m"
