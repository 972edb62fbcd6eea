"""The virtual environment of the peers. It is kept between runs and created again if the pins or this Python change."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.figures import Skipped

FOLDER: Final = Path(__file__).parents[1] / "results" / "peers-env"

REQUIREMENTS: Final = (
    "deepagents==0.7.32",
    "langchain==1.4.7",
    "langchain-core==1.7.2",
    "langgraph==1.2.20",
    "langgraph-prebuilt==1.1.1",
    "openai-agents==0.24.0",
    "pydantic==2.14.3",
    "pydantic-ai-slim==2.66.0",
)


def peers_python(folder: Path = FOLDER) -> Path:
    """The Python of the environment that contains all peers."""
    python, stamp = folder / "bin" / "python", folder / "inputs.txt"
    inputs = "\n".join([f"Python {platform.python_version()}", *REQUIREMENTS, ""])
    if stamp.exists() and stamp.read_text() == inputs:
        return python
    pip = (str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
    _run("create an environment for the peers", sys.executable, "-m", "venv", "--clear", str(folder))
    _run("install the peers", *pip, "--retries", "1", *REQUIREMENTS)
    stamp.write_text(inputs)
    return python


def _run(purpose: str, *command: str) -> None:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode:
        output = (ran.stderr or ran.stdout).strip().splitlines()
        raise Skipped(f"could not {purpose}: {output[-1] if output else f'exit {ran.returncode}'}")
