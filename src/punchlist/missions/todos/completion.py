"""Whether a todo may be completed, by what came of its check (M16). Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from punchlist.errors import IllegalTransition
from punchlist.kernel.events import canonical_json
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.missions.model import MissionTodo

MAX_DETAIL_LENGTH: Final = 5_000


def check_result_json(passed: bool, detail: str, at: str) -> str:
    """What came of a check, as it is kept: a program's output, perhaps, shown for what it is, and not all of it."""
    return canonical_json({"passed": passed, "detail": visible_block(detail)[:MAX_DETAIL_LENGTH], "at": at})


def passed_since_work(todo: MissionTodo) -> bool:
    """Whether nothing was done to what a passed check has seen; so, too, if there is no check."""
    if todo.completion_check is None:
        return True
    result = check_result(todo)
    since = max(todo.worked_at or "", todo.started_at or "")
    return result is not None and result.get("passed") is True and str(result.get("at", "")) >= since


def check_result(todo: MissionTodo) -> dict[str, Any] | None:
    result: dict[str, Any] | None = json.loads(todo.check_result) if todo.check_result else None
    return result


def check_not_passed(todo: MissionTodo) -> IllegalTransition:
    result = check_result(todo)
    if result is None:
        found = "its check has not been run"
    elif not result.get("passed"):
        detail = excerpt(str(result.get("detail") or "it did not say why"), 500).rstrip(".")
        found = f"its check failed at {result.get('at')}: {detail}"
    else:
        found = f"it was worked on after its check had passed at {result.get('at')}"
    return IllegalTransition(
        f"“{visible(todo.title)}” cannot be completed: {found}. Send the work back, or have the check run again once "
        "it is right; to complete it all the same, give a reason (overrideReason, --override), which is kept."
    )
