"""`/search`: words in requests, messages and the items of all lists, and pages and conversations by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.search import KINDS, MAX_QUERY, SearchHit, read_search

if TYPE_CHECKING:
    from punchlist.missions.model import Mission

_MAX_NAMED: Final = 12
_MAX_CONVERSATIONS: Final = 200
_ICONS: Final = {
    "request": "chat",
    "message": "chat",
    "plan_todo": "check",
    "checklist_item": "check",
    "mission_todo": "target",
}
_PAGES: Final = (("Attention", "/"), ("Conversations", "/conversations"), ("Runs", "/runs"), ("Agents", "/agents"))


class Part(NamedTuple):
    text: str
    matches: bool = False


class Result(NamedTuple):
    icon: str
    parts: Sequence[Part]
    place: str
    url: str
    at: str | None = None


def search(request: PageRequest) -> Page:
    query, kind, cursor = request.get("q")[:MAX_QUERY], request.get("kind") or None, request.get("cursor") or None
    missions = request.services.missions.list(archived=True)
    found = read_search(request.services.store, query, kind=kind, cursor=cursor)
    names = {mission.id: mission.name for mission in missions}
    values = {
        "query": query,
        "kind": kind,
        "kinds": [(each, request.link(kind=each, cursor=None)) for each in KINDS],
        "all_kinds": request.link(kind=None, cursor=None),
        "named": [] if kind or cursor else _named(request, missions, query.lower()),
        "hits": [_result(hit, names) for hit in found.hits],
        "more": request.link(cursor=found.cursor) if found.cursor else None,
        "complete": found.complete,
    }
    return Page("search.html", "Search", values, section="search")


def _result(hit: SearchHit, missions: Mapping[str, str]) -> Result:
    place = f"{hit.kind.replace('_', ' ')} · {missions.get(hit.mission_id or '') or hit.conversation_id}"
    return Result(_ICONS[hit.kind], list(_parts(hit)), place, _url(hit), hit.at)


def _url(hit: SearchHit) -> str:
    chat = f"/chats/{hit.conversation_id}"
    if hit.kind == "mission_todo":
        return f"/todos/{hit.id}"
    if hit.position is None:
        return f"{chat}/todos"
    return f"{chat}?before={hit.position + 1}#message-{hit.id}"


def _parts(hit: SearchHit) -> Iterator[Part]:
    """The excerpt, cut at its matches."""
    at = 0
    for start, end in hit.matches:
        if start > at:
            yield Part(hit.excerpt[at:start])
        yield Part(hit.excerpt[start:end], matches=True)
        at = end
    yield Part(hit.excerpt[at:])


def _named(request: PageRequest, missions: Sequence[Mission], text: str) -> list[Result]:
    """Pages and conversations whose name contains the text; without a text, the pages."""
    found = [
        Result(
            "target",
            [Part(mission.name)],
            page.capitalize() or "Overview",
            f"/missions/{mission.slug}{'/' if page else ''}{page}",
        )
        for mission in missions
        for page in ("board", "", "flow", "chats")
        if text in f"{mission.name} {page or 'overview'}".lower()
    ]
    found += [Result("inbox", [Part(title)], "Page", url) for title, url in _PAGES if text in title.lower()]
    if not text:
        return found[:_MAX_NAMED]
    with request.services.store.read() as tx:
        overviews = conversation_repository.overviews(tx, _MAX_CONVERSATIONS)
    for each in overviews:
        id, name = each.conversation.id, each.conversation.title or each.conversation.id
        if text in f"{name} {id}".lower():
            found.append(Result("chat", [Part(name)], "Conversation", f"/chats/{id}"))
    return found[:_MAX_NAMED]
