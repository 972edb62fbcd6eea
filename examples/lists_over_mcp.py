"""An agent's session in one minute: the agent writes a checklist and works through a plan over MCP.

Only the agent is scripted: `punchlist mcp` is started as an agent would start it, the lists are stored in a database in
a temporary folder, and the output comes from `punchlist todos`, `log` and `db check` in that folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PUNCHLIST = [sys.executable, "-m", "punchlist"]
ON_TERMINAL = sys.stdout.isatty()


class Agent:
    """A minimal MCP client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = iter(range(1, 1_000_000))
        self.process = subprocess.Popen(
            [*PUNCHLIST, "mcp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
        self.ask("initialize", hello)

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=10)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        request = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        result: dict[str, Any] = json.loads(self.process.stdout.readline())["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        text = json.dumps(arguments, ensure_ascii=False)
        dim(f"agent → {tool} {text if len(text) < 100 else text[:99] + '…'}")
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result["isError"]:
            dim(f"      ← refused: {result['content'][0]['text']}")
            return {}
        data: dict[str, Any] = result["structuredContent"]
        return data

    def checklist(self, *statuses: str) -> None:
        items = [
            ("Reproduce the bug", "Reproducing the bug"),
            ("Fix the parser", "Fixing the parser"),
            ("Run the tests", "Running the tests"),
        ]
        todos = [
            {"content": content, "activeForm": active, "status": status}
            for (content, active), status in zip(items, statuses, strict=True)
        ]
        self.call("TodoWrite", todos=todos)
        show(self.folder, "todos")


def dim(text: str) -> None:
    print(f"\x1b[2m{text}\x1b[0m" if ON_TERMINAL else text, flush=True)


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def show(folder: Path, *command: str) -> None:
    """Runs a command as a person in that folder would."""
    subprocess.run([*PUNCHLIST, *command], cwd=folder, check=True)
    if ON_TERMINAL:
        time.sleep(0.6)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="punchlist-demo-") as name:
        folder = Path(name)
        (folder / "punchlist.toml").touch()

        say("1. The checklist of the session: the agent writes it, people watch it (`punchlist todos --watch`).")
        with Agent(folder) as agent:
            agent.checklist("in_progress", "pending", "pending")
            agent.checklist("completed", "in_progress", "pending")
            dim("      … only one item can be in progress at a time:")
            agent.checklist("completed", "in_progress", "in_progress")

        say("2. The agent's process has ended. Its lists are stored:")
        with Agent(folder) as agent:
            show(folder, "todos")

            say("3. The plan of the turn: created once, completed item by item.")
            titles = ["Read the failing test", "Patch the tokenizer", "Add a regression test"]
            created = agent.call("create_todo", items=[{"title": title} for title in titles])["created"]
            for todo, outcome in zip(created, ["It drops CRLF", "Patched", "Added"], strict=True):
                agent.call("start_todo", todoId=todo["id"])
                left = agent.call("complete_todo", todoId=todo["id"], outcome=outcome)["remaining"]
                dim(f"      ← {left} remaining")
            show(folder, "todos")
            agent.checklist("completed", "completed", "completed")

        say("4. Who changed what, when and why (`punchlist log`), and a check of the database (`punchlist db check`):")
        show(folder, "log", "--limit", "4")
        show(folder, "db", "check")


if __name__ == "__main__":
    main()
