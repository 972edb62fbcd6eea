"""`/`: what waits for the person, what is at work, and what was done since they last looked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.web.pages.inbox_items import group_requests, short
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.run_titles import RunTitles
from punchlist.surfaces.web.pages.turns import lacks_worker_for_model
from punchlist.views.inbox_model import RequestKind
from punchlist.views.live import MAX_LIMIT, read_activity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from punchlist.app import Services
    from punchlist.runs.model import Run
    from punchlist.views.inbox_model import InboxItem

_MAX_DONE: Final = 30
_WEEK: Final = timedelta(days=7)
_AT_WORK: Final = (RunStatus.RUNNING, RunStatus.DISPATCHED)
_MAX_RUNS: Final = 200
_ENDED: Final = (TodoStatus.COMPLETED, TodoStatus.CANCELLED)


def attention(request: PageRequest) -> Page:
    services, now = request.services, request.services.store.clock()
    since = None if request.get("all") else request.seen_until
    start = parse_timestamp(since) if since else now - _WEEK
    runs = services.runs.list(limit=_MAX_RUNS)
    values = {
        "groups": group_requests(services, _shown(request, services.inbox.list()), now),
        "working": _working(services, runs),
        "queued": sum(1 for run in runs if run.status is RunStatus.QUEUED),
        "done": _done(services, start),
        "since": since,
    }
    return Page("attention.html", "Attention", values, section="attention", marks_seen=True)


def count_waiting(request: PageRequest) -> int:
    counts = request.services.inbox.counts()
    return sum(counts.values()) - (counts.get(RequestKind.WORKER, 0) if lacks_worker_for_model(request) else 0)


def _shown(request: PageRequest, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
    """A notice on the page says that no model is configured, so that no worker can run."""
    if not lacks_worker_for_model(request):
        return items
    return [item for item in items if item.kind is not RequestKind.WORKER]


def _working(services: Services, runs: Sequence[Run]) -> list[dict[str, Any]]:
    slugs = {mission.id: mission.slug for mission in services.missions.list(archived=True)}
    titles = RunTitles(services)
    return [
        {
            "id": run.id,
            "title": titles.of(run),
            "agent": run.agent,
            "place": slugs.get(run.mission_id or "", ""),
            "url": f"/runs/{run.id}",
            "since": run.started_at or run.created_at,
        }
        for run in runs
        if run.status in _AT_WORK
    ]


def _done(services: Services, start: Any) -> list[dict[str, Any]]:
    page = read_activity(services.store, since=start, limit=MAX_LIMIT)
    found: dict[str, dict[str, Any]] = {}
    for entry in reversed(page.entries):
        if entry.stream.startswith("mission:") and entry.to_status in _ENDED and entry.from_status != entry.to_status:
            try:
                todo = services.mission_todos.get(entry.subject)
            except NotFound:
                continue
            found.setdefault(
                todo.id,
                {
                    "key": todo.id,
                    "title": todo.title,
                    "status": entry.to_status,
                    "detail": short(entry.reason),
                    "at": entry.at,
                    "url": f"/todos/{todo.id}",
                },
            )
            if len(found) == _MAX_DONE:
                break
    return list(found.values())
