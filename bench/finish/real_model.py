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


def run_real(name: str, tasks: Sequence[Task], used: Sequence[Arm], results: Path) -> None:
    outcomes: list[Outcome] = []
    for arm in used:
        for task in tasks:
            outcome = _run(name, task, arm)
            outcomes.append(outcome)
            print(
                f"{arm.name:10} {task.name:20} {outcome.passed}/{outcome.steps} steps, {outcome.tokens:,} tokens, "
                f"{outcome.requests} requests, {outcome.reason}, {outcome.seconds:.0f} s",
                flush=True,
            )
        mine = [outcome for outcome in outcomes if outcome.arm == arm.name]
        passed, steps = sum(run.passed for run in mine), sum(run.steps for run in mine)
        print(f"{arm.name:10} {'together':20} {passed}/{steps} steps, {sum(run.tokens for run in mine):,} tokens")
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps({"model": name, "runs": [asdict(run) for run in outcomes]}, indent=1) + "\n")


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
