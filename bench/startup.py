"""Start-up times of commands, hooks and `punchlist mcp`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.figures import Bench, Figure, Limits, Operation, interleave
from bench.jsonrpc import Client
from bench.processes import PUNCHLIST, PYTHON, compile_all, environment
from bench.rows import session_name
from bench.sample_databases import CHECKLIST, SCRATCH, database

HANDFUL = 10


def measure(bench: Bench) -> Iterator[Figure]:
    sizes = bench.sizes
    compile_all()
    few, many = database(HANDFUL), database(sizes.many)

    def process(*command: str, path: Path = few, session: str = session_name(0), stdin: object = None) -> Operation:
        settings = environment(bench.folder, path, session)
        data = json.dumps(stdin).encode()
        return lambda: subprocess.run(
            command, cwd=bench.folder, env=settings, input=data, stdout=subprocess.DEVNULL, check=True
        )

    event = {"session_id": "bench", "cwd": str(bench.folder), "tool_name": "Bash", "prompt": "Go on."}
    list_event = {**event, "tool_name": "TodoWrite", "tool_input": {"todos": CHECKLIST}}
    new = bench.folder / "new" / "punchlist.db"
    copy = process(PUNCHLIST, "hook", "tool", path=new, stdin=list_event)

    def first_list() -> None:
        copy()
        assert new.exists()
        shutil.rmtree(new.parent)

    bare, help, todos, todos_among_many, stop, clear, prompt, start, tool, first = interleave(
        process(PYTHON, "-c", "pass"),
        process(PUNCHLIST, "--help"),
        process(PUNCHLIST, "todos"),
        process(PUNCHLIST, "todos", path=many),
        process(PUNCHLIST, "hook", "stop", stdin=event),
        process(PUNCHLIST, "hook", "stop", session="empty", stdin=event),
        process(PUNCHLIST, "hook", "prompt", stdin=event),
        process(PUNCHLIST, "hook", "session-start", stdin=event),
        process(PUNCHLIST, "hook", "tool", stdin=event),
        first_list,
        rounds=sizes.spawns,
    )
    yield Figure("punchlist --help, above python", help, bare, Limits(above=0.200))
    yield Figure("punchlist todos, above python", todos, bare, Limits(above=0.400))
    yield Figure("punchlist hook stop, above python", stop, bare, Limits(above=0.400))
    yield Figure("punchlist hook stop, nothing open, above python", clear, bare, Limits(above=0.200))
    yield Figure("punchlist hook prompt, above python", prompt, bare, Limits(above=0.400))
    yield Figure("punchlist hook session-start, above python", start, bare, Limits(above=0.400))
    yield Figure("punchlist hook tool, above python", tool, bare, Limits(above=0.150))
    yield Figure("punchlist hook tool, the first list of a project, above python", first, bare, Limits(above=0.400))
    yield Figure(
        f"punchlist todos, {sizes.many:,} against {HANDFUL} todos",
        todos_among_many,
        todos,
        Limits(times=1.2, above=0.050),
    )

    answers = [first_answers(bench.folder, few) for _ in range(sizes.spawns)]
    yield Figure("punchlist mcp, first answer", [answer for answer, _ in answers], limits=Limits(seconds=1.2))
    yield Figure("punchlist mcp, first tool call", [call for _, call in answers])


def first_answers(folder: Path, path: Path) -> tuple[float, float]:
    """Seconds from the start of the server to its answer to `initialize`, and to the answer to a first tool call."""
    settings = environment(folder, path, SCRATCH + "startup")
    begin = perf_counter()
    with Client([PUNCHLIST, "mcp"], folder=folder, environment=settings) as client:
        client.initialize()
        answered = perf_counter() - begin
        client.call("TodoWrite", {"todos": CHECKLIST})
        return answered, perf_counter() - begin
