"""Fixtures of the surfaces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Hook = Callable[..., dict[str, Any]]


@pytest.fixture
def hook(project: Path, environment: dict[str, str]) -> Hook:
    """Call a hook as a program would: from anywhere, with the project in what it says."""

    def run(event: str, *arguments: str, raw: bytes | None = None, env: Any = None, **said: Any) -> dict[str, Any]:
        told = {"session_id": "s1", "cwd": str(project), "stop_hook_active": False, **said}
        done = subprocess.run(
            [sys.executable, "-m", "punchlist", "hook", event, *arguments],
            cwd="/",
            env={**environment, **(env or {})},
            input=json.dumps(told).encode() if raw is None else raw,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr == b""
        assert done.stdout.count(b"\n") == 1
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return answer

    return run
