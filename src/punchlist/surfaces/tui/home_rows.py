"""The rows of Home from what `views/home.py` read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.surfaces.figures import format_count
from punchlist.surfaces.tui.diff_lines import looks_like_diff
from punchlist.surfaces.tui.screen_state import HomeRow, PendingApproval

if TYPE_CHECKING:
    from punchlist.views.home import WorkLine
    from punchlist.views.inbox_model import InboxItem

_STATES: Final = {
    "waiting": "waiting",
    "interrupted": "failed",
    "paused": "waiting",
    "queued": "pending",
    "open": "pending",
}
"""The signs of work that does not go on by itself."""
NO_REQUEST: Final = "no request yet"
_NAMES: Final = {"open": "not begun"}
_REASONS: Final = {"a new prompt": "another prompt followed"}
"""How turns of third-party agents end."""
_VERBS: Final = {"edit_file": "edit", "write_file": "write"}


def request_row(item: InboxItem, approval: PendingApproval | None = None) -> HomeRow:
    place = f"mission {item.mission}" if item.mission else item.session or ""
    first = next((part for part in item.question.splitlines() if part.strip()), item.subject)
    title = f"{item.subject}: {first}" if item.kind == "approval" else first
    return HomeRow(
        id=f"request:{item.id}",
        group="needs_you",
        state="needs_you",
        title=_change_title(approval) or title if approval is not None else title,
        details=tuple(filter(None, (str(item.kind), place))),
        at=item.asked_at,
        session=item.session,
        kind=str(item.kind),
        request_id=item.id,
        mission=item.mission,
        text=item.question,
        answers=tuple(str(answer) for answer in item.answers),
    )


def _change_title(approval: PendingApproval) -> str:
    """`edit a.py (+1 -1)`; empty if the call changes no file."""
    path = approval.arguments.get("path")
    if not isinstance(path, str) or not looks_like_diff(approval.question):
        return ""
    lines = [part for part in approval.question.splitlines() if not part.startswith(("+++", "---"))]
    added, removed = (sum(part.startswith(sign) for part in lines) for sign in "+-")
    return f"{_VERBS.get(approval.tool, approval.tool)} {path} (+{added} -{removed})"


def work_row(line: WorkLine) -> HomeRow:
    """A turn, a run, a third-party agent or an untouched list."""
    items = line.items
    done = f"{items.done}/{items.total}" if items.total else ""
    if line.state == "ended":
        reason = _REASONS.get(line.reason or "", line.reason)
        turns = f"{line.turns} turns" if line.turns is not None and line.turns > 1 else ""
        return HomeRow(
            id=f"{line.kind}:{line.id}",
            group="done",
            state=ended_state(line.reason or ""),
            title=line.title or line.conversation_id,
            details=tuple(filter(None, (reason, done, turns, line.conversation_id))),
            at=line.ended_at or line.started_at or "",
            session=line.conversation_id,
        )
    auto = f"auto {line.continuations or 0}/{line.continuation_limit}" if line.continuation_limit is not None else ""
    tokens = f"{format_count(line.tokens)} tok" if line.tokens else ""
    state = _NAMES.get(line.state, line.state) if line.state in _STATES else ""
    agent = line.agent if line.kind != "turn" or line.agent != "supervisor" else ""
    return HomeRow(
        id=f"{line.kind}:{line.id}",
        group="working",
        state=_STATES.get(line.state, "in_progress"),
        title=items.in_progress or line.title or (NO_REQUEST if line.kind == "agent" else line.conversation_id),
        details=tuple(filter(None, (state, done, auto, tokens, agent, line.conversation_id))),
        at=line.started_at or "",
        session=line.conversation_id,
        mission=line.mission,
    )


def ended_state(reason: str) -> str:
    """The sign of a turn that ended for this reason."""
    if reason.startswith("completed"):
        return "completed"
    return "failed" if reason.startswith("error") else "waiting"
