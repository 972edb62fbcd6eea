"""`/search`: todos, missions, chats and runs by a part of their text."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.board import MAX_SEARCH_LENGTH, BoardFilter, read_board

_PER_MISSION: Final = 20
_LIMIT: Final = 40


class Result(NamedTuple):
    icon: str
    title: str
    place: str
    url: str


def search(request: PageRequest) -> Page:
    query = request.get("q")[:MAX_SEARCH_LENGTH]
    return Page("search.html", "Search", {"query": query, "results": _results(request, query)}, section="search")


def _results(request: PageRequest, query: str) -> list[Result]:
    services, text = request.services, query.lower()
    missions = services.missions.list(archived=True)
    found = [
        Result(
            "target",
            mission.name,
            page.capitalize() or "Overview",
            f"/missions/{mission.slug}{'/' if page else ''}{page}",
        )
        for mission in missions
        for page in ("board", "", "flow", "chats")
        if text in f"{mission.name} {page or 'overview'}".lower()
    ]
    found += [
        Result("inbox", title, "Page", url)
        for title, url in (
            ("Attention", "/"),
            ("Conversations", "/conversations"),
            ("Runs", "/runs"),
            ("Agents", "/agents"),
        )
        if text in title.lower()
    ]
    if not query:
        return found[:_LIMIT]
    for mission in missions:
        page = read_board(services.store, mission.slug, BoardFilter(search=query, archived=True), limit=_PER_MISSION)
        found += [
            Result(f"status-{todo.status.value}", todo.title, mission.name, f"/todos/{todo.id}")
            for todo in page.todos.items
        ]
    with services.store.read() as tx:
        overviews = conversation_repository.overviews(tx, 500)
    found += [
        Result(
            "chat", each.conversation.title or each.conversation.id, "Conversation", f"/chats/{each.conversation.id}"
        )
        for each in overviews
        if text in f"{each.conversation.title} {each.conversation.id}".lower()
    ]
    return found[:_LIMIT]
