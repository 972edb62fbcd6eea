"""A test that fails while processes of its own run. `test_leftovers.py` runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def test_that_fails() -> None:
    with Path(os.environ["PUNCHLIST_LEFTOVERS"]).open("w") as file:
        process = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        file.write(f"{process.pid} {process.stdout.readline()}")
    raise AssertionError("as intended")
