"""Runs the turns of `punchlist run`: the first one, then one for each queued message. Ctrl-C cancels."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.model_resolver import ModelResolver
from punchlist.agent.resume import resume_session, wait_until_resumable
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn import TurnResult
from punchlist.conversations.message_queue import MessageQueue
from punchlist.errors import NotFound
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.process_runner import end_all
from punchlist.kernel.processes import current_process
from punchlist.storage.async_bridge import make_bridge
from punchlist.surfaces.cli.approval_prompt import ApprovalPrompt
from punchlist.surfaces.cli.run_display import RunDisplay
from punchlist.toolcalls.policy import Mode

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.cli.tools import ModeChoice

_LAST: Final = (Reason.WAITING, Reason.CANCELLED, Reason.ERROR)
"""After a turn that ends like this, queued messages stay queued."""
Choose = Callable[[str], AgentDefinition]
"""Selects an agent by its name."""
CANCELLED: Final = 130
FINISH_OPEN: Final = "Finish the open items of this session's list:"


class RunSession:
    def __init__(
        self, services: Services, scope: Scope, model: str, mode: ModeChoice | None, *, quiet: bool, waits: bool
    ) -> None:
        terminal = ApprovalPrompt.from_terminal() if sys.stdin.isatty() else None
        display = None if quiet else RunDisplay.on_stderr()
        if terminal and display:
            terminal.before_asking = display.erase
        self._services = services
        self._waits = waits
        self._signal = CancelSignal()
        self.runtime = AgentRuntime(
            services.site(scope, Path.cwd()),
            services.conversations,
            services.plans,
            services.checklists,
            ModelResolver(model, os.environ, display.note if display else None),
            Mode(mode) if mode else None,
            services.agents.definitions,
            ask=terminal.ask if terminal else None,
            wait_for_approval=waits,
            on_event=display.show_event if display else None,
        )
        self._display = display

    def run(self, agent: AgentDefinition, goal: str) -> TurnResult:
        left = self.runtime.conversations.current_turn(self.runtime.site.scope.conversation_id)
        if left is not None and left.owner is None and self._display:
            self._display.note(f"ending the open turn {left.id[-8:]}; this goal replaces it")
        return self._complete(self.runtime.run(agent, goal, self._signal), lambda _: agent)

    def resume(self, choose: Choose) -> TurnResult:
        """Continue the turn that was interrupted or that waits."""
        return self._complete(resume_session(self.runtime, choose, self._signal), choose)

    def finish_open(self, choose: Choose, agent: str) -> TurnResult:
        """Continue the session's turn; else work on its open items; else deliver a queued message."""
        return self._complete(self._finish_open(choose, agent), choose)

    async def _finish_open(self, choose: Choose, agent: str) -> TurnResult:
        runtime = self.runtime
        try:
            return await resume_session(runtime, choose, self._signal)
        except NotFound:
            items = await make_bridge(runtime.site.store)(self._services.todos.list, runtime.site.scope)
            if items.open_items:
                titles = "".join(f"\n- {item.title}" for item in items.open_items)
                return await runtime.run(choose(agent), f"{FINISH_OPEN}{titles}", self._signal)
            if (outcome := await self._queued(choose)) is not None:
                return outcome
        session = runtime.site.scope.conversation_id
        raise NotFound(f"Session {session!r} has nothing open. Give a goal: punchlist run GOAL")

    def _complete(self, first: Coroutine[Any, Any, TurnResult], choose: Choose) -> TurnResult:
        async def run_all() -> TurnResult:
            self._stop_on_interrupt()
            outcome = await self._stay(await first, choose)
            while outcome.reason not in _LAST:
                following = await self._queued(choose)
                if following is None:
                    break
                outcome = await self._stay(following, choose)
            return outcome

        try:
            return asyncio.run(run_all())
        finally:
            if self._display:
                self._display.erase()

    async def _stay(self, outcome: TurnResult, choose: Choose) -> TurnResult:
        """With --wait, continue a waiting turn as soon as it can continue."""
        while self._waits and outcome.reason is Reason.WAITING and not self._signal.is_set:
            if not await wait_until_resumable(self.runtime, outcome.turn_id, self._signal):
                break
            outcome = await resume_session(self.runtime, choose, self._signal)
        return outcome

    async def _queued(self, choose: Choose) -> TurnResult | None:
        """Run a turn for the next queued message, if there is one (S10)."""
        runtime = self.runtime
        agent = choose("supervisor")
        scope = replace(runtime.site.scope, actor=Actor(Role.SUPERVISOR, agent.name))
        deliver = MessageQueue(runtime.site.store).deliver
        delivered = await make_bridge(runtime.site.store)(deliver, scope, owner=current_process())
        if delivered is None:
            return None
        if self._display:
            self._display.note(f"next in the queue: {delivered.queued.content}")
        return await runtime.run_stored(agent, delivered.turn, self._signal)

    def _stop_on_interrupt(self) -> None:
        """The first Ctrl-C cancels the turn, the second one ends the process."""

        def stop(why: str) -> None:
            if self._signal.is_set:
                end_all()
                os._exit(CANCELLED)
            self._signal.set(why)

        with suppress(NotImplementedError):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, stop, "a person pressed Ctrl-C")
            loop.add_signal_handler(signal.SIGTERM, stop, "the process received SIGTERM")
