"""Opens databases at the moment it is told to, each line of standard input a home folder and an address.

python -m tests.faults.opener SESSION
"""

from __future__ import annotations

import os
import sys

from tests.faults.script import Script
from tests.parent_death import end_with_parent


def main(session: str) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        home, address = line.rstrip("\n").split("\t")
        os.environ.pop("XDG_DATA_HOME", None)
        os.environ["HOME"] = home
        try:
            script = Script(address, session)
            script.perform(0)
            script.close()
            print("done", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
