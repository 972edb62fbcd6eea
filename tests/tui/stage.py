"""The application with a scripted model: real turns in processes of their own, driven by a pilot."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from punchlist.app import Services
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.conversation_screen import ConversationScreen

SESSION = "s1"
SECONDS = 40.0


@dataclass(slots=True)
class Stage:
    app: PunchlistApp
    pilot: Pilot[str]
    backend: Backend

    async def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait until the condition holds on the screen."""
        end = monotonic() + seconds
        while not condition():
            assert monotonic() < end, f"not within {seconds} s; the screen:\n{self.text}"
            await self.pilot.pause(0.02)

    @property
    def conversation(self) -> ConversationScreen:
        screen = self.app.screen
        assert isinstance(screen, ConversationScreen), screen
        return screen

    @property
    def panel(self) -> ApprovalPanel:
        return self.conversation.query_one(ApprovalPanel)

    @property
    def history(self) -> str:
        return "\n".join(self.conversation.history.line_texts())

    @property
    def text(self) -> str:
        """Everything on the screen."""
        width, _ = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text[:width].rstrip() for strip in lines)

    @property
    def in_conversation(self) -> bool:
        return isinstance(self.app.screen, ConversationScreen) and self.app.screen.state is not None

    async def asked_for(self, tool: str) -> None:
        """Wait until a call of this tool asks, and the question has the focus."""
        await self.until(lambda: self.panel.approval is not None and self.panel.approval.tool == tool)
        await self.pilot.press("ctrl+y")
        await self.until(lambda: self.panel.has_focus)

    async def ended(self) -> None:
        await self.until(lambda: self.conversation.state is not None and not self.conversation.state.is_open)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))


def rehearsal(folder: Path, *replies: dict[str, Any]) -> str:
    """The name of a model that gives these replies. YAML reads JSON."""
    file = folder / "rehearsal.yaml"
    file.write_text(json.dumps({"replies": list(replies)}))
    return f"rehearsal:{file}"


@asynccontextmanager
async def opened(
    services: Services,
    model: str | None = None,
    *,
    session: str | None = SESSION,
    goal: str | None = None,
    size: tuple[int, int] = (100, 40),
    mode: str = "default",
) -> AsyncIterator[Stage]:
    backend = Backend(services, AgentOptions(model, mode))
    app = PunchlistApp(lambda: backend, session=session, goal=goal)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot, backend)
        await stage.until(lambda: app.is_ready)
        if session is not None:
            await stage.until(lambda: stage.in_conversation)
        yield stage
