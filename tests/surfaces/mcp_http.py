"""`punchlist mcp --http` as a process, and a client that sends whatever it is told to."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

Json = dict[str, Any]

ACCEPT = "application/json, text/event-stream"
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class HttpServer:
    def __init__(
        self, project: Path, environment: dict[str, str], *arguments: str, max_open_files: int | None = None
    ) -> None:
        limited = ["sh", "-c", f'ulimit -n {max_open_files}; exec "$@"', "sh"] if max_open_files else []
        self.process = subprocess.Popen(
            [*limited, sys.executable, "-m", "punchlist", "mcp", "--http", "--port", "0", *arguments],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        self.line = self.process.stderr.readline()
        told = re.fullmatch(r"punchlist: (http://127\.0\.0\.1:(\d+)/mcp) token: (.+)\n", self.line)
        assert told, self.line + self.process.stderr.read()
        self.url, self.port, self.token = told[1], int(told[2]), told[3]

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.stop()

    def stop(self) -> str:
        """End it; what it has written on standard error since the first line."""
        self.process.terminate()
        return self.process.communicate(timeout=20)[1]

    def client(self, token: str | None = None) -> HttpClient:
        return HttpClient(self.port, token or self.token)


class HttpClient:
    """Each request on a connection of its own."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.session: str | None = None
        self._id = 0

    def headers(self, **changes: str | None) -> dict[str, str]:
        """Those of a good request; `None` leaves one out, `_` stands for `-`."""
        headers = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": ACCEPT,
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        for name, value in changes.items():
            headers.pop(name.replace("_", "-"), None)
            if value is not None:
                headers[name.replace("_", "-")] = value
        return headers

    @contextmanager
    def open(self, method: str, body: bytes | None, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.putrequest(method, "/mcp", skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            with connection.getresponse() as response:
                yield response

    def send(self, method: str, body: bytes | None = None, **changes: str | None) -> tuple[int, bytes]:
        with self.open(method, body, self.headers(**changes)) as response:
            return response.status, response.read()

    def post(self, message: Any, **changes: str | None) -> tuple[int, Any]:
        status, body = self.send("POST", json.dumps(message).encode(), **changes)
        return status, json.loads(body) if body else None

    def request(self, method: str, params: Json | None = None) -> Json:
        self._id += 1
        return {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}

    def begin(self, capabilities: Json | None = None) -> None:
        """The handshake."""
        asked = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": {}}
        message = json.dumps(self.request("initialize", asked)).encode()
        with self.open("POST", message, self.headers(Mcp_Session_Id=None)) as response:
            assert response.status == 200, response.read()
            self.session = response.headers["Mcp-Session-Id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202

    def ask(self, method: str, params: Json | None = None) -> Json:
        status, answer = self.post(self.request(method, params))
        assert status == 200, answer
        answered: Json = answer
        return answered

    def call(self, tool: str, **arguments: Any) -> Json:
        result: Json = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return result

    def stateless(self, method: str, params: Json | None = None, **changes: str | None) -> tuple[int, Any]:
        params = {"_meta": STATELESS, **(params or {})}
        named = params.get("name", params.get("uri"))
        told: dict[str, str | None] = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method, "Mcp_Name": named}
        return self.post(self.request(method, params), Mcp_Session_Id=None, **{**told, **changes})


def events(response: http.client.HTTPResponse) -> Iterator[Json]:
    """The messages of a stream, as they arrive."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])
