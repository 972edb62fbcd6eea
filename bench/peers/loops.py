"""The same iterations, made by others: what their loops take between a reply and the next request.

Each peer is a script, run in a process of its own, as for the scheduler's calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.peers import told_by

SCRIPTS: Final = ("loop_pydantic_ai", "loop_langchain", "loop_deepagents", "loop_openai_agents")


class Looped(NamedTuple):
    """How one peer did in one run: seconds at each iteration that was looked at."""

    peer: str
    at: dict[int, float]


def looped(script: str, iterations: int, looked_at: Sequence[int], python: Path) -> Looped:
    told = json.loads(told_by(script, iterations, *looked_at, python=python))
    at = {int(number): median(seconds) for number, seconds in told["near"].items()}
    return Looped(f"{told['peer']} {told['version']}", at)
