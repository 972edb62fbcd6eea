"""Start Punchlist as a user does, without the settings of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import punchlist
from punchlist.storage.trusted_files import sign
from punchlist.trust import Trust

PYTHON: Final = sys.executable
PUNCHLIST: Final = str(Path(sysconfig.get_path("scripts")) / "punchlist")


def environment(folder: Path, database: Path, session: str) -> dict[str, str]:
    """A clean environment. Bytecode is enabled, since start-up times would otherwise include compilation."""
    foreign = ("PUNCHLIST_", "XDG_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    settings = {**kept, "HOME": str(folder), "PUNCHLIST_DATABASE_URL": str(database), "PUNCHLIST_SESSION": session}
    if database.exists():
        # The database of a benchmark is made by another user: this one has the benchmark's folder as a home.
        sign(database, Trust.of_user(settings))
    return settings


def compile_all() -> None:
    """Writes the bytecode of our code and of all packages."""
    folders = [Path(str(punchlist.__file__)).parent, sysconfig.get_path("purelib")]
    # Some packages contain files that do not compile.
    subprocess.run([PYTHON, "-m", "compileall", "-qq", *map(str, folders)], check=False)
