"""`punchlist serve` as a process, and clients of it."""

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


class WebProcess:
    def __init__(self, project: Path, environment: dict[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "punchlist", "serve", "--no-worker", "--port", "0", *arguments],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stopped = False
        assert self.process.stdout
        self.process.stdout.readline()
        link = self.process.stdout.readline()
        told = re.fullmatch(r"(http://127\.0\.0\.1:(\d+))/login\?code=(\S+)\n", link)
        if told is None:
            self.process.kill()
            raise AssertionError(link + self.process.communicate()[1])
        self.url, self.port, self.code = told[1], int(told[2]), told[3]

    def __enter__(self) -> WebProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._stopped:
            self.stop()

    def stop(self) -> str:
        self._stopped = True
        self.process.terminate()
        return self.process.communicate(timeout=20)[1]

    @contextmanager
    def open(
        self, method: str, path: str, token: str, body: Any = None, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            given = {"Authorization": f"Bearer {token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
            content = None
            if body is not None:
                content, given["Content-Type"] = json.dumps(body), "application/json"
            connection.request(method, path, content, given)
            with connection.getresponse() as response:
                yield response

    def send(self, method: str, path: str, token: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        with self.open(method, f"/api/v1{path}", token, body, **headers) as response:
            content = response.read()
            return response.status, json.loads(content) if content else None

    @contextmanager
    def events(self, token: str, query: str = "", **headers: str) -> Iterator[Iterator[Json]]:
        """The events of a stream, after its position; each with `id` and `event`."""
        with self.open("GET", f"/api/v1/events{query}", token, **headers) as response:
            assert response.status == 200, response.read()
            yield _parse(response)


def _parse(response: http.client.HTTPResponse) -> Iterator[Json]:
    fields: Json = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield {**json.loads(fields.pop("data")), **fields}
            fields = {}
