"""Installation time and size: the base install against `[all]`, from a wheel into new environments with pip.

Needs a package index. Both installs use pip's cache, which a first round fills.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.figures import Bench, Figure, Limits, Skipped

ROOT: Final = Path(__file__).parents[1]
MAX_PACKAGES: Final = 15
MAX_MEGABYTES: Final = 40
ROUNDS: Final = 2


def measure(bench: Bench) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        folder = Path(name)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        wheel = str(next(folder.glob("*.whl")))
        base, full = [], []
        for number in range(ROUNDS + 1):
            base.append(_install(folder / f"base{number}", wheel))
            full.append(_install(folder / f"full{number}", f"{wheel}[all]"))
        packages, megabytes = _size(folder / "base0")
        print(
            f"base install: {packages} packages (at most {MAX_PACKAGES}), {megabytes:.0f} MB (at most {MAX_MEGABYTES})"
        )
        if packages > MAX_PACKAGES or megabytes > MAX_MEGABYTES:
            raise SystemExit("the base install is too large")
        yield Figure("base install, against [all]", base[1:], full[1:], Limits(times=0.25))


def _install(folder: Path, requirement: str) -> float:
    """Installs a requirement and returns the seconds that pip took."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", requirement]
    begin = perf_counter()
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"pip could not install: {done.stderr.strip().splitlines()[-1]}")
    return perf_counter() - begin


def _size(folder: Path) -> tuple[int, float]:
    library = next(folder.glob("lib/python*/site-packages"))
    files = [file for file in library.rglob("*") if file.is_file()]
    return len(list(library.glob("*.dist-info"))), sum(file.stat().st_size for file in files) / 1e6
