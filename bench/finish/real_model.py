"""The same tasks with a real model, such as a small one on this machine. Slow, and no two runs are the same."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from bench.finish.arms import Arm, ArmView
from bench.finish.run import Outcome, folder, run_arm
from bench.finish.task import Task
from punchlist.agent.model_resolver import model_named
from punchlist.models.model import Model, ModelInfo, ModelRequest, Reply, TextListener, Usage
from punchlist.models.retry import RetryingModel


class CountingModel:
    """Adds up requests and the usage that the provider reports."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.requests = 0
        self.usage = Usage()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        reply = await self._model.ask(request, on_text)
        self.requests += 1
        self.usage += reply.usage
        return reply


def run_real(name: str, tasks: Sequence[Task], used: Sequence[Arm], results: Path, seconds: float) -> None:
    """Run each task in all arms before the next one, so that a run that is cut short still compares the same tasks.

    After `seconds`, no further task is started. The results so far are kept after each run.
    """
    outcomes: list[Outcome] = []
    started = perf_counter()
    results.parent.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        if perf_counter() - started > seconds:
            print(f"{task.name}: not started, {seconds:.0f} s are over", flush=True)
            continue
        for arm in used:
            outcome = _run(name, task, arm)
            outcomes.append(outcome)
            print(f"{arm.name:10} {_line(task.name, [outcome])}, {outcome.reason}", flush=True)
            data = {"model": name, "runs": [asdict(run) for run in outcomes]}
            results.write_text(json.dumps(data, indent=1) + "\n")
    for arm in used:
        print(f"{arm.name:10} {_line('together', [outcome for outcome in outcomes if outcome.arm == arm.name])}")


def _line(what: str, runs: Sequence[Outcome]) -> str:
    passed, steps = sum(run.passed for run in runs), sum(run.steps for run in runs)
    tokens, requests = sum(run.tokens for run in runs), sum(run.requests for run in runs)
    seconds = sum(run.seconds for run in runs)
    return f"{what:20} {passed}/{steps} steps, {tokens:,} tokens, {requests} requests, {seconds:.0f} s"


def _run(name: str, task: Task, arm: Arm) -> Outcome:
    model = CountingModel(model_named(name, os.environ))
    print(f"finish: {arm.name}, {task.name}", file=sys.stderr, flush=True)
    with folder() as base:
        task.prepare(base / "work")
        start = perf_counter()
        ended = asyncio.run(run_arm(task, arm, RetryingModel(ArmView(model, arm)), base))
        seconds, passed = perf_counter() - start, sum(task.passed(base / "work"))
    return Outcome(
        arm.name,
        "real",
        0,
        task.name,
        len(task.steps),
        passed,
        ended.claimed,
        ended.reason,
        model.requests,
        model.usage.total,
        seconds,
    )
