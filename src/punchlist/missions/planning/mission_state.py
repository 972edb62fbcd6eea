"""The state of a mission in every model request of its agents (M10, M17).

Chats are compacted; what people have decided must not be. The state is read again for each request and is bounded by
the limits of its parts, however long the chat is.
"""

from __future__ import annotations

from typing import Final

from punchlist.kernel.text import ELLIPSIS, visible
from punchlist.missions.directives.model import Directive
from punchlist.missions.directives.service import in_force
from punchlist.missions.model import Mission
from punchlist.storage.store import Store

MAX_LENGTH: Final = 22_000
"""Characters, about 5,500 tokens. Only what follows the directives is shortened."""
_LEFT_OUT: Final = f"{ELLIPSIS} [left out: too long. Read the rest with mission_todo_list.]"


def bounded_state(mission: str, remark: str) -> str:
    """The state of a mission, followed by what the turn itself is told, within `MAX_LENGTH`."""
    room = MAX_LENGTH - len(mission)
    if len(remark) > room:
        remark = remark[: max(room - len(_LEFT_OUT) - 1, 0)] + "\n" + _LEFT_OUT
    return "\n\n".join(filter(None, (mission, remark)))


def mission_state(store: Store, mission: Mission) -> str:
    with store.read() as tx:
        directives = in_force(tx, mission, store.clock())
    return "\n".join(_directive_lines(directives))


def _directive_lines(directives: list[Directive]) -> list[str]:
    if not directives:
        return []
    return ["Directives of people for this mission. Follow them in every decision:", *map(_directive_line, directives)]


def _directive_line(directive: Directive) -> str:
    until = f" (until {visible(directive.holds_until)})" if directive.holds_until else ""
    return f"{directive.number}. {visible(directive.content)}{until}"
