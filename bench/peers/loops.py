"""The same iterations in other frameworks: the time of their loops between a reply and the next request.

Each peer is a script that runs in its own process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.peers import run_script

SCRIPTS: Final = ("loop_pydantic_ai", "loop_langchain", "loop_deepagents", "loop_openai_agents")


class LoopTimes(NamedTuple):
    """Seconds of one peer at each observed iteration of one run."""

    peer: str
    at: dict[int, float]


def run_loop(script: str, iterations: int, observed: Sequence[int], python: Path) -> LoopTimes:
    report = json.loads(run_script(script, iterations, *observed, python=python))
    at = {int(number): median(seconds) for number, seconds in report["near"].items()}
    return LoopTimes(f"{report['peer']} {report['version']}", at)
