"""How property tests look for counter-examples: the same ones in every run, more of them under `make soak`."""

from __future__ import annotations

from hypothesis import settings
from tests.conftest import SOAK


def examples(count: int) -> settings:
    return settings(
        max_examples=count * 50 if SOAK else count, deadline=None, derandomize=not SOAK, database=None, print_blob=True
    )
