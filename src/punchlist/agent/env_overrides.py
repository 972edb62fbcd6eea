"""What the environment says about sending agents back to their list (C1); flags say it before, files after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONTINUES: Final = "PUNCHLIST_AUTO_COMPLETE_TODOS"
CONTINUATIONS: Final = "PUNCHLIST_MAX_TODO_CONTINUATIONS"
_YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_NO: Final = frozenset({"0", "false", "f", "no", "n", "off"})
_LONGEST: Final = 9
"""Digits."""


def environment_overrides(environment: Mapping[str, str]) -> tuple[bool | None, int | None]:
    """Whether they are, and how often at most; None where it does not say, or says something that nobody knows."""
    wanted = environment.get(CONTINUES, "").strip().lower()
    most = environment.get(CONTINUATIONS, "").strip()
    continues = True if wanted in _YES else False if wanted in _NO else None
    return continues, int(most) if most.isdecimal() and most.isascii() and len(most) <= _LONGEST else None
