"""`python -m tests.versions [lowest|newest …]`: the tests that use a dependency, at both ends of its version range.

Each end gets an environment of its own, resolved from pyproject.toml. The test tools themselves are the locked ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
RESOLUTIONS: Final = {"lowest": "lowest-direct", "newest": "highest"}
TESTS: Final = (
    "tests/contract/test_adapters.py",  # langchain, openai-agents, pydantic-ai
    "tests/contract/test_mcp_servers.py",  # mcp, jsonschema
    "tests/contract/test_models.py",  # pydantic-ai, httpx2, genai-prices
    "tests/contract/test_native_tools.py",  # pydantic
    "tests/contract/test_runs.py",  # psycopg
    "tests/faults/test_run_control.py",  # dbos, sqlalchemy
    "tests/faults/test_mission_kill.py",  # dbos: taking over the runs of a dead worker
    "tests/journeys/test_run_over_http.py",  # pydantic-ai over the providers' SDKs
    "tests/surfaces/test_cli_help.py",  # typer
    "tests/surfaces/test_install.py",  # filelock
    "tests/surfaces/test_mcp_http.py",  # starlette, uvicorn
    "tests/unit/test_cadence.py",  # croniter
    "tests/unit/test_checklist_box.py",  # wcwidth
    "tests/unit/test_mission_file.py",  # pydantic
)


def test_tools() -> list[str]:
    """The dev group at its locked versions."""
    names = {
        re.split(r"[ ;<>=\[]", entry)[0].lower()
        for entry in tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
        if isinstance(entry, str)
    }
    locked = re.findall(r"^(([a-z0-9-]+)==[^ ]+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    return [pin for pin, name in locked if name in names]


def run(*command: str, env: dict[str, str] | None = None) -> int:
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def tested(end: str, folder: Path) -> bool:
    python = str(folder / "bin" / "python")
    uv = [sys.executable, "-m", "uv"]
    install = [*uv, "pip", "install", "--quiet", "--python", python]
    made = (
        run(*uv, "venv", "--quiet", "--python", sys.executable, str(folder)) == 0
        and run(*install, "--resolution", RESOLUTIONS[end], "--editable", ".[all]") == 0
        and run(*install, *test_tools()) == 0
    )
    if not made:
        print(f"{end}: the environment could not be made", file=sys.stderr)
        return False
    print(f"--- {end} versions ---", flush=True)
    run(*uv, "pip", "freeze", "--python", python)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return run(python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *TESTS, env=environment) == 0


def main(ends: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="punchlist-versions-") as name:
        failed = [end for end in ends or list(RESOLUTIONS) if not tested(end, Path(name) / end)]
    if failed:
        print(f"failed with the {' and '.join(failed)} versions", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
