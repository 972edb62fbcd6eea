"""The real programs, in the versions that were tried: where they are, and how they get there.

python -m tests.agents.programs FOLDER installs by npm what is not in FOLDER yet. One folder for each version,
and a mark in it once it is whole: an installation that was cut off is made anew.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LIST = Path(__file__).with_name("programs.json")
_ENOUGH = 900.0
"""Seconds for one installation; they are hundreds of megabytes each."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    packages: Mapping[str, str]
    program: str

    def __str__(self) -> str:
        return " ".join(f"{package}@{version}" for package, version in self.packages.items())

    def folder(self, root: Path) -> Path:
        return root / "-".join((self.name, *self.packages.values()))

    def path(self, root: Path) -> Path:
        return self.folder(root) / "node_modules" / ".bin" / self.program

    def is_whole(self, root: Path) -> bool:
        return (self.folder(root) / ".whole").exists()


PROGRAMS = {name: Program(name, **entry) for name, entry in json.loads(_LIST.read_text(encoding="utf-8")).items()}


def install(program: Program, root: Path) -> None:
    folder = program.folder(root)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Without a file of its own, npm would look for a project in the folders above.
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error"]
    subprocess.run([*command, *str(program).split()], cwd=folder, check=True, timeout=_ENOUGH, stdout=sys.stderr)
    (folder / ".whole").touch()


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    for program in PROGRAMS.values():
        if not program.is_whole(root):
            print(f"installing {program}", file=sys.stderr)
            install(program, root)


if __name__ == "__main__":
    main()
