"""On which line of a settings file a key stands."""

from __future__ import annotations

import time

import pytest

from punchlist.kernel.toml_lines import KeyPath, find_line

TEXT = '''\
# settings
session = "s"

[policy]
mode = "default"          # [not a heading]
"odd key.with dots" = 1

[[policy.rules]]
decision = "allow"

[[policy.rules]]
why = """
decision = "none"
[workspace]
"""
command = [
  "a]",
  "b",
]
arguments = { path = "x", deep = { er = 1 } }
[policy.rules.more]
of = 1

[mcp.servers.github]
command = "x"

[ agents . "coder" ]   # blanks are allowed
limits.tokens = 5
also = [{ a = 1 }, { b = 2 }]
'''


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("session",), 2),
        (("policy",), 4),
        (("policy", "mode"), 5),
        (("policy", "odd key.with dots"), 6),
        (("policy", "rules"), 8),
        (("policy", "rules", 0, "decision"), 9),
        (("policy", "rules", 1), 11),
        (("policy", "rules", 1, "why"), 12),
        (("policy", "rules", 1, "command"), 16),
        (("policy", "rules", 1, "arguments", "deep", "er"), 20),
        (("policy", "rules", 1, "more", "of"), 22),
        (("mcp", "servers", "github", "command"), 25),
        (("agents",), 27),
        (("agents", "coder", "limits", "tokens"), 28),
        (("agents", "coder", "also", 1, "b"), 29),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_key_is_found_where_its_value_begins(keys: KeyPath, line: int, ends: str) -> None:
    assert find_line(TEXT.replace("\n", ends), keys) == line


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("policy", "rules", 1, "decision"), 11),
        (("policy", "rules", 7, "decision"), 8),
        (("mcp", "servers", "gitlab"), 24),
        (("agents", "coder", "limits", "seconds"), 28),
        (("session", "x"), 2),
    ],
)
def test_for_a_key_that_is_not_there_the_innermost_table_is_found(keys: KeyPath, line: int) -> None:
    assert find_line(TEXT, keys) == line


def test_where_nothing_is_there_is_no_line() -> None:
    assert find_line(TEXT, ("colour",)) is None
    assert find_line("", ("colour",)) is None


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("a = 1\n" * 1, 2),
        ("".join(f"k{number} = 1\n" for number in range(50_000)), 50_001),
        ('a = """\n' + "text\n" * 100_000 + '"""\n', 100_003),
        ("a = [\n" + "[1],\n" * 150_000 + "]\n", None),
    ],
    ids=["short", "many keys", "a long text", "a long array"],
)
def test_a_large_file_is_searched_in_seconds_or_not_at_all(before: str, line: int | None) -> None:
    begun = time.monotonic()
    assert find_line(before + "colour = 1\n", ("colour",)) == line
    assert time.monotonic() - begun < 20
