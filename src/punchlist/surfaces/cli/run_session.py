"""A run from the command line: the agent at work, a person who can stop it, and messages that wait their turn."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.events import TurnResult
from punchlist.agent.model_resolver import ModelResolver
from punchlist.agent.resume import resume_session, wait_until_resumable
from punchlist.agent.runtime import AgentRuntime
from punchlist.conversations.message_queue import MessageQueue
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.process_id import current_process
from punchlist.storage.async_bridge import make_bridge
from punchlist.surfaces.cli.approval_prompt import ApprovalPrompt
from punchlist.surfaces.cli.run_display import RunDisplay
from punchlist.toolcalls.policy import Mode

if TYPE_CHECKING:
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.cli.tools import ModeChoice
    from punchlist.surfaces.services import Services

_NOTHING_MORE: Final = (Reason.WAITING, Reason.CANCELLED, Reason.ERROR)
"""After these, a message that waits goes on waiting."""
CANCELLED: Final = 130


class RunSession:
    def __init__(
        self, services: Services, scope: Scope, model: str, mode: ModeChoice | None, *, quiet: bool, waits: bool
    ) -> None:
        terminal = ApprovalPrompt.from_terminal()
        watcher = None if quiet else RunDisplay.on_stderr()
        if terminal and watcher:
            terminal.before_asking = watcher.erase
        self._waits = waits
        self._signal = CancelSignal()
        self.runtime = AgentRuntime(
            services.site(scope, Path.cwd()),
            services.conversations,
            services.plans,
            services.checklists,
            ModelResolver(model, os.environ, watcher.note if watcher else None),
            Mode(mode) if mode else None,
            services.agents.definitions,
            ask=terminal.ask if terminal else None,
            wait_for_approval=waits,
            on_event=watcher.show_event if watcher else None,
        )
        self._watcher = watcher

    def run(self, agent: AgentDefinition, goal: str) -> TurnResult:
        left = self.runtime.conversations.current_turn(self.runtime.site.scope.conversation_id)
        if left is not None and left.owner is None and self._watcher:
            self._watcher.note(f"the turn that was left open ({left.id[-8:]}) ends with this new goal")
        return self._see_through(self.runtime.run(agent, goal, self._signal), lambda _: agent)

    def resume(self, choose: Callable[[str], AgentDefinition]) -> TurnResult:
        return self._see_through(resume_session(self.runtime, choose, self._signal), choose)

    def _see_through(
        self, first: Coroutine[Any, Any, TurnResult], choose: Callable[[str], AgentDefinition]
    ) -> TurnResult:
        async def see_through() -> TurnResult:
            self._stop_on_interrupt()
            outcome = await self._stay(await first, choose)
            while outcome.reason not in _NOTHING_MORE:
                following = await self._queued(choose)
                if following is None:
                    break
                outcome = await self._stay(following, choose)
            return outcome

        try:
            return asyncio.run(see_through())
        finally:
            if self._watcher:
                self._watcher.erase()

    async def _stay(self, outcome: TurnResult, choose: Callable[[str], AgentDefinition]) -> TurnResult:
        """With --wait, a turn that has to wait is gone on with as soon as it can be."""
        while self._waits and outcome.reason is Reason.WAITING and not self._signal.is_set:
            if not await wait_until_resumable(self.runtime, outcome.turn_id, self._signal):
                break
            outcome = await resume_session(self.runtime, choose, self._signal)
        return outcome

    async def _queued(self, choose: Callable[[str], AgentDefinition]) -> TurnResult | None:
        """A turn with the next message that a person left for the agent, if there is one (S10)."""
        runtime = self.runtime
        agent = choose("supervisor")
        scope = replace(runtime.site.scope, actor=Actor(Role.SUPERVISOR, agent.name))
        deliver = MessageQueue(runtime.site.store).deliver
        delivered = await make_bridge(runtime.site.store)(deliver, scope, owner=current_process())
        if delivered is None:
            return None
        if self._watcher:
            self._watcher.note(f"next in the queue: {delivered.queued.content}")
        return await runtime.run_stored(agent, delivered.turn, self._signal)

    def _stop_on_interrupt(self) -> None:
        """Ctrl-C once ends in good order, twice at once."""

        def stop(why: str) -> None:
            if self._signal.is_set:
                os._exit(CANCELLED)
            self._signal.set(why)

        with suppress(NotImplementedError):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, stop, "a person pressed Ctrl-C")
            loop.add_signal_handler(signal.SIGTERM, stop, "the program was told to end")
