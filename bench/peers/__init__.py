"""The same tool calls in other frameworks (peers): how fast no-op tools run in parallel.

Each peer is a script that runs in its own process with the Python of `peers_python()`, so that its imports do not slow
down the next one. None of the scripts imports Punchlist.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

SCRIPTS: Final = ("gather", "langgraph_toolnode", "pydantic_ai_agent", "openai_agents_runner")
FOREIGN: Final = ("LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "LOGFIRE_", "OPENAI_", "OTEL_", "PYDANTIC_", "PYTHON")
"""Prefixes of variables that would make a peer trace, log or check more than by default."""


class Peer(NamedTuple):
    """The seconds of each round of one peer."""

    name: str
    version: str
    calls: int
    seconds: list[float]

    @property
    def calls_per_second(self) -> float:
        return self.calls / median(self.seconds)


def measure_peers(calls: int, rounds: int, python: Path) -> Iterator[Peer]:
    """Measures the peers one after the other, `asyncio.gather` first."""
    for script in SCRIPTS:
        report = json.loads(run_script(script, calls, rounds, python=python))
        yield Peer(report["peer"], report["version"], report["calls"], report["seconds"])


def run_script(script: str, *numbers: int, python: Path) -> bytes:
    """The standard output of a peer's script."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ran = subprocess.run(
        [python, Path(__file__).with_name(f"{script}.py"), *map(str, numbers)],
        env={**kept, "PYDANTIC_AI_NO_BANNER": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return ran.stdout
