"""Permanent output above lines that are redrawn: nothing is lost, nothing is left behind."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.faults.screen import Screen

from punchlist.surfaces.cli.live_area import LiveArea

COLUMNS = 20


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def shown(out: io.StringIO) -> list[str]:
    return Screen(COLUMNS).show(out.getvalue())


def test_text_continues_its_line_after_the_live_lines_were_drawn_below_it() -> None:
    area = LiveArea(out := io.StringIO(), live=True)
    area.draw(["working"])
    area.stream("The first")
    area.draw(["working", "12 s"])
    assert shown(out) == ["The first", "working", "12 s"]
    area.stream(" line.\nThe second")
    area.draw(["working", "13 s"])
    area.print("a call")
    assert shown(out) == ["The first line.", "The second", "a call"]


def test_without_a_terminal_nothing_is_redrawn() -> None:
    area = LiveArea(out := io.StringIO(), live=False)
    area.draw(["working"])
    area.print("a call")
    area.stream("Text")
    area.draw(["working"])
    area.erase()
    assert out.getvalue() == "a call\nText\n"


def test_an_encoding_without_the_icons_gets_ascii() -> None:
    raw = io.BytesIO()
    area = LiveArea(io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace"), live=True)
    area.print("✓ read_file  “x”…")
    area.draw(["⠹ 1 s · auto 0/10"])
    assert raw.getvalue().decode() == 'x read_file  "x"~\n* 1 s - auto 0/10\n'


pieces = st.text(alphabet="ab \n界é", max_size=45)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("stream"), pieces),
        st.tuples(st.just("draw"), st.lists(st.sampled_from(["x", "yy", "zzz"]), max_size=4)),
    ),
    max_size=12,
)


@given(actions)
def test_streamed_text_is_complete_wherever_live_lines_were_drawn(done: list[tuple[str, str | list[str]]]) -> None:
    area = LiveArea(out := io.StringIO(), live=True)
    for name, value in done:
        getattr(area, name)(value)
    area.erase()
    text = "".join(value for name, value in done if name == "stream" and isinstance(value, str))
    assert shown(out) == Screen(COLUMNS).show(text)
