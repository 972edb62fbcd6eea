"""Tool calls over MCP stdio, against a no-op tool of the SDK's server, both called by the same client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench import noop_server
from bench.figures import Bench, Figure, Limits, Operation, interleave
from bench.jsonrpc import Client
from bench.processes import PUNCHLIST, PYTHON, environment
from bench.rows import ACTOR, ITEM, TODOS_PER_TURN
from bench.sample_databases import SCRATCH, database
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
        Client([PYTHON, str(Path(noop_server.__file__))], folder=bench.folder, environment=settings) as sdk,
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
    """Three items; the first changes with each call, so that every call changes the list."""
    contents = [f"Read chapter {number % 2}", "Write the tests", "Run the tests"]
    states = ["in_progress", "pending", "pending"]
    return {
        "todos": [
            {"content": content, "activeForm": content, "status": status}
            for content, status in zip(contents, states, strict=True)
        ]
    }


def fresh_turns(conversations: Conversations) -> Operation:
    """Opens a new turn every ten rounds, so that plans keep a realistic length."""
    scope, numbers = Scope(SESSION, ACTOR), count()

    def next_turn() -> None:
        if next(numbers) % TODOS_PER_TURN == 0:
            conversations.end_turn(scope, reason="bench")
            conversations.open_turn(scope)

    return next_turn
