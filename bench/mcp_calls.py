"""Tool calls over MCP stdio, against the SDK's own server doing nothing, both asked by one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench import nothing_server
from bench.filling import SCRATCH, database
from bench.jsonrpc import Client
from bench.measuring import Bench, Figure, Limits, Operation, interleave
from bench.processes import PUNCHLIST, PYTHON, environment
from bench.rows import ACTOR, ITEM, TODOS_PER_TURN
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.storage.open import open_store

SESSION: Final = SCRATCH + "calls"
LIMIT: Final = Limits(times=2.0)


def measure(bench: Bench) -> Iterator[Figure]:
    path = database(bench.sizes.few)
    settings = environment(bench.folder, path, SESSION)
    with (
        closing(open_store(str(path))) as store,
        Client([PUNCHLIST, "mcp"], folder=bench.folder, environment=settings) as ours,
        Client([PYTHON, str(Path(nothing_server.__file__))], folder=bench.folder, environment=settings) as sdk,
    ):
        ours.initialize()
        sdk.initialize()
        nothing, todo_write, create_todo, _ = interleave(
            lambda: sdk.call("nothing", {}),
            calls(ours, "TodoWrite", checklist),
            calls(ours, "create_todo", lambda _: {"items": [{"title": ITEM.title, "context": ITEM.context}]}),
            fresh_turns(Conversations(store)),
            rounds=bench.sizes.rounds,
        )
    yield Figure("TodoWrite over MCP", todo_write, nothing, LIMIT)
    yield Figure("create_todo over MCP", create_todo, nothing, LIMIT)


def calls(client: Client, tool: str, arguments: Callable[[int], dict[str, Any]]) -> Operation:
    numbers = count()
    return lambda: client.call(tool, arguments(next(numbers)))


def checklist(number: int) -> dict[str, Any]:
    """Three items, whose first differs from call to call: a real change each time."""
    wording = [f"Read chapter {number % 2}", "Write the tests", "Run the tests"]
    states = ["in_progress", "pending", "pending"]
    return {
        "todos": [
            {"content": content, "activeForm": content, "status": status}
            for content, status in zip(wording, states, strict=True)
        ]
    }


def fresh_turns(conversations: Conversations) -> Operation:
    """A new turn every ten rounds, so that plans stay as long as plans are."""
    scope, numbers = Scope(SESSION, ACTOR), count()

    def turn_over() -> None:
        if next(numbers) % TODOS_PER_TURN == 0:
            conversations.end_turn(scope, reason="bench")
            conversations.open_turn(scope)

    return turn_over
