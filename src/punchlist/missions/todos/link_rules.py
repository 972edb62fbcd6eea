"""Rules of links between todos and of sub-items. Pure.

A link is stored in one direction and can be written from both ends: `blocks` and `blockedBy`, `duplicates` and
`duplicatedBy`, `followsFrom` and `followedBy`. Blocking and being a part of another todo both order work: a blocker
ends before the blocked todo starts, a sub-item ends before its parent completes. A circle in that order could never be
worked off, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from punchlist.missions.model import LinkKind, NewLink, TodoLink

MAX_LINKS: Final = 50
"""Of one todo, in both directions."""
NAMES: Final[dict[str, tuple[LinkKind, bool]]] = {
    "blocks": (LinkKind.BLOCKS, False),
    "blockedBy": (LinkKind.BLOCKS, True),
    "duplicates": (LinkKind.DUPLICATES, False),
    "duplicatedBy": (LinkKind.DUPLICATES, True),
    "followsFrom": (LinkKind.FOLLOWS_FROM, False),
    "followedBy": (LinkKind.FOLLOWS_FROM, True),
}
"""The names on the wire; True when the other todo is the one that blocks, is a duplicate or follows."""
_WIRE: Final = {kind: name for name, kind in NAMES.items()}

Edge = tuple[str, str]


def parse_name(name: object) -> tuple[LinkKind, bool] | None:
    """Case and separators do not count: `blocked_by` and `follows-from` are accepted."""
    plain = str(name).replace("_", "").replace("-", "").replace(" ", "").lower()
    return next((kind for known, kind in NAMES.items() if known.lower() == plain), None)


def named_link(name: str, other_id: str) -> NewLink:
    """The inverse of `wire_name`."""
    kind, inverse = NAMES[name]
    return NewLink(kind, other_id, inverse)


def wire_name(new: NewLink) -> str:
    return _WIRE[new.kind, new.inverse]


def name_from(link: TodoLink, todo_id: str) -> str:
    """What the link is called when seen from `todo_id`."""
    return _WIRE[LinkKind(link.kind), link.todo_id != todo_id]


def other_end(link: TodoLink, todo_id: str) -> str:
    return link.other_id if link.todo_id == todo_id else link.todo_id


def direction(todo_id: str, new: NewLink) -> Edge:
    """The two todos of a requested link, in the direction in which it is stored."""
    return (new.other_id, todo_id) if new.inverse else (todo_id, new.other_id)


def path_between(edges: Iterable[Edge], start: str, end: str) -> list[str] | None:
    """A way along the edges from `start` to `end`; None if there is none."""
    following: dict[str, list[str]] = {}
    for before, after in edges:
        following.setdefault(before, []).append(after)
    came_from: dict[str, str | None] = {start: None}
    queue = [start]
    for current in queue:
        if current == end:
            return _path(came_from, end)
        for following_id in following.get(current, ()):
            if following_id not in came_from:
                came_from[following_id] = current
                queue.append(following_id)
    return None


def _path(came_from: Mapping[str, str | None], end: str) -> list[str]:
    path, step = [end], came_from[end]
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]
