"""The estimate of tokens: about four ASCII characters each, one for each other character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.agent.context import ModelContext, shorten_results
from punchlist.kernel.token_estimate import clipped, estimated_tokens, weighted_length
from punchlist.models.model import CallReturn, Reply, UserText

CHINESE = "构建优先于其他工作请每天检查结果"


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("Builds come first", 4), (CHINESE, 16), (f"CI {CHINESE}", 16), ("\ud800x", 1)]
)
def test_a_character_that_is_not_ascii_counts_as_a_token(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


@given(st.text(), st.integers(-1, 100))
def test_a_clipped_text_is_the_longest_beginning_within_the_limit(text: str, limit: int) -> None:
    kept = clipped(text, limit)
    assert text.startswith(kept)
    assert weighted_length(kept) <= max(limit, 0)
    assert kept == text or weighted_length(text[: len(kept) + 1]) > limit


@pytest.mark.spec("C7")
def test_chinese_messages_are_compacted_before_they_fill_the_window() -> None:
    """In characters, they would be a quarter of their tokens."""
    context = ModelContext("Work.", (), window=10_000)
    context.add(UserText("Start."))
    for _ in range(20):
        context.add(Reply(CHINESE * 25), UserText("Go on."))
    assert context.tokens("") > 8_000
    done = context.compact("")
    assert done is not None
    assert done.after_tokens < 5_000
    assert context.tokens("") == done.after_tokens


@pytest.mark.spec("C7")
def test_a_long_chinese_result_is_shortened_to_its_share_of_the_window() -> None:
    (short,) = shorten_results([CallReturn("a", "read_file", CHINESE * 1_000)], window=10_000)
    assert estimated_tokens(short.text) <= 2_100
    assert "characters left out: too long for the context window" in short.text
