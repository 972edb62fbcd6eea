"""Uses a database as somebody to whom it does not belong, and prints what happened as JSON.

    python -m tests.faults.stranger ADDRESS CHANGES

CHANGES is how many changes of the script the database holds. Root may write everything, so root
becomes `nobody` first; anybody else stays who they are.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Final

from tests.faults.script import Script, expected

from punchlist.errors import PunchlistError

NOBODY: Final = 65_534


def told(action: Callable[[], object]) -> str:
    try:
        action()
    except PunchlistError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"unexpected {type(error).__name__}: {error}"
    return "done"


def main(address: str, changes: str) -> None:
    # Once where it is allowed: what is imported on first use might not be readable for `nobody`.
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Script(f"{folder}/x.db")
        rehearsal.perform(0)
        rehearsal.lists()
        rehearsal.close()
    if os.geteuid() == 0:
        home = tempfile.mkdtemp()
        os.chown(home, NOBODY, NOBODY)
        os.environ["HOME"] = home
        os.seteuid(NOBODY)
    script = Script(address)

    def read() -> None:
        assert script.lists() == expected(int(changes)), "not the lists that were written"

    outcome = {"read": told(read), "write": told(lambda: script.perform(int(changes))), "read again": told(read)}
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
