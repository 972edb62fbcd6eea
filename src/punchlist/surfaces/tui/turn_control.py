"""Messages of the person on their way to the agent: begin a turn, queue, continue. No message is lost or overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from punchlist.errors import PunchlistError
from punchlist.surfaces.tui.screen_state import GoOn

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp


class TurnControl:
    def __init__(self, app: PunchlistApp) -> None:
        self._app = app
        self._queueing = asyncio.Lock()

    def submit(self, session: str, text: str) -> None:
        """Give the agent a message: now if it is idle, else into the queue."""
        screen = self._app.conversation
        if screen is not None and screen.is_busy:
            self.queue(session, text)
            return
        if screen is not None:
            # At once: a message that follows within milliseconds is queued.
            screen.show_sent(text)
        self._app.run_worker(self._begin_turn(session, text), group="actions")

    def queue(self, session: str, text: str) -> None:
        self._app.run_worker(self._queue(session, text), group="actions")

    async def _queue(self, session: str, text: str) -> None:
        # Messages are stored in the order in which they were written.
        async with self._queueing:
            try:
                await asyncio.to_thread(self._app.backend.queue, session, text)
            except PunchlistError as error:
                self._give_back(text, error)

    async def _begin_turn(self, session: str, text: str) -> None:
        """Start a turn. Its process needs a moment, so the message is on the screen already."""
        screen = self._app.conversation
        try:
            began = await asyncio.to_thread(self._app.backend.send, session, text)
        except PunchlistError as error:
            if screen is not None:
                screen.not_sent()
            self._give_back(text, error)
        else:
            if screen is not None and not began:
                screen.not_sent()

    def _give_back(self, text: str, error: PunchlistError) -> None:
        """A message could not be sent: it goes back into the prompt."""
        self._app.say(str(error), "error")
        if self._app.conversation is not None:
            self._app.conversation.take_back(text)

    def go_on(self, session: str) -> None:
        """Continue an interrupted turn; else deliver the first queued message."""
        screen = self._app.conversation
        if screen is None or screen.is_busy or screen.state is None:
            return
        work = {GoOn.RESUME: self._app.backend.resume, GoOn.DELIVER: self._app.backend.deliver}.get(screen.state.go_on)
        if work is None:
            self._app.say("No turn was interrupted, and nothing is queued.")
            return
        screen.begin_start()
        self._app.run_worker(self._go_on(work, session), group="actions")

    async def _go_on(self, work: Callable[[str], None], session: str) -> None:
        screen = self._app.conversation
        try:
            await asyncio.to_thread(work, session)
        except PunchlistError as error:
            self._app.say(str(error), "error")
        finally:
            if screen is not None:
                screen.end_start()
