"""The mission of the demonstration in a folder of its own, with scripts that leave a mark at their end; and how it
stands, in a form that two stores can be compared by."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.faults.mission_worker import PERSON, SLUG, Life, Nursery, Task, until
from tests.sessions import start_session

from punchlist import demo
from punchlist.app import Services
from punchlist.conversations.model import NoticeKind, Scope
from punchlist.missions.chats import unquote
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store

DEMO: Final = Path(demo.__file__).parent / "mission"
MARKS: Final = "marks"
ONCE: Final = """
# Every change is made once: one that was interrupted is made by whoever goes on with the turn.
scenes:
  - agent: pillar-owner
    when: "## TODO Planning Cycle"
    replies:
      - calls: [{tool: mission_todo_create, arguments: {missionSlug: developer-experience, pillarSlug:
          build-performance, title: Profile the build, priority: high}}]
      - text: One TODO.
  - agent: mission-lead
    when: "## Mission Review Cycle"
    replies:
      - calls: [{tool: mission_todo_list, arguments: {missionSlug: developer-experience}}]
      - calls: [{tool: mission_todo_update, arguments: {missionSlug: developer-experience, todoId:
          "{{ items[0].id }}", action: start, reason: The build is too slow.}}]
      - text: It is being profiled.
  - agent: pillar-owner
    when: "Execute: Profile the build"
    replies:
      - calls: [{tool: delegate, arguments: {type: coder, mission: Measure it., async: true}}]
      - calls: [{tool: run_command, arguments: {command: sh profile.sh}}]
      - calls: [{tool: run_command, arguments: {command: sh share.sh}}, {tool: list_directory, arguments: {path: .}}]
      - text: The loader takes most of the time.
  - agent: pillar-owner
    when: "Results for: Profile the build"
    replies:
      - text: The loader takes most of the 72 seconds.
  - agent: coder
    when: "Measure it."
    replies:
      - calls: [{tool: run_command, arguments: {command: sh measure.sh}}]
      - text: It takes 72 seconds.
  - agent: mission-lead
    when: "Review: Profile the build.*todoId (?P<todo>[0-9a-f-]+)"
    replies:
      - calls:
          - tool: mission_todo_complete
            arguments: {missionSlug: developer-experience, todoId: "{{ todo }}", outcome: The loader is slow.,
              metricsImpacted: [local-build-time]}
          - tool: mission_todo_create
            arguments: {missionSlug: developer-experience, pillarSlug: build-performance, title: Replace the loader}
      - text: Next, the loader is to be replaced.
"""
DELAYED: Final = re.sub(r"- (text|calls):", r"- delay: 0.1\n        \1:", ONCE)
"""The same, by agents who take their time."""
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RECORD: Final = re.compile(r"Recorded by the program.*?(?=\n\nIf the criteria)", re.DOTALL)
_NOTICES: Final = frozenset(notice.value for notice in NoticeKind)


def mission_project(folder: Path, database: str, rehearsal: str = ONCE, **more: Any) -> Task:
    """A folder to work in, and what is said there. Its workers are of the user who runs the test."""
    shutil.copytree(DEMO / "project", folder)
    (folder / ".git").mkdir()
    (folder / "measure.sh").touch()
    for script in folder.glob("*.sh"):
        with script.open("a") as file:
            file.write(f"echo {script.stem} >> {MARKS}\n")
    (folder / "rehearsal.yaml").write_text(rehearsal)
    return Task(str(folder), database, os.environ["HOME"], **more)


def marks(task: Task) -> list[str]:
    file = Path(task.folder) / MARKS
    return file.read_text().split() if file.exists() else []


def standing(house: Services) -> dict[str, Any]:
    """What must be the same whatever happened on the way there."""
    mission = house.missions.get(SLUG)
    todos = house.mission_todos.list(SLUG).items
    runs = house.runs.list(mission_id=mission.id, ended=True, limit=1_000)
    return {
        "todos": sorted((todo.title, todo.status.value, todo.outcome) for todo in todos),
        "readings": {
            view.metric.slug: [(one.value, one.source) for one in view.readings]
            for view in house.metrics.views(SLUG, limit=100)
        },
        "runs": sorted((run.kind.value, run.status.value, _ID.sub("#", run.result or run.why)) for run in runs),
        "chats": sorted((_ID.sub("#", chat), said(house, chat)) for chat in chats(house.store)),
    }


def chats(store: Store) -> list[str]:
    with store.read() as tx:
        return [id for (id,) in tx.raw("SELECT id FROM conversations ORDER BY id")]


def said(house: Services, chat: str) -> list[tuple[str, str, str]]:
    """Messages by role and kind, posts and replies with their text; sorted, since posts can come at any moment.

    The record of the work is left out: it names the calls that a killed worker left unfinished.
    """
    told: list[tuple[str, str, str]] = []
    for message in house.conversations.messages(chat):
        whole = message.kind in _NOTICES or message.role == "assistant"
        words = _RECORD.sub("", message.content)
        told.append((message.role, message.kind, _ID.sub("#", words) if whole else ""))
    return sorted(told)


def calls(store: Store) -> Counter[tuple[str, str]]:
    """Tool calls by tool and what became of them."""
    with store.read() as tx:
        return Counter((tool, status) for tool, status in tx.raw("SELECT tool, status FROM tool_calls"))


def in_hand(house: Services, life: Life) -> list[str]:
    """The runs that a worker has, dead or alive."""
    return [run.id for run in house.runs.list() if (run.executor or "").partition(":")[2].startswith(f"{life.pid}:")]


def progress(store: Store) -> int:
    """How many changes there were so far."""
    with store.read() as tx:
        return int(tx.raw("SELECT count(*) FROM events")[0][0])


def delegated(house: Services, *missions: str) -> list[Run]:
    """Work that nobody waits for, each in a chat of its own."""
    mission = house.missions.get(SLUG)
    runs = []
    for number, text in enumerate(missions):
        chat = Scope(f"work-{number}", PERSON)
        start_session(house.store, chat)
        runs.append(
            house.runs.enqueue(
                chat,
                kind=RunKind.DELEGATE,
                conversation_id=chat.conversation_id,
                agent="coder",
                request={"mission": text, "origin": mission.conversation_id, "todoId": None},
                mission_id=mission.id,
            )
        )
    return runs


def results(house: Services) -> list[str]:
    """What was posted to the mission's chat."""
    chat = house.missions.get(SLUG).conversation_id
    told = [one.content for one in house.conversations.messages(chat) if one.kind == "worker_result"]
    return [unquote(text.partition("\n")[2]) for text in told]


def ended(house: Services, runs: list[Run]) -> bool:
    return all(house.runs.get(run.id).ended_at for run in runs)


def statuses(house: Services, runs: list[Run]) -> Counter[str]:
    return Counter(f"{now.status} {now.why}".strip() for run in runs for now in [house.runs.get(run.id)])


def started(nursery: Nursery, task: Task) -> Life:
    life = nursery.start(task)
    until(lambda: f"{life.pid}: worker" in life.said, lambda: f"worker {life.pid} is ready\n{life.said}")
    return life
