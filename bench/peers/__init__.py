"""The same calls, made by others: how fast tools that do nothing run in parallel under each peer.

Each peer is a script, run by the Python of `peers_python()` in a process of its own: what one of them
imports or leaves behind does not slow the next. None of the scripts imports Punchlist.
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
"""Settings that would make a peer trace, log or check more than it does by default."""


class Peer(NamedTuple):
    """How one peer did: the seconds of each round."""

    name: str
    version: str
    calls: int
    seconds: list[float]

    @property
    def calls_per_second(self) -> float:
        return self.calls / median(self.seconds)


def measured(calls: int, rounds: int, python: Path) -> Iterator[Peer]:
    """One peer after the other, `asyncio.gather` first."""
    for script in SCRIPTS:
        told = json.loads(told_by(script, calls, rounds, python=python))
        yield Peer(told["peer"], told["version"], told["calls"], told["seconds"])


def told_by(script: str, *numbers: int, python: Path) -> bytes:
    """What a peer's script writes to standard output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ran = subprocess.run(
        [python, Path(__file__).with_name(f"{script}.py"), *map(str, numbers)],
        env={**kept, "PYDANTIC_AI_NO_BANNER": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return ran.stdout
