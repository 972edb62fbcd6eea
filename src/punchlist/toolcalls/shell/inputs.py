"""What a command does with its standard input: `grep` and `git commit -F -` take it as data, `python3 -` runs it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.harmless_options import TAKES_DATA
from punchlist.toolcalls.shell.known_commands import is_known, known_command
from punchlist.toolcalls.shell.programs import program_of
from punchlist.toolcalls.shell.risky_arguments import risky_argument

_FILTERS: Final = frozenset(("sed", "gsed", "awk", "gawk", "mawk", "nawk"))
"""Unless an argument is risky, such as `-f`, their scripts are among their arguments."""


@lru_cache(maxsize=64)
def takes_data(words: tuple[str, ...]) -> bool:
    """Whether a command surely runs nothing and writes nothing because of its input."""
    if not words:
        return True
    if risky_argument(words, 1) is not None:
        return False
    if program_of(words[0]) in _FILTERS:
        return "/" not in words[0]
    known = known_command(words)
    return known is not None and known.row.name in TAKES_DATA and is_known(words)
