"""Stands for the program of an agent: it starts our MCP server and our hooks as its own children.

    python -m tests.surfaces.host_program PROJECT AGENT [SERVER HOOKS]

SERVER and HOOKS are what it starts us with, if not with Python itself. A line of JSON in: {"tool", "arguments"} for a
call to the server, {"hook", "said"} for a hook; the answer out. With {"inside": AGENT}, another such program below this
one is asked.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.conftest import ROOT
from tests.surfaces.mcp_client import PROGRAM, WireClient


class Host:
    """The program, as one process."""

    def __init__(
        self,
        project: str | Path,
        agent: str,
        environment: Mapping[str, str],
        *,
        server: str = shlex.join(PROGRAM),
        hooks: str = shlex.join(PROGRAM),
    ) -> None:
        command = [sys.executable, "-m", "tests.surfaces.host_program", str(project), agent, server, hooks]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=30)


def main(project: str, agent: str, server: str = shlex.join(PROGRAM), hooks: str = shlex.join(PROGRAM)) -> None:
    inside: dict[str, Host] = {}
    with ExitStack() as open_ones:
        client = open_ones.enter_context(
            WireClient(Path(project), dict(os.environ), "--for", agent, program=shlex.split(server))
        )
        for line in sys.stdin:
            request = json.loads(line)
            if (inner := request.pop("inside", None)) is not None:
                if inner not in inside:
                    inside[inner] = open_ones.enter_context(Host(project, inner, os.environ))
                answer = inside[inner].ask(**request)
            elif "tool" in request:
                answer = client.call(request["tool"], **request["arguments"])
            else:
                said = json.dumps({"cwd": project, **request["said"]})
                # Through a shell, as the programs do it.
                command = f"{hooks} hook {request['hook']} --for {request.get('as', agent)}; true"
                done = subprocess.run(command, shell=True, input=said, capture_output=True, text=True, check=True)
                answer = json.loads(done.stdout)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
