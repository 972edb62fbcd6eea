"""A client that speaks the wire by hand, for what a well-behaved client would never send."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final

Json = dict[str, Any]
PROGRAM: Final = (sys.executable, "-m", "punchlist")


class WireClient:
    def __init__(
        self, project: Path, environment: dict[str, str], *arguments: str, program: Sequence[str] = PROGRAM
    ) -> None:
        self.process = subprocess.Popen(
            [*program, "mcp", *arguments],
            cwd=project,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._id = 0
        # Read all the time, as a client must: a server that cannot write does not read either.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        # The server may be below what was started, and ends with its input.
        self.stdin.close()
        self._reader.join(timeout=10)
        for pipe in (self.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        self.process.wait(timeout=10)

    def _read_lines(self) -> None:
        for line in self.stdout:
            self._lines.put(line)

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def read(self, seconds: float = 10.0) -> Any:
        """The next message, within a bounded time."""
        return json.loads(self._lines.get(timeout=seconds))

    def ask(self, method: str, params: Json | None = None) -> Json:
        """Send a request and wait for its answer; notifications in between are dropped."""
        self._id += 1
        self.write(
            json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}).encode() + b"\n"
        )
        while True:
            message: Json = self.read()
            if message.get("id") == self._id:
                return message

    def call(self, tool: str, **arguments: Any) -> Json:
        result: Json = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return result

    def close(self) -> tuple[list[bytes], bytes]:
        """Close our end; what the server still had to say, and its log."""
        self.stdin.close()
        self.process.wait(timeout=10)
        self._reader.join(timeout=10)
        rest = [self._lines.get() for _ in range(self._lines.qsize())]
        assert self.process.stderr
        return rest, self.process.stderr.read()
