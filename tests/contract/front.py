"""The doors that the contract tests go through, and how they look at what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text
from tests.tables import engine_of, our_tables

from punchlist.checklist.service import Checklists
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Event
from punchlist.kernel.tool import ToolResult
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage import event_log
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Store

Row = tuple[Any, ...]


def todo(content: Any = "A", status: Any = "pending", **more: Any) -> dict[str, Any]:
    """An item as an agent sends it."""
    return {"content": content, "status": status, "activeForm": f"Doing {content}", **more}


def todo_write(checklists: Checklists, scope: Scope, todos: Any) -> ToolResult:
    (tool,) = checklist_tools(lambda: checklists)
    return tool.run(scope, {"todos": todos})


def call(plans: Plans, scope: TurnScope, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Call one of the plan's tools as a model does; what programs get of the result."""
    (tool,) = [tool for tool in plan_tools(lambda: plans) if tool.name == name]
    data: dict[str, Any] = tool.run(scope, arguments).data
    return data


def plan(plans: Plans, scope: TurnScope, *titles: str) -> list[str]:
    """Put todos on the plan; their ids."""
    created = call(plans, scope, "create_todo", items=[{"title": title} for title in titles])["created"]
    return [made["id"] for made in created]


def everything(store: Store) -> dict[str, list[Row]]:
    """Every row of every table."""
    with store.read() as tx:
        return {
            name: tx.all(Statement(f"SELECT * FROM {name} ORDER BY {columns(table.primary_key.c.keys())}"))
            for name, table in our_tables().tables.items()
        }


def trail(store: Store, stream: str | None = None) -> list[Event]:
    with store.read() as tx:
        return [event for event in event_log.after(tx, 0, limit=1_000_000) if stream in (None, event.stream)]


@contextmanager
def nothing_changes(store: Store) -> Iterator[None]:
    before = everything(store)
    yield
    assert everything(store) == before


def by_hand(store: Store, sql: str, **values: Any) -> None:
    """Change the database behind the program's back."""
    with engine_of(store).begin() as connection:
        connection.execute(text(sql), values)
