"""An approval as lines: what will run, where, and why a person is asked. Pure.

`approval_layout` shares the rows of a panel: everything is beside the question where there is room for it; otherwise
reason, folder and the texts of the "always" answers are scrolled with the question, so that the keys stay visible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from textual.content import Content

from punchlist.surfaces.tui.diff_lines import diff_lines, looks_like_diff
from punchlist.surfaces.tui.display_text import assemble, block, cut, fold, hang, line, pack
from punchlist.surfaces.tui.screen_state import PendingApproval
from punchlist.views.call_text import call_diff

ALWAYS_KEYS: Final = {"tool": "a", "prefix": "p", "server": "s"}
FRAME: Final = 2
"""Rows of the border."""
MIN_BODY: Final = 4
"""Rows of the question that the full form needs, unless the question is shorter."""
MAX_COVERED: Final = 20_000
"""Characters of what an "always" answer covers: all of it is shown."""
MIN_FRAMED: Final = 6
"""Rows of the panel from which it has a border."""
_ANSWERS: Final = (("y", "once", "once"), ("e", "edit arguments", "edit"), ("d", "deny", "deny"))
_REASON: Final = ("n", "deny with a reason", "reason")
_WORDS: Final = {
    "once": "y once",
    "edit": "e edit",
    "deny": "d deny",
    "reason": "n deny with a reason",
    "tool": "a always",
    "prefix": "p always",
    "server": "s always",
}


@dataclass(frozen=True, slots=True)
class ApprovalLayout:
    head: Sequence[Content]
    body: Sequence[Content]
    """What is scrolled."""
    keys: Sequence[Content]
    rows: int
    """Of the body that are visible."""
    is_spaced: bool
    """Whether blank rows are around the body."""
    is_framed: bool
    always_rows: Mapping[str, range] = field(default_factory=dict)
    """The rows of the body with the text of each "always" answer; empty if these texts are among the keys."""


def edited_approval(approval: PendingApproval, arguments: Mapping[str, Any]) -> PendingApproval:
    """The question about the call with arguments that the person has edited."""
    return replace(
        approval,
        arguments=arguments,
        question=_question(approval.tool, arguments),
        why=f"edited by you; {approval.why}" if not approval.is_edited else approval.why,
        always={},
        is_edited=True,
    )


def _question(tool: str, arguments: Mapping[str, Any]) -> str:
    if diff := call_diff(tool, arguments):
        return diff
    values = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in arguments.values()
    )
    return "\n".join(f"{name}: {value}" for name, value in zip(arguments, values, strict=True)) or "(no arguments)"


def approval_title(approval: PendingApproval, place: int, total: int, age: str) -> Content:
    count = f"  {place} of {total}, ↑↓" if total > 1 else ""
    return assemble(
        ("◆ ", "bold $needs-you"),
        (line(approval.tool, 60), "bold"),
        " wants to run" if not approval.is_edited else " will run as edited",
        (f"  {age}{count}", "$quiet"),
    )


def approval_reason(approval: PendingApproval, width: int) -> list[Content]:
    """The rule that asks, and the folder."""
    return [
        *hang(Content(line(approval.why, 500)), width, Content.styled("  why    ", "$quiet")),
        *hang(Content(line(approval.workspace, 500)), width, Content.styled("  where  ", "$quiet")),
    ]


def approval_body(approval: PendingApproval, width: int) -> list[Content]:
    """What will run; a diff has its colours."""
    # The folder is above already.
    question = approval.question.removesuffix(f"in {approval.workspace}").rstrip()
    if looks_like_diff(question):
        return diff_lines(question, width)
    return [piece for part in block(question).split("\n") for piece in fold(Content(part), width)]


def approval_layout(
    approval: PendingApproval, width: int, room: int, place: int = 1, total: int = 1, age: str = ""
) -> ApprovalLayout:
    """The parts of a panel of at most `room` rows."""
    title = approval_title(approval, place, total, age)
    head = [*hang(title, width), *approval_reason(approval, width)]
    body = approval_body(approval, width - 1)
    always = {name: _always(approval, name, width) for name in ALWAYS_KEYS if name in approval.always}
    keys = [*_keys(width), *(each for lines in always.values() for each in lines)]
    left = room - FRAME - len(head) - len(keys) - 2
    if left >= min(len(body), MIN_BODY):
        return ApprovalLayout(head, body, keys, min(len(body), left), is_spaced=True, is_framed=True)
    framed = room >= MIN_FRAMED
    return _compact(approval, title, body, width, room - FRAME if framed else room, framed=framed)


def _compact(
    approval: PendingApproval, title: Content, question: Sequence[Content], width: int, room: int, *, framed: bool
) -> ApprovalLayout:
    """Only the title and the keys do not scroll."""
    keys = _short_keys(width, 2 if room >= 4 else 1)
    head = [cut(title, width)] if room - len(keys) >= 2 else []
    body = [*([] if head else [title]), *question, *approval_reason(approval, width - 1)]
    rows: dict[str, range] = {}
    for name in ALWAYS_KEYS:
        if name in approval.always:
            lines = _always(approval, name, width - 1)
            rows[name] = range(len(body), len(body) + len(lines))
            body += lines
    visible = min(len(body), max(room - len(head) - len(keys), 1))
    return ApprovalLayout(head, body, keys, visible, is_spaced=False, is_framed=framed, always_rows=rows)


def _always(approval: PendingApproval, name: str, width: int) -> list[Content]:
    """What an "always" answer would cover, exactly."""
    head = assemble((ALWAYS_KEYS[name], "bold $needs-you"), (" always ", "$quiet"))
    return hang(Content(line(approval.always[name], MAX_COVERED)), width, head)


def _keys(width: int) -> list[Content]:
    parts = [assemble((key, "bold $needs-you"), f" {words}") for key, words, _ in (*_ANSWERS, _REASON)]
    return pack(parts, width, Content("   "))


def _short_keys(width: int, most: int) -> list[Content]:
    """The possible answers in at most so many rows."""
    parts = [assemble((key, "bold $needs-you"), f" {short}") for key, _, short in (*_ANSWERS, _REASON)]
    lines = pack(parts, width, Content("  "))
    if len(lines) > most:
        lines = [Content(" ").join([Content.styled(key, "bold $needs-you") for key, _, _ in (*_ANSWERS, _REASON)])]
    return lines


def approval_hint(width: int) -> list[Content]:
    """Shown while keys go elsewhere."""
    return hang(assemble(("Ctrl+Y", "bold $needs-you"), " to answer"), width)


def chosen_line(answer: str, width: int) -> list[Content]:
    """Shown at once when a key was pressed."""
    return [cut(assemble((f"{_WORDS[answer]} …", "bold $needs-you")), width)]


def confirm_lines(answer: str, covered: str, width: int, rows: int) -> list[Content]:
    """Shown while an "always" answer needs a second press; what does not fit into the rows was read before."""
    key = f"{ALWAYS_KEYS[answer]} again or Enter"
    text = assemble((key, "bold $needs-you"), (" always ", "$quiet"), line(covered, MAX_COVERED))
    lines, room = hang(text, width), max(rows - 1, 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], cut(Content(" ").join(lines[room - 1 :]), width)]
    return [*lines, Content.styled("Esc: not now", "$quiet")][:rows]
