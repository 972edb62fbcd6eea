"""The signature with which a surface starts a turn in a process of its own.

A command that an agent runs can be a child of `punchlist serve` as well. Only the user's key can sign the start of a
turn, and the signature counts for one parent process and one command line.
"""

from __future__ import annotations

import hmac
import os
import sys
from collections.abc import Sequence
from typing import Final

from punchlist.kernel.processes import current_process, process_identity
from punchlist.trust import Trust

VARIABLE: Final = "PUNCHLIST_TURN_START"


def sign_start(trust: Trust, arguments: Sequence[str]) -> str:
    """The signature for a child process of this one with these arguments."""
    return trust.sign("turn start", current_process(), *arguments)


def is_started_turn(parent: int) -> bool:
    """Whether the process `parent` has started this one as a turn."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        return False
    expected = Trust.of_user(os.environ).sign("turn start", process_identity(parent), *sys.argv[1:])
    return hmac.compare_digest(given.encode(), expected.encode())
