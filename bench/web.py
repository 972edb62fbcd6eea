"""`punchlist serve` on SQLite with 1,000 todos: mixed reads at 200 requests per second, of the API and with pages among
them, and 1,000 event streams.

The server and the client that sends the requests share the cores of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from bench.figures import Bench, Figure, Limits
from bench.views import PERSON, SLUG, escalate, fill
from punchlist.app import Services
from punchlist.config import load
from punchlist.kernel.events import Role
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority

RATE: Final = 200
P99: Final = 0.150
DELAY: Final = 0.300
MEMORY: Final = 300_000_000


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    seconds, streams = (2, 50) if quick else (10, 1_000)
    folder = bench.folder / "web"
    (folder / ".git").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PUNCHLIST_", "XDG_"))}
    environment = {**kept, "HOME": str(folder)}
    os.environ["HOME"] = str(folder)
    services = Services(load(environment=environment, cwd=folder))
    with closing(services):
        todo_id, _ = fill(services.store, 1_000, 1_000)
        escalate(services.store, 20)
        token = services.tokens.create(PERSON, "bench", Role.PERSON, timedelta(days=1)).text
        with start_server(folder, environment) as (port, process):
            paths = [
                f"/api/v1/missions/{SLUG}/board?limit=100",
                f"/api/v1/todos/{todo_id}",
                "/api/v1/inbox",
                "/api/v1/activity?after=1000&limit=50",
            ]
            pages = [f"/missions/{SLUG}/board", f"/todos/{todo_id}", "/"]
            times = sorted(asyncio.run(_mixed_reads(port, token, paths, RATE * seconds)))
            yield Figure(f"web: {RATE} reads/s, p50", [times[len(times) // 2]])
            yield Figure(f"web: {RATE} reads/s, p99", [times[int(len(times) * 0.99)]], limits=Limits(seconds=P99))
            times = sorted(asyncio.run(_mixed_reads(port, token, [*paths, *pages], RATE * seconds)))
            yield Figure(f"web: {RATE} reads/s with pages, p50", [times[len(times) // 2]])
            yield Figure(
                f"web: {RATE} reads/s with pages, p99", [times[int(len(times) * 0.99)]], limits=Limits(seconds=P99)
            )
            delays = asyncio.run(_streams(services, port, token, streams))
            # The slowest of all streams, for each event.
            yield Figure(f"web: event of another process on {streams} streams", delays, limits=Limits(seconds=DELAY))
            memory = _memory(process.pid)
            if memory > MEMORY:
                raise AssertionError(f"{streams} streams need {memory / 1e6:.0f} MB")
            print(f"web: {streams} open streams, {memory / 1e6:.0f} MB in the server, none missed", file=sys.stderr)


@contextmanager
def start_server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "punchlist", "serve", "--no-worker", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)\.", process.stdout.readline())
        assert found is not None
        yield int(found[1]), process
    finally:
        process.terminate()
        process.wait(20)


async def _mixed_reads(port: int, token: str, paths: list[str], number: int) -> list[float]:
    """Requests at a fixed rate, on connections that stay open; each time is counted from when it was due."""
    idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(32):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    begin, times = time.perf_counter(), list[float]()

    async def send(place: int) -> None:
        due = begin + place / RATE
        await asyncio.sleep(due - time.perf_counter())
        reader, writer = await idle.get()
        writer.write(_request(port, token, paths[place % len(paths)]))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        times.append(time.perf_counter() - due)
        idle.put_nowait((reader, writer))

    await asyncio.gather(*(send(place) for place in range(number)))
    while not idle.empty():
        idle.get_nowait()[1].close()
    return times


async def _streams(services: Services, port: int, token: str, number: int) -> list[float]:
    """The delay of each event on the slowest stream; fails if a stream misses one."""
    connections = []
    for _ in range(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_request(port, token, "/api/v1/events"))
        connections.append((reader, writer))
    for reader, _ in connections:
        await reader.readuntil(b"event: position\n")
    todo = services.mission_todos.list(SLUG, limit=1).items[0]
    delays = []
    for place in range(5):
        wanted = asyncio.gather(*(_next_event(reader) for reader, _ in connections))
        await asyncio.sleep(0.2)
        priority = (TodoPriority.LOW, TodoPriority.HIGH)[place % 2]
        await asyncio.to_thread(
            services.mission_todos.update, PERSON, SLUG, todo.id, TodoAction.REPRIORITIZE, "bench", priority=priority
        )
        committed = time.perf_counter()
        arrived = await asyncio.wait_for(wanted, 30)
        delays.append(max(arrived) - committed)
    for _, writer in connections:
        writer.close()
    return delays


async def _next_event(reader: asyncio.StreamReader) -> float:
    line = b""
    while not (line.startswith(b"data:") and json.loads(line[5:]).get("action") == "reprioritize"):
        line = await reader.readuntil(b"\n")
    return time.perf_counter()


def _request(port: int, token: str, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def _memory(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1_024
