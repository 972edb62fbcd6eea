"""An approval as lines: what will run, where, and why a person is asked. Pure."""

from __future__ import annotations

from textual.content import Content

from punchlist.surfaces.tui.diff_lines import diff_lines, looks_like_diff
from punchlist.surfaces.tui.display_text import assemble, block, fold, hang, line
from punchlist.surfaces.tui.screen_state import PendingApproval

ALWAYS_KEYS = {"tool": "a", "prefix": "p", "server": "s"}


def approval_head(approval: PendingApproval, place: int, total: int, age: str, width: int) -> list[Content]:
    """The first lines: the tool, the rule that asks, and the folder."""
    count = f"  {place} of {total}, ↑↓" if total > 1 else ""
    title = assemble(
        ("◆ ", "bold $needs-you"),
        (line(approval.tool, 60), "bold"),
        " wants to run",
        (f"  {age}{count}", "$quiet"),
    )
    return [
        *hang(title, width),
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


def approval_keys(approval: PendingApproval, width: int) -> list[Content]:
    """The possible answers. What an "always" answer would cover is told exactly."""
    lines: list[Content] = []
    for name, key in ALWAYS_KEYS.items():
        if name in approval.always:
            head = assemble((f"{key}", "bold $needs-you"), (" always ", "$quiet"))
            lines += hang(Content(line(approval.always[name], 500)), width, head)
    short = [("y", "once"), ("e", "edit arguments"), ("d", "deny"), ("n", "deny with a reason")]
    parts = [assemble((key, "bold $needs-you"), (f" {words}", "")) for key, words in short]
    return [*hang(Content("   ").join(parts), width), *lines]


def approval_hint(width: int) -> list[Content]:
    """Shown while keys go elsewhere."""
    return hang(assemble(("Ctrl+Y", "bold $needs-you"), " to answer"), width)
