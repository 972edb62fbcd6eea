"""How property tests look for counter-examples: the same ones in every run, unless they are to be new ones."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int, *, new: bool = False) -> settings:
    return settings(max_examples=count, deadline=None, derandomize=not new, database=None, print_blob=True)
