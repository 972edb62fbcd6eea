"""`python -m bench [SUBJECT…]`: measure, print a table, write JSON; exit 1 when a limit is not kept."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

from bench.measuring import FULL, QUICK, Bench, Figure, Skipped, fsync_probe, load, machine, shown, table

SUBJECTS: Final = (
    "storage",
    "startup",
    "mcp_calls",
    "postgres",
    "scheduler",
    "agent",
    "claims",
    "missions",
    "engine",
    "install",
)
RESULTS: Final = Path(__file__).parent / "results"


def main() -> int:
    wanted = arguments()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        bench = Bench(QUICK if wanted.quick else FULL, Path(name))
        loads, probes = [load()], [fsync_probe(bench.folder)]
        figures = list(measured(wanted.subjects, bench))
        loads, probes = [*loads, load()], [*probes, fsync_probe(bench.folder)]

    for line in table([figure.row() for figure in figures]):
        print(line)
    facts = machine()
    print(f"\nfsync of 4 KiB: {shown(probes[0])} before, {shown(probes[1])} after")
    print(f"load: {loads[0]} before, {loads[1]} after, on {facts['cores']} cores")
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": wanted.quick,
        "machine": facts,
        "load": loads,
        "fsync": probes,
        "figures": [figure.as_json() for figure in figures],
    }
    wanted.json.parent.mkdir(parents=True, exist_ok=True)
    wanted.json.write_text(json.dumps(report, indent=2) + "\n")
    over = any(figure.within is False for figure in figures)
    return 1 if over and not (wanted.no_limits or wanted.quick) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Punchlist against its raw limits.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; implies --no-limits")
    parser.add_argument("--no-limits", action="store_true", help="do not fail when a limit is not kept")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", metavar="FILE", help="where results go")
    wanted = parser.parse_args()
    wanted.subjects = wanted.subjects or list(SUBJECTS)
    if unknown := [name for name in wanted.subjects if name not in SUBJECTS]:
        parser.error(f"there is no subject {', '.join(unknown)}; there are: {', '.join(SUBJECTS)}")
    return wanted


def measured(subjects: list[str], bench: Bench) -> Iterator[Figure]:
    """Figures one by one; progress goes to standard error."""
    for subject in subjects:
        try:
            for figure in import_module(f"bench.{subject}").measure(bench):
                print(f"{subject}: {figure.name}", file=sys.stderr, flush=True)
                yield figure
        except Skipped as reason:
            print(f"{subject}: skipped, {reason}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
