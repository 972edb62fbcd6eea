"""Punchlist: the todo list that AI agents finish.

The public names. They are loaded when they are first used, so that `import punchlist` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from punchlist.checklist.manager import TodoManager
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.model import Scope, TurnScope
    from punchlist.conversations.service import Conversations
    from punchlist.errors import PunchlistError
    from punchlist.kernel.actors import Actor, Role
    from punchlist.plan.repository import TurnTodoRepository
    from punchlist.plan.service import Plans
    from punchlist.storage.opening import open_store
    from punchlist.storage.store import Store

_HOMES = {
    "Actor": "punchlist.kernel.actors",
    "Checklists": "punchlist.checklist.service",
    "Conversations": "punchlist.conversations.service",
    "Plans": "punchlist.plan.service",
    "PunchlistError": "punchlist.errors",
    "Role": "punchlist.kernel.actors",
    "Scope": "punchlist.conversations.model",
    "Store": "punchlist.storage.store",
    "TodoManager": "punchlist.checklist.manager",
    "TurnScope": "punchlist.conversations.model",
    "TurnTodoRepository": "punchlist.plan.repository",
    "open_store": "punchlist.storage.opening",
}

__all__ = [
    "Actor",
    "Checklists",
    "Conversations",
    "Plans",
    "PunchlistError",
    "Role",
    "Scope",
    "Store",
    "TodoManager",
    "TurnScope",
    "TurnTodoRepository",
    "__version__",
    "open_store",
]


def __getattr__(name: str) -> Any:
    try:
        return getattr(import_module(_HOMES[name]), name)
    except KeyError:
        raise AttributeError(f"module 'punchlist' has no attribute {name!r}") from None
