"""Shell output inside a prompt: quoted as a block that its content cannot end."""

from __future__ import annotations

import re
from typing import Final

from punchlist.kernel.text import visible_block

MAX_OUTPUT: Final = 30_000
_TICKS: Final = re.compile("`{3,}")


def fence(output: str) -> str:
    shown = visible_block(output.expandtabs(4)).rstrip("\n")
    if len(shown) > MAX_OUTPUT:
        shown = f"{shown[:MAX_OUTPUT]}\n… {len(shown) - MAX_OUTPUT:,} characters left out"
    longest = max((len(found) for found in _TICKS.findall(shown)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{shown or '(no output)'}\n{ticks}"
