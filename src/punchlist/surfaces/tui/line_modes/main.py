"""Starts a conversation in inline or plain mode."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.backend import Backend

if TYPE_CHECKING:
    from punchlist.app import Services

LineMode = Literal["inline", "plain"]


def run_lines(services: Services, options: AgentOptions, session: str, goal: str | None, mode: LineMode) -> None:
    """Run until the person quits."""
    backend = Backend(services, options)
    if mode == "plain":
        from punchlist.surfaces.tui.line_modes.plain_chat import PlainChat

        PlainChat(backend, session, sys.stdin, sys.stdout).run(goal)
    else:
        from punchlist.surfaces.tui.line_modes.inline_chat import InlineChat

        InlineChat(backend, session, sys.stdin, sys.stdout).run(goal)
