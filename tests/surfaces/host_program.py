"""Stands for the program of an agent: it starts our MCP server and our hooks as its own children.

    python -m tests.surfaces.host_program PROJECT AGENT

A line of JSON in: {"tool", "arguments"} for a call to the server, {"hook", "said"} for a hook; the answer out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.surfaces.mcp_client import WireClient


def main(project: str, agent: str) -> None:
    with WireClient(Path(project), dict(os.environ), "--for", agent) as client:
        for line in sys.stdin:
            request = json.loads(line)
            if "tool" in request:
                answer = client.call(request["tool"], **request["arguments"])
            else:
                said = json.dumps({"cwd": project, **request["said"]})
                # Through a shell, as the programs do it.
                command = f"'{sys.executable}' -m punchlist hook {request['hook']} --for {agent}; true"
                done = subprocess.run(command, shell=True, input=said, capture_output=True, text=True, check=True)
                answer = json.loads(done.stdout)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
