"""What scripted models do."""

from __future__ import annotations

import re
from itertools import count
from typing import Final

from tests.agents.scripted import Asked, Call, Reply, Say, Script

FIRST: Final = "Write the parser"
SECOND: Final = "Test the parser"
EARLY: Final = "I think that is enough for today."
DONE: Final = "Everything on the list is done."
SENT_BACK: Final = "Answer the user when the list is clear."
"""Of what our hook says (C3)."""


def drains() -> Script:
    """Plans two items, stops early, and does them once it is sent back."""
    numbers = count()

    def reply(asked: Asked) -> Reply:
        match next(numbers):
            case 0:
                return _plan()
            case 1:
                return Say(EARLY)
            case 2:
                return _complete(asked, FIRST)
            case 3:
                return _complete(asked, SECOND)
        return Say(DONE)

    return reply


def keeps_tasks() -> Script:
    """As `drains`, but with the tools of Claude Code itself."""
    return _one_by_one(
        Call("TaskCreate", {"subject": FIRST, "description": "In one file."}),
        Call("TaskCreate", {"subject": SECOND, "description": "With examples."}),
        Call("TaskUpdate", {"taskId": "1", "status": "completed"}),
        Say(EARLY),
        Call("TaskUpdate", {"taskId": "2", "status": "completed"}),
        Say(DONE),
        # It is asked about the tasks for which it made no call.
        Say(DONE),
    )


def _one_by_one(*replies: Reply) -> Script:
    rest = iter(replies)
    return lambda _: next(rest)


def gives_up() -> Script:
    """Plans two items, and does nothing more, whatever it is told. It never says the same thing twice: programs
    have guards of their own against that."""
    numbers = count()

    def reply(_: Asked) -> Reply:
        number = next(numbers)
        return Say(f"I would rather not. ({number})") if number else _plan()

    return reply


def _plan() -> Call:
    return Call("create_todo", {"items": [{"title": FIRST}, {"title": SECOND}]})


def _complete(asked: Asked, title: str) -> Call:
    # As it stands in the result of create_todo, however many times that was quoted on the way.
    found = re.search(rf"([0-9a-f]{{8}}-[0-9a-f-]{{27}})\W{{1,12}}title\W{{1,12}}{title}", asked.heard)
    return Call("complete_todo", {"todoId": found[1] if found else "?", "outcome": "It works."})
