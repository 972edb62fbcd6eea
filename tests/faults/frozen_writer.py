"""A process that freezes in the middle of a transaction, and says how it ended after it was woken up."""

from __future__ import annotations

import os
import signal
import sys

from tests.faults.script import Script
from tests.parent_death import end_with_parent

from punchlist.errors import StoreError


def main(address: str) -> None:
    script = Script(address)
    try:
        with script.house.store.join():
            script.house.checklists.add(script.scope, "Frozen", reason="before it froze")
            print("locked", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
    except StoreError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    end_with_parent()
    main(sys.argv[1])
