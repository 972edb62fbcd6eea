"""Starting Punchlist as people do, with nothing of this machine's settings but the path to Python."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import punchlist

PYTHON: Final = sys.executable
PUNCHLIST: Final = str(Path(sysconfig.get_path("scripts")) / "punchlist")


def environment(folder: Path, database: Path, session: str) -> dict[str, str]:
    """A clean one. Bytecode may be written and read: without it, start-up times are those of the compiler."""
    foreign = ("PUNCHLIST_", "XDG_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "HOME": str(folder), "PUNCHLIST_DATABASE_URL": str(database), "PUNCHLIST_SESSION": session}


def compile_all() -> None:
    """Bytecode for our code and for all that it imports."""
    folders = [Path(str(punchlist.__file__)).parent, sysconfig.get_path("purelib")]
    # Some packages carry files that no Python compiles; they are not ours to mend.
    subprocess.run([PYTHON, "-m", "compileall", "-qq", *map(str, folders)], check=False)
