"""`/runs` and `/runs/ID`: background runs, and the timeline of one with its model and tool calls."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from punchlist.errors import InvalidInput
from punchlist.kernel.json_text import json_or_text
from punchlist.runs.lifecycle import OPEN, RunStatus
from punchlist.runs.model import RunKind
from punchlist.surfaces.web.pages import plots
from punchlist.surfaces.web.pages.call_parts import shown_arguments
from punchlist.surfaces.web.pages.names import agent_name
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.run_titles import RunTitles
from punchlist.views.conversations import read_title
from punchlist.views.run_timeline import RunTimeline, TimelinePage, TimelineStep, read_timeline, read_turn_timeline
from punchlist.views.run_usage import read_figures, read_turn_summary
from punchlist.views.runs import read_runs

PAGE: Final = 100
_BINS: Final = 240
_KINDS: Final = {
    RunKind.EXECUTE.value: "Work on todos",
    RunKind.CYCLE.value: "Planning cycles",
    RunKind.PLAN.value: "Planning of a pillar",
    RunKind.CHAT.value: "Answers in chats",
    RunKind.DELEGATE.value: "Delegated work",
    RunKind.COLLECT.value: "Collection of metrics",
}


def runs(request: PageRequest) -> Page:
    services, slug = request.services, request.parameters.get("mission")
    status, kind = request.get("status"), request.get("kind")
    if status and status not in list(RunStatus):
        raise InvalidInput(f"status: must be one of {', '.join(RunStatus)}")
    if kind and kind not in list(RunKind):
        raise InvalidInput(f"kind: must be one of {', '.join(RunKind)}")
    page = read_runs(
        services.store,
        mission=slug,
        todo_id=request.get("todo") or None,
        status=RunStatus(status) if status else None,
        kind=RunKind(kind) if kind else None,
        cursor=request.get("cursor") or None,
    )
    titles = RunTitles(services)
    values = {
        "runs": page.runs,
        "titles": {run.id: titles.of(run) for run in page.runs},
        "figures": read_figures(services.store, page.runs),
        "mission": services.missions.get(slug) if slug else None,
        "statuses": [each.value for each in RunStatus],
        "status": status,
        "kinds": _KINDS,
        "kind": kind,
        "todo": request.get("todo"),
        "path": request.path,
        "next_page": request.link(cursor=page.cursor) if page.cursor else None,
    }
    return Page("runs.html", "Runs", values, section=f"mission:{slug}" if slug else "runs", mission=slug)


def run(request: PageRequest) -> Page:
    services = request.services
    found = services.runs.find(request.parameters["run"])
    failed_only = request.get("show") == "failed"
    timeline = read_timeline(services.store, found.id, TimelinePage(failed_only, _page(request), PAGE, bins=_BINS))
    slug = None
    if found.mission_id is not None:
        missions = services.missions.list(archived=True)
        slug = next((mission.slug for mission in missions if mission.id == found.mission_id), None)
    values: dict[str, Any] = {
        "run": found,
        "title": RunTitles(services).of(found),
        "slug": slug,
        "is_open": found.status in OPEN,
        "figures": read_figures(services.store, [found])[found.id],
        "timeline": timeline,
        "rows": _rows(timeline),
        "strip": plots.strip(timeline.bins),
        "failed_only": failed_only,
        "links": _links(request, timeline),
    }
    return Page("run.html", values["title"], values, section=f"mission:{slug}" if slug else "runs", mission=slug)


def turn(request: PageRequest) -> Page:
    """The timeline of a turn outside of runs."""
    services = request.services
    found = services.conversations.turn(request.parameters["turn"])
    failed_only = request.get("show") == "failed"
    timeline = read_turn_timeline(services.store, found.id, TimelinePage(failed_only, _page(request), PAGE, bins=_BINS))
    conversation = services.conversations.get(found.conversation_id)
    values: dict[str, Any] = {
        "turn": found,
        "conversation": conversation,
        "name": read_title(services.store, conversation),
        "summary": read_turn_summary(services.store, found),
        "timeline": timeline,
        "rows": _rows(timeline),
        "strip": plots.strip(timeline.bins),
        "failed_only": failed_only,
        "links": _links(request, timeline),
    }
    return Page("turn.html", f"Turn of {agent_name(found.agent_id)}", values, section="conversations")


def _rows(timeline: RunTimeline) -> list[dict[str, Any]]:
    whole = max(timeline.seconds, 0.001)
    return [
        {
            "step": step,
            "arguments": shown_arguments(step.name, json_or_text(step.given)) if step.given else "",
            "bar": _bar(step, whole),
        }
        for step in timeline.steps
    ]


def _bar(step: TimelineStep, whole: float) -> Markup:
    spans = [(step.offset / whole, step.seconds / whole, "failed" if step.failed else step.kind)]
    if step.wait_seconds:
        wait = (step.wait_offset / whole, step.wait_seconds / whole, "wait")
        spans = [wait] if step.waits else [wait, *spans]
    return plots.bars(spans)


def _links(request: PageRequest, timeline: RunTimeline) -> dict[str, str | None]:
    page, last = timeline.page, timeline.pages
    return {
        "first": request.link(page="1") if page > 1 else None,
        "before": request.link(page=str(page - 1)) if page > 1 else None,
        "after": request.link(page=str(page + 1)) if page < last else None,
        "last": request.link(page=str(last)) if page < last else None,
        "all": request.link(show=None, page=None),
        "failed": request.link(show="failed", page=None),
    }


def _page(request: PageRequest) -> int:
    given = request.get("page")
    return max(1, int(given)) if given.isdecimal() and len(given) < 7 else 1
