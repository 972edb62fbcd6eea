"""A model that does what a test tells it, on loopback, for programs that ask over their own wire.

Each wire is a module in `wires/`: which paths it answers, what of a request a script wants to know, and how a
reply is put in its terms. What programs ask beside the conversation (titles, summaries, routing) comes without
our tools, and is answered with a word.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

JsonObject = dict[str, Any]

OURS: Final = "create_todo"
"""A request in which this tool is offered is one of the conversation."""


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Call:
    """Of a tool by our name for it; the wire finds the name under which it is offered."""

    tool: str
    arguments: JsonObject = field(default_factory=dict)


Reply = Say | Call


@dataclass(frozen=True)
class Asked:
    """What a program asked: the tools that it offers, and everything that was said so far."""

    tools: tuple[str, ...]
    heard: str = field(repr=False)
    body: JsonObject = field(repr=False)

    def offered(self, tool: str) -> str | None:
        return next((name for name in self.tools if name == tool or name.endswith(f"_{tool}")), None)


class Wire(Protocol):
    def answers(self, path: str) -> bool: ...
    def read(self, body: JsonObject) -> Asked: ...
    def write(self, reply: Reply, asked: Asked, path: str) -> tuple[str, bytes]:
        """The content type and the whole body."""
        ...


Script = Callable[[Asked], Reply]


@dataclass
class ScriptedModel:
    script: Script
    wires: Iterable[Wire]
    asked: list[Asked] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, path: str, body: JsonObject) -> tuple[str, bytes] | None:
        wire = next((wire for wire in self.wires if wire.answers(path)), None)
        if wire is None:
            self.strays.append(path)
            return None
        asked = wire.read(body)
        with self._lock:
            if asked.offered(OURS):
                self.asked.append(asked)
                reply = self.script(asked)
            else:
                reply = Say("Noted.")
        return wire.write(reply, asked, path)

    def heard(self, text: str) -> bool:
        """Whether a program said this to the model."""
        return any(text in asked.heard for asked in self.asked)


@contextmanager
def serving(script: Script, wires: Iterable[Wire]) -> Iterator[ScriptedModel]:
    model = ScriptedModel(script, tuple(wires))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            answered = model.reply(self.path, json.loads(self.rfile.read(length) or b"{}"))
            if answered is None:
                self.do_GET()
            else:
                self._send(200, *answered)

        def do_GET(self) -> None:
            self._send(404, "application/json", b"{}")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
