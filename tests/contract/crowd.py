"""Several processes that write at the same moment, and what came of every call they made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from tests.conftest import ROOT
from tests.contract.writer import Task

Outcome = tuple[str, str]


class Worker:
    """One process that runs `writer.py`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.writer"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def give(self, task: Task) -> None:
        self._send(json.dumps(asdict(task)))

    def wait_until_ready(self) -> None:
        assert self._line() == "ready\n"

    def begin(self) -> None:
        self._send("go")

    def outcomes(self) -> list[Outcome]:
        """Waits for the task's end."""
        return [(code, detail) for code, detail in json.loads(self._line())]

    def kill(self) -> int:
        """`kill -9`; its exit status."""
        self.process.kill()
        self.process.communicate(timeout=60)
        return self.process.returncode

    def _send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()


class Crowd:
    """Workers that are started when first needed and stay for the tests that follow."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []

    def go(self, database: str, job: str, *, processes: int, times: int = 1, threads: int = 1) -> list[Outcome]:
        """Let `processes` × `threads` callers do `job` at the same moment, each `times` times."""
        try:
            return self._go(database, job, processes=processes, times=times, threads=threads)
        except BaseException:
            # Some may still be at work for a test that has failed.
            self.end()
            raise

    def _go(self, database: str, job: str, *, processes: int, times: int, threads: int) -> list[Outcome]:
        while len(self.workers) < processes:
            self.workers.append(Worker())
        chosen = self.workers[:processes]
        task = Task(database, job, 0, times, threads)
        for number, worker in enumerate(chosen):
            worker.give(replace(task, number=number))
        for worker in chosen:
            worker.wait_until_ready()
        for worker in chosen:
            worker.begin()
        return [outcome for worker in chosen for outcome in worker.outcomes()]

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers.clear()


def codes(outcomes: Sequence[Outcome]) -> Counter[str]:
    return Counter(code for code, _ in outcomes)


def made(outcomes: Sequence[Outcome]) -> list[str]:
    """What the calls that went well made."""
    return [detail for code, detail in outcomes if code == "ok"]
