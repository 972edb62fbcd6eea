"""Performs the script in a process of its own and says after each change that it was made.

python -m tests.faults.writer ADDRESS SESSION FIRST
"""

from __future__ import annotations

import sys
from itertools import count

from tests.faults.script import Script
from tests.parent_death import end_with_parent


def main(address: str, session: str, first: str) -> None:
    script = Script(address, session)
    for change in count(int(first)):
        script.perform(change)
        print(change, flush=True)


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
