"""`/chats/ID/todos`: the plan and the checklist of a session as one numbered list, which a person edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.kernel.text import did_you_mean, excerpt
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.verification.model import Mark
from punchlist.views.conversations import read_title
from punchlist.views.todos import NumberedTodo, SessionTodos

REASON: Final = "changed on the page"
_TURNS: Final = 50
_MAX_TURNS: Final = 1_000


def lists(request: PageRequest) -> Page:
    services, id = request.services, request.parameters["chat"]
    conversation = services.conversations.get(id)
    todos = services.todos.list(Scope(id, request.actor))
    wanted = request.get("turns")
    most = min(int(wanted), _MAX_TURNS) if wanted.isdecimal() and len(wanted) < 6 else _TURNS
    turns = services.conversations.turns(id, most + 1)
    title = read_title(services.store, conversation)
    values = {
        "conversation": conversation,
        "name": title,
        "todos": todos,
        "places": _places(todos.items),
        "marks": Mark,
        "turns": turns[:most],
        "more_turns": request.link(turns=str(most + _TURNS)) if len(turns) > most < _MAX_TURNS else None,
    }
    return Page("lists.html", title, values, section="conversations")


def _places(items: Sequence[NumberedTodo]) -> dict[str, int]:
    """The position of each item in its own list, counted from 1."""
    counts: dict[str, int] = {}
    places: dict[str, int] = {}
    for item in items:
        places[item.id] = counts[item.list] = counts.get(item.list, 0) + 1
    return places


def change_items(request: PageRequest) -> Redirect:
    """Add an item, change one, or take back the last change; the button names the action."""
    id, action = request.parameters["chat"], request.posted("do")
    request.services.conversations.get(id)
    if action not in _CHANGES:
        raise InvalidInput(f"do: there is no action {excerpt(action)!r}.{did_you_mean(action, list(_CHANGES))}")
    _CHANGES[action](request.services.todos, Scope(id, request.actor), request)
    return Redirect(f"/chats/{id}/todos", _DONE.get(action, ""))


def _add(todos: SessionTodos, scope: Scope, request: PageRequest) -> None:
    todos.add(scope, [request.posted("title")], check=request.posted("check") or None, reason=REASON)


def _complete(todos: SessionTodos, scope: Scope, request: PageRequest) -> None:
    todos.complete(scope, request.posted("item"), request.posted("outcome") or None, reason=REASON)


def _cancel(todos: SessionTodos, scope: Scope, request: PageRequest) -> None:
    todos.cancel(scope, request.posted("item"), reason=request.posted("reason") or None)


def _edit(todos: SessionTodos, scope: Scope, request: PageRequest) -> None:
    todos.edit(scope, request.posted("item"), request.posted("title"), reason=REASON)


def _move(todos: SessionTodos, scope: Scope, request: PageRequest) -> None:
    place = request.posted("place")
    if not place.isdecimal() or len(place) > 6:
        raise InvalidInput("place: must be a position of the list, counted from 1")
    todos.move(scope, request.posted("item"), max(int(place), 1), reason=REASON)


_CHANGES: Final[Mapping[str, Callable[[SessionTodos, Scope, PageRequest], None]]] = {
    "add": _add,
    "start": lambda todos, scope, request: todos.start(scope, request.posted("item"), reason=REASON),
    "done": _complete,
    "cancel": _cancel,
    "reopen": lambda todos, scope, request: todos.reopen(scope, request.posted("item"), reason=REASON),
    "accept": lambda todos, scope, request: todos.accept(scope, request.posted("item"), reason=REASON),
    "edit": _edit,
    "move": _move,
    "undo": lambda todos, scope, _: todos.undo(scope, reason=REASON),
}
_DONE: Final = {"undo": "The last change was taken back.", "accept": "Accepted."}
