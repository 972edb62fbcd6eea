"""Text is refused on the way in or spelled out on the way out; it never acts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples
from tests.unit.hostile import (
    ACTS_ON_A_TERMINAL,
    BREAKS_A_DATABASE,
    BREAKS_A_LINE,
    EVERYTHING_HOSTILE,
    HIDES_FROM_PEOPLE,
    REFUSED_IN_A_LINE,
    any_text,
)

from punchlist.kernel.text import ELLIPSIS, block_problem, excerpt, json_type, line_problem, visible, visible_block

EMBEDDINGS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def harmful(text: str) -> list[str]:
    """What of `text` would act on a terminal, a line or a database: by Unicode's own tables, not by ours."""
    return [char for char in text if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}]


def reorders(text: str) -> list[str]:
    return [char for char in text if unicodedata.bidirectional(char) in EMBEDDINGS]


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", REFUSED_IN_A_LINE.values(), ids=REFUSED_IN_A_LINE)
def test_a_line_with_a_control_character_is_refused(text: str) -> None:
    assert line_problem(f"x{text}x", max_length=500)


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", [*ACTS_ON_A_TERMINAL.values(), *BREAKS_A_DATABASE.values()])
def test_a_block_with_a_control_character_is_refused(text: str) -> None:
    assert block_problem(f"x{text}x", max_length=500)


def test_a_block_may_have_lines_and_tabs() -> None:
    assert block_problem("one\n\ttwo\r\nthree", max_length=500) is None
    assert block_problem("one\u2028two", max_length=500)


@pytest.mark.parametrize("text", ["🧑‍💻 code", "नमस्ते", "می‌خواهم", "日本語", "e\u0301", "ordinary"])
def test_what_people_write_is_stored_and_shown_as_it_is(text: str) -> None:
    assert line_problem(text, max_length=500) is None
    assert visible(text) == text


@pytest.mark.parametrize("text", HIDES_FROM_PEOPLE.values(), ids=HIDES_FROM_PEOPLE)
def test_invisible_marks_may_be_stored_but_are_shown(text: str) -> None:
    assert line_problem(text, max_length=500) is None
    assert f"{ord(text[1]):04x}" in visible(text) or f"\\x{ord(text[1]):02x}" in visible(text)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "must be text, got null"),
        (True, "must be text, got a boolean"),
        (3, "must be text, got a number"),
        (0.5, "must be text, got a number"),
        ([], "must be text, got an array"),
        ({}, "must be text, got an object"),
        ("", "must be 1 to 10 characters after trimming, got 0"),
        (" \t\n ", "must be 1 to 10 characters after trimming, got 0"),
        ("x" * 11, "must be 1 to 10 characters after trimming, got 11"),
        ("ab\ncd", "must not contain a line break (U+000A) (at character 3)"),
        ("\u2028ab\u2028c", "must not contain a line break (U+2028) (at character 3)"),
        ("ab\x1b", "must not contain control characters (U+001B) (at character 3)"),
        ("ab\ud800", "must not contain half of a surrogate pair (U+D800) (at character 3)"),
    ],
)
def test_the_problem_names_the_rule_that_is_broken(value: object, problem: str) -> None:
    assert line_problem(value, max_length=10) == problem


@pytest.mark.parametrize("text", ["x", "x" * 10, "  " + "x" * 10 + "\n", "日" * 10])
def test_the_length_counts_after_trimming_and_in_characters(text: str) -> None:
    assert line_problem(text, max_length=10) is None


def test_a_block_may_be_empty_unless_it_must_not_be() -> None:
    assert block_problem(" ", max_length=10) is None
    assert block_problem(" ", max_length=10, min_length=1)


@pytest.mark.spec("W10")
@examples(500)
@given(any_text)
def test_a_line_is_accepted_exactly_when_nothing_in_it_acts(text: str) -> None:
    kept = text.strip()
    fits = 1 <= len(kept) <= 60 and not harmful(kept)
    assert (line_problem(text, max_length=60) is None) == fits


@pytest.mark.spec("W10")
@examples(500)
@given(any_text)
def test_visible_text_is_one_line_that_neither_acts_nor_reorders(text: str) -> None:
    shown = visible(text)
    assert not harmful(shown)
    assert not reorders(shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert visible(shown) == shown


@examples(500)
@given(any_text)
def test_a_visible_block_keeps_its_lines_and_nothing_else_that_acts(text: str) -> None:
    assert visible_block(text).split("\n") == [visible(line) for line in text.split("\n")]


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", EVERYTHING_HOSTILE.values(), ids=EVERYTHING_HOSTILE)
def test_hostile_text_is_spelled_out(text: str) -> None:
    assert not harmful(visible(text))
    assert visible(text) != text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\x00", r"\x00"), ("\x9b", r"\x9b"), ("\u202e", r"\u202e"), ("\ud800", r"\ud800"), ("\U000e0041", r"\U000e0041")],
)
def test_characters_are_spelled_as_programmers_write_them(text: str, shown: str) -> None:
    assert visible(text) == shown


@examples(500)
@given(any_text, st.integers(min_value=2, max_value=100))
def test_an_excerpt_is_safe_and_never_longer_than_its_limit(text: str, limit: int) -> None:
    shown = excerpt(text, limit)
    assert len(shown) <= limit
    assert not harmful(shown)
    assert shown == visible(text) or shown.endswith(ELLIPSIS)


def test_an_excerpt_shows_the_beginning() -> None:
    assert excerpt("short") == "short"
    assert excerpt("x" * 60) == "x" * 60
    assert excerpt("x" * 10_000_000) == "x" * 59 + ELLIPSIS


@pytest.mark.parametrize("text", BREAKS_A_LINE.values(), ids=BREAKS_A_LINE)
def test_every_line_break_that_python_knows_is_called_one(text: str) -> None:
    assert "a line break" in (line_problem(text, max_length=10) or "")


def test_the_name_of_a_type_is_the_one_json_uses() -> None:
    values: list[object] = [None, False, 1, 1.5, "", [], (), {}, b""]
    assert [json_type(value) for value in values] == [
        "null",
        "a boolean",
        "a number",
        "a number",
        "text",
        "an array",
        "an array",
        "an object",
        "bytes",
    ]
