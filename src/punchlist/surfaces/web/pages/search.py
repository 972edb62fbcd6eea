"""`/search`: words in requests, messages and items; and actions, pages, runs and conversations by their names.

The search box of every page shows this page's results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from punchlist.surfaces.web.pages.names import agent_name, chat_title
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.surfaces.web.pages.run_titles import RunTitles
from punchlist.surfaces.web.pages.search_actions import actions, pages
from punchlist.surfaces.web.pages.search_results import Part, Result, plain
from punchlist.views.conversations import read_conversations
from punchlist.views.search import KINDS, MAX_QUERY, SearchHit, read_search

if TYPE_CHECKING:
    from punchlist.missions.model import Mission

_MAX_NAMED: Final = 8
"""Actions, pages, runs and conversations, each."""
_MAX_CONVERSATIONS: Final = 60
_MAX_RUNS: Final = 60
_ICONS: Final = {
    "request": "chat",
    "message": "chat",
    "plan_todo": "check",
    "checklist_item": "check",
    "mission_todo": "target",
}
_KIND_NAMES: Final = {
    "request": "Request",
    "message": "Message",
    "plan_todo": "Plan item",
    "checklist_item": "Checklist item",
    "mission_todo": "Todo",
}


class ResultGroup(NamedTuple):
    name: str
    results: Sequence[Result]


def search(request: PageRequest) -> Page:
    query, kind, cursor = request.get("q")[:MAX_QUERY], request.get("kind") or None, request.get("cursor") or None
    missions = request.services.missions.list(archived=True)
    found = read_search(request.services.store, query, kind=kind, cursor=cursor)
    places = _chat_names(request, missions)
    hits = [_result(hit, missions, places) for hit in found.hits]
    named = [] if kind or cursor else _named(request, missions, " ".join(query.lower().split()))
    values = {
        "query": query,
        "kind": kind,
        "kinds": [(each, f"{_KIND_NAMES[each]}s", request.link(kind=each, cursor=None)) for each in KINDS],
        "all_kinds": request.link(kind=None, cursor=None),
        "groups": [group for group in (*named, ResultGroup("Found", hits)) if group.results],
        "more": request.link(cursor=found.cursor) if found.cursor else None,
        "complete": found.complete,
    }
    return Page("search.html", "Search", values, section="search")


def _chat_names(request: PageRequest, missions: Sequence[Mission]) -> dict[str, str]:
    names = {}
    for mission in missions:
        names[mission.conversation_id] = mission.name
        for pillar in (state.pillar for state in request.services.missions.pillars(mission)):
            names[pillar.conversation_id] = names[pillar.todo_conversation_id] = f"{mission.name}, {pillar.name}"
    return names


def _result(hit: SearchHit, missions: Sequence[Mission], chats: Mapping[str, str]) -> Result:
    mission = next((each.name for each in missions if each.id == hit.mission_id), "")
    place = chats.get(hit.conversation_id) or mission or hit.conversation_id
    excerpt = list(_parts(hit.excerpt, hit.matches))
    kind = "Notice" if hit.is_notice else _KIND_NAMES[hit.kind]
    if hit.title:
        return Result(_ICONS[hit.kind], list(_parts(hit.title, hit.title_matches)), kind, _url(hit), excerpt, hit.at)
    if hit.position is not None:
        title = plain(f"{kind} in {place}")
        return Result(_ICONS[hit.kind], title, "", _url(hit), excerpt, hit.at)
    return Result(_ICONS[hit.kind], excerpt, kind, _url(hit), (), hit.at)


def _url(hit: SearchHit) -> str:
    chat = f"/chats/{hit.conversation_id}"
    if hit.kind == "mission_todo":
        return f"/todos/{hit.id}"
    if hit.position is None:
        return f"{chat}/todos"
    return f"{chat}?before={hit.position + 1}#message-{hit.id}"


def _parts(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """The text, cut at its matches."""
    at = 0
    for start, end in matches:
        if start > at:
            yield Part(text[at:start])
        yield Part(text[start:end], matches=True)
        at = end
    yield Part(text[at:])


def _named(request: PageRequest, missions: Sequence[Mission], text: str) -> list[ResultGroup]:
    """What has the words in its name. Without words: what can be done here, and the pages."""
    here = request.get("mission")
    active = sorted((each for each in missions if each.status == "active"), key=lambda each: each.slug != here)
    groups = [
        ResultGroup("Actions", [each for each in actions(request, active) if each.has(text)][:_MAX_NAMED]),
        ResultGroup("Pages", [each for each in pages(missions, deep=bool(text)) if each.has(text)][:_MAX_NAMED]),
    ]
    if text:
        groups += [
            ResultGroup("Runs", _runs(request, text)),
            ResultGroup("Conversations", _conversations(request, text)),
        ]
    return groups


def _runs(request: PageRequest, text: str) -> list[Result]:
    titles = RunTitles(request.services)
    runs = request.services.runs.list(ended=True, limit=_MAX_RUNS)
    shown = [
        Result(
            "run",
            plain(titles.of(run)),
            f"{run.status.value}, {agent_name(run.agent)}",
            f"/runs/{run.id}",
            (),
            run.created_at,
        )
        for run in runs
    ]
    return [each for each in shown if each.has(text) or each.url.endswith(text)][:_MAX_NAMED]


def _conversations(request: PageRequest, text: str) -> list[Result]:
    lines = read_conversations(request.services.store, limit=_MAX_CONVERSATIONS).conversations
    return [
        Result("chat", plain(chat_title(line.title) or line.id), "", f"/chats/{line.id}", (), line.active_at)
        for line in lines
        if text in f"{line.title} {line.id}".lower()
    ][:_MAX_NAMED]
