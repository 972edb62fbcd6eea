"""`python -m bench finish`: run the tasks in all arms, print tables and figures, write JSON, publish the results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from bench.figures import machine, table
from bench.finish import report
from bench.finish.arms import Arm, arms
from bench.finish.faults import SETS
from bench.finish.run import Outcome, run_scripted
from bench.finish.statistics import Summary, summarize
from bench.finish.task import Task, load_tasks

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "bench" / "results" / "finish.json"
QUICK_TASKS: Final = ("queue_class", "quarter_report", "recipe_scaling", "rename_client")
REAL_TASKS: Final = ("shopping_cart", "quarter_report", "service_config")


class Job(NamedTuple):
    task: str
    arm: str
    faults: str
    seed: int
    lists: str


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    tasks = load_tasks(options.tasks)
    if options.model:
        return _run_real(options, tasks)
    started = perf_counter()
    jobs = [
        Job(task.name, arm, faults, seed, options.lists)
        for faults in options.faults
        for arm in options.arms
        # Without faults, all seeds are the same.
        for seed in range(options.seeds if SETS[faults].rates else 1)
        for task in tasks
    ]
    outcomes = list(_shown(run_jobs(jobs, options.jobs), len(jobs)))
    found = summaries(outcomes, options.faults, options.arms)
    titles = {name: arm.title for name, arm in arms().items()}
    for line in report.lines(found, titles):
        print(line)
    measured = list(report.figures(found))
    for line in table([figure.row() for figure in measured]):
        print(line)
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seeds": options.seeds,
        "tasks": len(tasks),
        "lists": options.lists,
        "seconds": round(perf_counter() - started),
        "machine": machine(),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps(
            {
                **facts,
                "summaries": [summary.as_json() for summary in found.values()],
                "figures": [figure.as_json() for figure in measured],
                "runs": [asdict(outcome) for outcome in outcomes],
            },
            indent=1,
        )
        + "\n"
    )
    if options.publish:
        seeds = f"{options.seeds} seed{'s' if options.seeds > 1 else ''}"
        day = facts["at"][:10]
        what = f"Measured {day}: {len(tasks)} tasks, {seeds}, list: {options.lists}. Intervals are 95%."
        report.publish(ROOT, found, titles, what)
    over = any(figure.within is False for figure in measured)
    return 1 if over and not options.no_limits else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench finish", description="Measure whether the list helps.")
    names = list(arms())
    parser.add_argument("--arms", type=_names(names, "arm"), default=names, help=f"from {', '.join(names)}")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="rounds over all tasks (default 10)")
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=[], help="names; default: all thirty")
    parser.add_argument(
        "--faults",
        type=_names(list(SETS), "set of faults"),
        default=["none", "early", "mixed", "all"],
        help=f"from {', '.join(SETS)} (default: all of them)",
    )
    parser.add_argument("--lists", choices=("plan", "checklist"), default="plan", help="the list that the agent keeps")
    parser.add_argument("--quick", action="store_true", help="four tasks, one seed, faults none, early and mixed")
    parser.add_argument("--model", metavar="NAME", help="a real model, such as openai-chat:local; slow")
    parser.add_argument(
        "--max-seconds", type=float, default=7200.0, metavar="S", help="with --model: start no task after this time"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--publish", action="store_true", help="write docs/does-it-help.md and .svg")
    parser.add_argument("--no-limits", action="store_true", help="do not fail if a limit is exceeded")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="the results file")
    options = parser.parse_args(arguments)
    if options.quick:
        options.tasks, options.seeds = options.tasks or list(QUICK_TASKS), 1
        options.faults = [name for name in options.faults if name != "all"]
    try:
        load_tasks(options.tasks)
    except ValueError as error:
        parser.error(str(error))
    return options


def _names(known: Sequence[str], what: str) -> Callable[[str], list[str]]:
    def split(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            message = f"unknown {what}: {', '.join(unknown)}; choose from {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return names

    return split


def run_job(job: Job) -> Outcome:
    [task] = load_tasks([job.task])
    return run_scripted(task, arms(job.lists)[job.arm], SETS[job.faults], job.seed)


def run_jobs(jobs: Sequence[Job], processes: int) -> Iterator[Outcome]:
    if processes <= 1:
        yield from map(run_job, jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_job, jobs, chunksize=10)


def _shown(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    """Progress on stderr, one line for each arm and set of faults."""
    last: tuple[str, str] | None = None
    for number, outcome in enumerate(outcomes, 1):
        if (outcome.faults, outcome.arm) != last:
            last = (outcome.faults, outcome.arm)
            print(f"finish: {outcome.faults} faults, {outcome.arm} ({number} of {total})", file=sys.stderr, flush=True)
        yield outcome


def summaries(
    outcomes: Sequence[Outcome], faults: Sequence[str], names: Sequence[str]
) -> dict[tuple[str, str], Summary]:
    return {(each, arm): summarize(outcomes, each, arm) for each in faults for arm in names}


def _run_real(options: argparse.Namespace, tasks: Sequence[Task]) -> int:
    from bench.finish.real_model import run_real

    chosen = tasks if options.tasks else load_tasks(REAL_TASKS)
    used: list[Arm] = [arms(options.lists)[name] for name in options.arms]
    run_real(options.model, chosen, used, options.json, options.max_seconds)
    return 0
