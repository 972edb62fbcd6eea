"""`python -m bench [SUBJECT…]`: run benchmarks, print a table, write JSON; exits with 1 if a limit is exceeded."""

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

from bench.figures import FULL, QUICK, Bench, Figure, Skipped, format_seconds, fsync_probe, load, machine, table

SUBJECTS: Final = (
    "storage",
    "startup",
    "mcp_calls",
    "postgres",
    "scheduler",
    "agent",
    "claims",
    "missions",
    "views",
    "live",
    "web",
    "pages",
    "tui",
    "engine",
    "install",
)
FINISH: Final = "finish"
"""Measures outcomes instead of times, has its own options, and is not part of a run of all subjects."""
RESULTS: Final = Path(__file__).parent / "results"


def main() -> int:
    if sys.argv[1:2] == [FINISH]:
        from bench.finish.command import main as finish

        return finish(sys.argv[2:])
    options = arguments()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        bench = Bench(QUICK if options.quick else FULL, Path(name))
        loads, probes = [load()], [fsync_probe(bench.folder)]
        figures = list(run_subjects(options.subjects, bench))
        loads, probes = [*loads, load()], [*probes, fsync_probe(bench.folder)]

    for line in table([figure.row() for figure in figures]):
        print(line)
    facts = machine()
    print(f"\nfsync of 4 KiB: {format_seconds(probes[0])} before, {format_seconds(probes[1])} after")
    print(f"load: {loads[0]} before, {loads[1]} after, on {facts['cores']} cores")
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": facts,
        "load": loads,
        "fsync": probes,
        "figures": [figure.as_json() for figure in figures],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    over = any(figure.within is False for figure in figures)
    return 1 if over and not (options.no_limits or options.quick) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Punchlist against its raw limits.")
    parser.add_argument(
        "subjects",
        nargs="*",
        metavar="SUBJECT",
        help=f"from {', '.join(SUBJECTS)}; default: all; or {FINISH} alone, which has its own --help",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, as a smoke test; implies --no-limits")
    parser.add_argument("--no-limits", action="store_true", help="do not fail if a limit is exceeded")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", metavar="FILE", help="the results file")
    options = parser.parse_args()
    options.subjects = options.subjects or list(SUBJECTS)
    if unknown := [name for name in options.subjects if name not in SUBJECTS]:
        parser.error(f"unknown subject: {', '.join(unknown)}; choose from {', '.join(SUBJECTS)}")
    return options


def run_subjects(subjects: list[str], bench: Bench) -> Iterator[Figure]:
    """Yields figures as they are measured; progress is printed on stderr."""
    for subject in subjects:
        try:
            for figure in import_module(f"bench.{subject}").measure(bench):
                print(f"{subject}: {figure.name}", file=sys.stderr, flush=True)
                yield figure
        except Skipped as reason:
            print(f"{subject}: skipped, {reason}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
