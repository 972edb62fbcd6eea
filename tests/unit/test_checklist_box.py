"""The box people watch (W9): exact where there is room, and never torn where there is not."""

from __future__ import annotations

import pytest
import wcwidth
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples
from tests.unit.hostile import EVERYTHING_HOSTILE, any_text

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import ChecklistItem
from punchlist.checklist.render import item_label
from punchlist.surfaces.cli.todos_view import todos_box
from punchlist.views.todos import NumberedTodo, TodoList

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
KEYCAP = "1️⃣"
HEART = "❤️"
SKIN = "👋🏽"
WIDE_TEXTS = {
    "CJK": "日本語のとても長い作業の説明文です。" * 10,
    "CJK with words": "修正 失敗 した テスト " * 20,
    "emoji families": FAMILY * 60,
    "flags": FLAG * 60,
    "keycaps": KEYCAP * 60,
    "hearts": HEART * 60,
    "skin tones": SKIN * 60,
    "a word of 500 letters": "x" * 500,
    "many short words": "a b c " * 80,
    "combining marks": "e\u0301\u0302" * 150,
    "only combining marks": "\u0301" * 100,
    "joiners alone": "a\u200d" * 100,
    "selectors alone": "\ufe0f" * 50,
    "Devanagari": "क्षत्रिय " * 50,
    "Hangul letters": "\u1112\u1161\u11ab" * 50,
    "blanks within": "a" + " " * 200 + "b",
}

pieces = st.one_of(
    st.sampled_from([FAMILY, FLAG, KEYCAP, HEART, SKIN, "日", "한", "e\u0301", "\u0301", "\u200d", "\ufe0f", " ", "-"]),
    st.text(min_size=1, max_size=12),
    any_text,
    st.sampled_from("xyz").map(lambda letter: letter * 500),
)
texts = st.lists(pieces, min_size=1, max_size=12).map("".join)
lists = st.lists(
    st.tuples(texts, texts, st.sampled_from(ChecklistStatus)).map(lambda parts: ChecklistItem("id", *parts)),
    min_size=1,
    max_size=5,
)


def drawn(*items: ChecklistItem, columns: int = 80) -> list[str]:
    """What `punchlist todos` draws for a checklist."""
    numbered = [
        NumberedTodo(number, item.id, "checklist", item.content, item.status.value, item_label(item))
        for number, item in enumerate(items, 1)
    ]
    return todos_box(TodoList("s", numbered), columns)


def pending(content: str) -> ChecklistItem:
    return ChecklistItem("id", content, content, ChecklistStatus.PENDING)


def widths(lines: list[str]) -> set[int]:
    """How many cells the lines take: to a terminal that goes by text, and to one that goes by grapheme."""
    by_text = {wcwidth.width(line) for line in lines}
    by_grapheme = {sum(wcwidth.width(part) for part in wcwidth.iter_graphemes(line)) for line in lines}
    return by_text | by_grapheme


@pytest.mark.spec("W9")
def test_the_box_is_as_promised() -> None:
    lines = drawn(
        ChecklistItem("a", "Fix failing tests", "Fixing failing tests", ChecklistStatus.COMPLETED),
        ChecklistItem("b", "Update documentation", "Updating documentation", ChecklistStatus.IN_PROGRESS),
        ChecklistItem("c", "Run final build verification", "Running final build verification", ChecklistStatus.PENDING),
    )
    assert lines == [
        "┌─ Tasks ──────────────────────────┐",
        "│ 1 ✓ Fix failing tests (claimed)  │",
        "│ 2 ▶ Updating documentation       │",
        "│ 3 ○ Run final build verification │",
        "│                                  │",
        "│ Progress: 1/3 (33%)              │",
        "└──────────────────────────────────┘",
    ]


@pytest.mark.spec("W9")
def test_an_empty_list_has_no_box() -> None:
    assert drawn() == ["No todos."]


@pytest.mark.spec("W9")
def test_long_text_goes_on_under_itself_and_is_cut_after_two_lines() -> None:
    assert drawn(pending("Rewrite the parser so that it reads every file only once"), columns=40)[1:3] == [
        "│ 1 ○ Rewrite the parser so that it    │",
        "│     reads every file only once       │",
    ]
    cut = drawn(pending("word " * 100), columns=40)
    assert len(cut) == 6
    assert cut[2].rstrip("│ ").endswith("…")


@pytest.mark.spec("W9")
@pytest.mark.parametrize("columns", [20, 23, 40, 41, 80, 200])
@pytest.mark.parametrize("text", WIDE_TEXTS.values(), ids=WIDE_TEXTS)
def test_wide_and_long_text_stays_inside_the_box(text: str, columns: int) -> None:
    for status in ChecklistStatus:
        lines = drawn(ChecklistItem("id", text, text, status), pending("next"), columns=columns)
        assert len(widths(lines)) == 1
        assert widths(lines).pop() <= columns


@pytest.mark.spec("W9", "W10")
@examples(150)
@given(lists, st.integers(min_value=20, max_value=130))
def test_every_line_of_a_box_is_as_wide_as_the_others_and_fits_the_terminal(
    stored: list[ChecklistItem], columns: int
) -> None:
    lines = drawn(*stored, columns=columns)
    assert len(widths(lines)) == 1
    assert widths(lines).pop() <= columns
    assert lines[0].startswith("┌─ Tasks ")
    assert all(line[0] == line[-1] == "│" for line in lines[1:-1])


@pytest.mark.spec("W9")
@pytest.mark.parametrize("columns", [10, 19])
def test_a_box_is_never_wider_than_the_terminal_however_narrow(columns: int) -> None:
    lines = drawn(pending("Update documentation"), columns=columns)
    assert max(widths(lines)) <= columns


@pytest.mark.spec("W9")
@pytest.mark.parametrize("text", ["日本語を直す", f"Deploy {FAMILY} and {FLAG}", "naïve café"])
def test_text_that_fits_is_shown_whole(text: str) -> None:
    assert drawn(pending(text), columns=40)[1].startswith(f"│ 1 ○ {text} ")


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", EVERYTHING_HOSTILE.values(), ids=EVERYTHING_HOSTILE)
def test_hostile_text_in_a_box_is_spelled_out(text: str) -> None:
    for status in ChecklistStatus:
        lines = drawn(ChecklistItem("id", text, text, status), columns=40)
        assert all(line.isprintable() for line in lines)
        assert len(widths(lines)) == 1


@pytest.mark.spec("W9")
def test_the_footer_counts_what_is_completed() -> None:
    done = [ChecklistItem("id", "x", "x", ChecklistStatus.COMPLETED)] * 20
    assert drawn(*done)[-2].startswith("│ Progress: 20/20 (100%)")
