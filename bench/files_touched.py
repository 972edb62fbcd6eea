"""Count the source files that one operation touches: `python -m bench.files_touched [--list] [--reads] [SCENARIO...]`.

A file counts when at least one of its functions is called, start-up included. Module bodies, class bodies
and comprehensions are not functions. Each scenario runs in a fresh process on a small project that already
has a database, with a profiler hook that is installed before `punchlist` is imported.

`--reads` also prints how often each table is read between two model requests of the `run` scenario.
Exits with 1 when a scenario is above its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).resolve().parents[1] / "src" / "punchlist"
LIMITS: Final = {"run": 70, "mcp": 30, "hook": 28}
SCRIPT: Final = """\
- calls: [{tool: create_todo, arguments: {items: [{title: Read the notes}, {title: Write the answer}]}}]
- calls: [{tool: read_file, arguments: {path: notes.txt}}]
- calls: [{tool: complete_todo, arguments: {todoId: "{{ created[0].id }}", outcome: read}}]
- I will continue later.
- calls: [{tool: write_file, arguments: {path: answer.txt, content: "42"}}]
- calls: [{tool: complete_todo, arguments: {todoId: "{{ created[1].id }}", outcome: written}}]
- The answer is in answer.txt.
"""
MODEL: Final = os.path.join("models", "rehearsal.py")
COMPREHENSIONS: Final = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


@dataclass
class Profile:
    files: dict[str, list[str]] = field(default_factory=dict)
    """Functions called, by file."""
    statements: list[list[str]] = field(default_factory=lambda: [[]])
    """SQL statements, divided where the model is asked."""


# --- the profiled process ---------------------------------------------------------------------------------


def profile_command(report: Path, arguments: Sequence[str]) -> None:
    """Run `punchlist ARGUMENTS` in this process and write what it called to `report`."""
    import sqlite3
    import threading

    source, optimized = str(SOURCE) + os.sep, 0x1
    called: dict[Any, None] = {}
    statements: list[list[str]] = [[]]

    def on_event(frame: Any, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "ask" and code.co_filename.endswith(MODEL):
            statements.append([])
        # Function bodies have the flag; module and class bodies do not.
        if code.co_flags & optimized and code.co_name not in COMPREHENSIONS and code.co_filename.startswith(source):
            called[code] = None

    def write_report() -> None:
        files: dict[str, list[str]] = {}
        for code in called:
            files.setdefault(code.co_filename.removeprefix(source), []).append(code.co_qualname)
        report.write_text(json.dumps({"files": files, "statements": statements}))

    connect, leave = sqlite3.connect, os._exit

    def record(statement: str) -> None:
        statements[-1].append(statement)

    def traced_connect(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(record)
        return connection

    def report_and_leave(code: int) -> None:
        sys.setprofile(None)
        write_report()
        leave(code)

    sqlite3.connect = traced_connect  # type: ignore[assignment]
    os._exit = report_and_leave  # type: ignore[assignment]
    sys.argv = ["punchlist", *arguments]
    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        from punchlist.app import main

        main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        write_report()


# --- scenarios --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Project:
    folder: Path

    def start(self, *arguments: str, stdin: str = "", report: Path | None = None) -> str:
        """Standard output of `punchlist ARGUMENTS`, profiled when `report` is given."""
        foreign = ("PUNCHLIST_", "XDG_", "CLAUDE", "CODEX", "GEMINI")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment = {**kept, "HOME": str(self.folder), "PUNCHLIST_SESSION": "files-touched"}
        program = [sys.executable, "-c", "from punchlist.app import main; main()"]
        if report is not None:
            program = [sys.executable, str(Path(__file__).resolve()), "--profile", str(report)]
        done = subprocess.run(
            [*program, *arguments],
            cwd=self.folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"punchlist {' '.join(arguments)} failed ({done.returncode}):\n{done.stderr}")
        return done.stdout


def run_turn(project: Project, report: Path) -> None:
    (project.folder / "script.yaml").write_text(SCRIPT)
    (project.folder / "notes.txt").write_text("6 * 7\n")
    flags = ("--model", "rehearsal:script.yaml", "--mode", "yolo", "--session", "new", "--json")
    answer = json.loads(project.start("run", "Answer it.", *flags, report=report))
    assert (answer["reason"], answer["continuations"]) == ("completed", 1), answer


def mcp_create_todo(project: Project, report: Path | None) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    call = {"name": "create_todo", "arguments": {"items": [{"title": "Write it"}]}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    answers = [json.loads(line) for line in project.start("mcp", stdin=lines, report=report).splitlines()]
    result = next(answer["result"] for answer in answers if answer.get("id") == 2)
    assert not result.get("isError"), result


def stop_hook(project: Project, report: Path) -> None:
    event = {"session_id": "files-touched", "cwd": str(project.folder), "hook_event_name": "Stop"}
    answer = json.loads(project.start("hook", "stop", stdin=json.dumps(event), report=report))
    assert answer["decision"] == "block", answer


SCENARIOS: Final[dict[str, Callable[[Project, Path], None]]] = {
    "run": run_turn,
    "mcp": mcp_create_todo,
    "hook": stop_hook,
}


def profile(scenario: str) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        project, report = Project(Path(folder) / "project"), Path(folder) / "report.json"
        (project.folder / ".punchlist").mkdir(parents=True)
        mcp_create_todo(project, None)
        SCENARIOS[scenario](project, report)
        return Profile(**json.loads(report.read_text()))


# --- the report -------------------------------------------------------------------------------------------


def reads(statements: Sequence[str]) -> Counter[str]:
    """How many statements read each table."""
    import re

    found: Counter[str] = Counter()
    for statement in statements:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            found.update({table.lower() for table in re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", statement, re.IGNORECASE)})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition(":")[0])
    parser.add_argument("scenarios", nargs="*", help=f"from {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--list", action="store_true", help="print the files, and how many functions of each ran")
    parser.add_argument("--reads", action="store_true", help="print the tables read, by request to the model")
    options = parser.parse_args()
    too_many = False
    for scenario in options.scenarios or SCENARIOS:
        found, limit = profile(scenario), LIMITS[scenario]
        too_many |= len(found.files) > limit
        print(f"{scenario:5} {len(found.files):3} files (limit {limit})")
        if options.list:
            for name in sorted(found.files):
                print(f"      {len(found.files[name]):3} {name}  {' '.join(found.files[name][:3])}")
        if options.reads:
            for number, statements in enumerate(found.statements):
                tables = ", ".join(f"{table} {times}" for table, times in sorted(reads(statements).items()))
                print(f"      request {number}: {tables or 'none'}")
    return 1 if too_many else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profile"]:
        profile_command(Path(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(main())
