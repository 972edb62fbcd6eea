"""Opens databases at the moment it is told to, each line of standard input one address.

python -m tests.faults.opener SESSION
"""

from __future__ import annotations

import sys

from tests.faults.script import Script
from tests.parent_death import end_with_parent


def main(session: str) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        script = Script(line.strip(), session)
        try:
            script.perform(0)
            script.close()
            print("done", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
