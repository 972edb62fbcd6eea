"""The base install: a new environment with nothing but the wheel and what the wheel requires (X8)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.conftest import ROOT

pytestmark = pytest.mark.spec("X8")
MAX_PACKAGES = 15
MAX_MEGABYTES = 40


def required(names: list[str]) -> dict[str, Distribution]:
    """The distributions that these need, themselves included."""
    found: dict[str, Distribution] = {}
    while names:
        name = names.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        for line in found[name].requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                names.append(needed.name)
    return found


@pytest.fixture(scope="module")
def base() -> dict[str, Distribution]:
    direct = [Requirement(line) for line in distribution("punchlist").requires or []]
    return required([one.name for one in direct if one.marker is None or one.marker.evaluate({"extra": ""})])


@pytest.fixture(scope="module")
def environment(base: dict[str, Distribution], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and its requirements, made without a network."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder / "venv", with_pip=False)
    library = next((folder / "venv").glob("lib/python*/site-packages"))
    for package in base.values():
        for file in package.files or []:
            source = Path(str(package.locate_file(file)))
            if ".." in file.parts or not source.is_file():
                continue
            (library / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, library / file)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv/bin/python")]
    wheel = str(next(folder.glob("*.whl")))
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    return folder / "venv"


class Program:
    """The `punchlist` of the light environment, in a project of its own."""

    def __init__(self, environment: Path, project: Path) -> None:
        self.project = project
        self._command = environment / "bin" / "punchlist"
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(project / "home"),
            "XDG_DATA_HOME": str(project / "home/data"),
            "LANG": "C",
            "COLUMNS": "40",
        }
        (project / "home").mkdir()
        (project / ".git").mkdir()

    def __call__(
        self, *arguments: str, given: str = "", code: int = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self._command, *arguments],
            cwd=self.project,
            env=self._env | (env or {}),
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done


@pytest.fixture
def punchlist(environment: Path, tmp_path: Path) -> Program:
    return Program(environment, tmp_path)


def test_the_base_install_is_small(base: dict[str, Distribution], environment: Path) -> None:
    size = sum(file.stat().st_size for file in environment.rglob("*") if file.is_file() and not file.is_symlink())
    assert len(base) + 1 <= MAX_PACKAGES, sorted(base)
    assert size <= MAX_MEGABYTES * 1_000_000
    assert not {"sqlalchemy", "dbos", "pydantic", "pydantic-ai-slim", "starlette", "openai", "anthropic"} & set(base)


def test_lists_work(punchlist: Program) -> None:
    punchlist("todos", "add", "Write the parser")
    shown = json.loads(punchlist("todos", "--json").stdout)
    assert [item["title"] for item in shown["items"]] == ["Write the parser"]
    assert "Write the parser" in punchlist("todos").stdout


def test_mcp_over_stdio_works(punchlist: Program) -> None:
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "create_todo", "arguments": {"items": [{"title": "From MCP"}]}},
        },
    ]
    answers = punchlist("mcp", given="".join(f"{json.dumps(message)}\n" for message in messages)).stdout.splitlines()
    created = next(answer for line in answers if (answer := json.loads(line)).get("id") == 2)
    assert created["result"]["structuredContent"]["created"][0]["title"] == "From MCP"


def test_the_stop_hook_works(punchlist: Program) -> None:
    event = {"session_id": "a", "cwd": str(punchlist.project), "hook_event_name": "Stop", "stop_hook_active": False}
    assert punchlist("hook", "stop", given=json.dumps(event)).stdout.strip() in {"", "{}"}
    todos = {"todos": [{"content": "Write it", "status": "pending", "activeForm": "Writing it"}]}
    use = event | {"hook_event_name": "PostToolUse", "tool_name": "TodoWrite", "tool_input": todos}
    punchlist("hook", "tool", given=json.dumps(use))
    answer = json.loads(punchlist("hook", "stop", given=json.dumps(event)).stdout)
    assert answer["decision"] == "block"
    assert "Write it" in answer["reason"]


def test_install_and_import_and_export_work(punchlist: Program) -> None:
    punchlist("install", "claude-code", "--yes")
    assert "punchlist" in (punchlist.project / ".claude/settings.json").read_text()
    punchlist("uninstall", "claude-code", "--yes")
    (punchlist.project / "TODO.md").write_text("- [ ] One\n- [x] Two\n")
    punchlist("import", "TODO.md")
    assert "One" in punchlist("export", "out.md").stdout + (punchlist.project / "out.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["run", "Do it", "--model", "openai:gpt"], "agent"),
        (["demo"], "agent"),
        (["worker"], "missions"),
        (["mcp", "--http"], "missions"),
        (["mission", "apply", "mission.json", "--yes"], "missions"),
        (["todos"], "postgres"),
    ],
    ids=["run", "demo", "worker", "mcp over http", "mission apply", "postgres"],
)
def test_a_missing_extra_is_named_with_its_install_line(punchlist: Program, arguments: list[str], extra: str) -> None:
    (punchlist.project / "mission.json").write_text('{"name": "M", "slug": "m", "description": "d", "pillars": []}')
    env = {"PUNCHLIST_DATABASE_URL": "postgresql://127.0.0.1/x"} if extra == "postgres" else {}
    error = " ".join(punchlist(*arguments, code=2, env=env).stderr.split())
    assert f"pip install 'punchlist[{extra}]'" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("command", ["", "todos", "run", "mission", "inbox", "db"])
def test_help_fits_forty_columns_without_a_utf8_locale(punchlist: Program, command: str) -> None:
    shown = punchlist(*command.split(), "--help").stdout
    # An option name cannot be broken; everything else fits.
    assert all(len(line) <= 40 or line.lstrip().startswith("--") for line in shown.splitlines()), shown
    assert "…" not in shown
    assert "..." not in shown.replace("ARGS]...", "").replace("]...", "")
