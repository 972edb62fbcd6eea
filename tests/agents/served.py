"""opencode without a person: its server, a session in it, and what it tells of that until it has ended."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.request import Request, urlopen

from tests.agents.scripts import DONE

_AT: Final = re.compile(r"listening on (http://\S+)")


def run(command: list[str], folder: Path, environment: Mapping[str, str], prompt: str, seconds: float) -> str:
    """What was said in a session, and what Punchlist told the person."""
    with serving(command, folder, environment, seconds) as session:
        session.ask(prompt)
        said = []
        for event, about in session.events():
            if event == "message.part.updated" and about["part"].get("text"):
                said.append(about["part"]["text"])
            elif event == "tui.toast.show":
                return "\n".join([*said, about["message"]])
            elif event == "session.idle" and said[-1:] == [DONE]:
                break
        return "\n".join(said)


@dataclass(frozen=True, slots=True)
class Session:
    address: str
    id: str
    stream: IO[bytes]
    deadline: float

    def ask(self, prompt: str) -> None:
        _post(f"{self.address}/session/{self.id}/prompt_async", {"parts": [{"type": "text", "text": prompt}]})

    def abort(self) -> None:
        _post(f"{self.address}/session/{self.id}/abort", {})

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self.stream:
            assert time.monotonic() < self.deadline, "it did not end"
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                yield event["type"], event.get("properties", {})
        raise AssertionError("the server left")


@contextmanager
def serving(command: list[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Iterator[Session]:
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile("w+") as errors:
        server = subprocess.Popen(
            [*command, "serve", "--hostname", "127.0.0.1", "--port", "0", "--print-logs"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            address = _address(server)
            with urlopen(f"{address}/event", timeout=60) as stream:
                yield Session(address, _post(f"{address}/session", {})["id"], stream, deadline)
        except (OSError, AssertionError) as error:
            errors.seek(0)
            raise AssertionError(f"{error}\n{errors.read()[-20_000:]}") from error
        finally:
            _end(server)


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout
    for line in server.stdout:
        if found := _AT.search(line):
            return found[1]
    raise AssertionError("the server did not start")


def _end(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stdout:
        server.stdout.close()


def _post(address: str, body: dict[str, Any]) -> Any:
    request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        content = answer.read()
    return json.loads(content) if content else None
