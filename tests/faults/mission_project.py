"""The mission of the demonstration in a folder of its own, with scripts that leave a mark at their end; and how it
stands, in a form that two stores can be compared by."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.faults.mission_worker import SLUG, Task

from punchlist import demo
from punchlist.conversations.model import Notice
from punchlist.storage.store import Store
from punchlist.wiring import House

DEMO: Final = Path(demo.__file__).parent / "mission"
MARKS: Final = "marks"
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOTICES: Final = frozenset(notice.value for notice in Notice)


def mission_project(folder: Path, database: str, rehearsal: str | None = None, **more: Any) -> Task:
    """A folder to work in; `rehearsal` instead of what is said in the demonstration."""
    shutil.copytree(DEMO / "project", folder)
    (folder / ".git").mkdir()
    for script in folder.glob("*.sh"):
        with script.open("a") as file:
            file.write(f"echo {script.stem} >> {MARKS}\n")
    (folder / "rehearsal.yaml").write_text(rehearsal or (DEMO / "rehearsal.yaml").read_text())
    return Task(str(folder), database, str(folder.parent / "home"), **more)


def marks(task: Task) -> list[str]:
    file = Path(task.folder) / MARKS
    return file.read_text().split() if file.exists() else []


def standing(house: House) -> dict[str, Any]:
    """What must be the same whatever happened on the way there."""
    mission = house.missions.get(SLUG)
    todos = house.mission_todos.list(SLUG).items
    runs = house.runs.list(mission_id=mission.id, ended=True, most=1_000)
    return {
        "todos": sorted((todo.title, todo.status.value, todo.outcome) for todo in todos),
        "readings": {
            view.metric.slug: [(one.value, one.source) for one in view.readings]
            for view in house.metrics.show(SLUG, most=100)
        },
        "runs": sorted((run.kind.value, run.status.value, _ID.sub("#", run.result or run.why)) for run in runs),
        "chats": {chat: said(house, chat) for chat in chats(house.store)},
    }


def chats(store: Store) -> list[str]:
    with store.read() as tx:
        return [id for (id,) in tx.raw("SELECT id FROM conversations ORDER BY id")]


def said(house: House, chat: str) -> list[tuple[str, str, str]]:
    """Messages by who and what; posts and replies with their words."""
    told = []
    for message in house.conversations.messages(chat):
        whole = message.kind in _NOTICES or message.role == "assistant"
        told.append((message.role, message.kind, _ID.sub("#", message.content) if whole else ""))
    return told


def calls(store: Store) -> Counter[tuple[str, str]]:
    """Tool calls by tool and what became of them."""
    with store.read() as tx:
        return Counter((tool, status) for tool, status in tx.raw("SELECT tool, status FROM tool_calls"))


def progress(store: Store) -> int:
    """How many changes there were so far."""
    with store.read() as tx:
        return int(tx.raw("SELECT count(*) FROM events")[0][0])
