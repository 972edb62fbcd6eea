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
from punchlist.agent.goals import draft_criteria, goal_from
from punchlist.agent.live_output import LiveOutput
from punchlist.agent.model_resolver import ModelResolver
from punchlist.agent.resume import resume_session, wait_until_resumable
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn_model import TurnResult
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.next_turn import NextTurns
from punchlist.errors import ConfigError, NotFound
from punchlist.kernel.cancellation import CancelSignal, run_unless_cancelled
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.process_runner import end_all
from punchlist.kernel.processes import current_process
from punchlist.storage.async_bridge import make_bridge
from punchlist.surfaces.cli.agent_guard import agent_evidence
from punchlist.surfaces.cli.approval_prompt import ApprovalPrompt
from punchlist.surfaces.cli.run_output import RunOutput
from punchlist.toolcalls.policy import Mode
from punchlist.verification.goal import Goal
from punchlist.verification.person_checks import record_person_check

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.cli.tools import ModeChoice
    from punchlist.toolcalls.approvals import ApprovalAnswer
    from punchlist.toolcalls.model import WaitingToolCall

_LAST: Final = (Reason.WAITING, Reason.CANCELLED, Reason.ERROR)
"""After a turn that ends like this, queued messages stay queued."""
Choose = Callable[[str], AgentDefinition]
"""Selects an agent by its name."""
CANCELLED: Final = 130
SAME_SIGNAL_SECONDS: Final = 0.3
"""Wrappers such as `timeout` and `uv run` pass on a signal that the terminal has sent to this process as well."""
TICK_SECONDS: Final = 0.1
FINISH_OPEN: Final = "Finish the open items of this session's list:"


class RunSession:
    def __init__(
        self,
        services: Services,
        scope: Scope,
        model: str,
        mode: ModeChoice | None,
        output: RunOutput,
        *,
        waits: bool,
        strategy: str | None = None,
    ) -> None:
        """`strategy`: the one with which turns are resumed; None for the one with which they were begun."""
        self._prompt = ApprovalPrompt.from_terminal() if sys.stdin.isatty() else None
        self._output = output
        self._loop: asyncio.AbstractEventLoop | None = None
        output.on_closed = self._stop_soon
        self._services = services
        self._waits = waits
        self._strategy = strategy
        self._signal = CancelSignal()
        self._model = model
        self._chosen_at = timestamp(services.store.clock())
        self._live = LiveOutput(services.store)
        self.runtime = AgentRuntime(
            services.site(scope, Path.cwd()),
            services.conversations,
            services.plans,
            services.checklists,
            ModelResolver(model, os.environ, output.note),
            Mode(mode) if mode else None,
            services.agents.definitions,
            ask=self._ask if self._prompt else None,
            wait_for_approval=waits,
            on_event=services.observed(self._live.listener(scope.conversation_id, output.show_event)),
            telemetry=services.telemetry,
        )

    def run(self, agent: AgentDefinition, goal: str, until: str | Goal | None = None) -> TurnResult:
        """Run a turn with a goal; with `until`, it is completed only when that is true. A `Goal` is used as it is."""
        last = self.runtime.conversations.last_turn(self.runtime.site.scope.conversation_id)
        if last is not None and last.open and last.owner is None:
            self._output.note(f"ending the open turn {last.id[-8:]}; this goal replaces it")
        # The goal takes over what the last turn left open (T14).
        return self._complete(self._run(agent, goal, until, last.id if last is not None else None), lambda _: agent)

    async def _run(
        self, agent: AgentDefinition, goal: str, until: str | Goal | None, take_over: str | None
    ) -> TurnResult:
        accepted = await self._criteria(agent, goal, until) if isinstance(until, str) else until
        return await self.runtime.run(agent, goal, self._signal, take_over=take_over, until=accepted)

    async def _criteria(self, agent: AgentDefinition, goal: str, until: str) -> Goal:
        """The criteria of `--until`. At a terminal, the model drafts them and the person accepts or edits them."""
        criteria: list[str] | None = [until]
        if self._prompt is not None and self._output.animated:
            from punchlist.surfaces.cli.criteria_prompt import ask_criteria
            from punchlist.tools.function_tool import run_in_thread

            self._output.note("drafting the acceptance criteria")
            criteria = await run_unless_cancelled(
                self._signal, draft_criteria(self.runtime.model_for(agent), goal, until)
            )
            if criteria is not None:
                drafted = criteria

                async def ask() -> list[str]:
                    answer: list[str] = await run_in_thread(ask_criteria, {"drafted": drafted, "until": until})
                    return answer

                criteria = await run_unless_cancelled(self._signal, ask())
        if criteria is None:
            raise KeyboardInterrupt
        # Commands in criteria that an agent wrote need approval.
        accepted = goal_from(criteria, by_person=agent_evidence() is None)
        for check in accepted.checks:
            if check.by_person and check.command is not None:
                record_person_check(self._services.trust, self.runtime.site.project_folder, check.command)
        return accepted

    def resume(self, choose: Choose) -> TurnResult:
        """Continue the turn that was interrupted or that waits."""
        return self._complete(self._resume_session(choose), choose)

    def _resume_session(self, choose: Choose) -> Coroutine[Any, Any, TurnResult]:
        return resume_session(self.runtime, choose, self._signal, strategy=self._strategy)

    def deliver(self, choose: Choose) -> TurnResult:
        """Run a turn for the next queued message."""
        return self._complete(self._deliver(choose), choose)

    async def _deliver(self, choose: Choose) -> TurnResult:
        if (outcome := await self._queued(choose)) is not None:
            return outcome
        session = self.runtime.site.scope.conversation_id
        raise NotFound(
            f"Session {session!r} has no message to deliver: its queue is empty, or its turn is open (`punchlist run "
            "--resume` continues it)."
        )

    def finish_open(self, choose: Choose, agent: str) -> TurnResult:
        """Continue the session's turn; else work on its open items; else deliver a queued message."""
        return self._complete(self._finish_open(choose, agent), choose)

    async def _finish_open(self, choose: Choose, agent: str) -> TurnResult:
        runtime = self.runtime
        try:
            return await self._resume_session(choose)
        except NotFound:
            items = await make_bridge(runtime.site.store)(self._services.todos.list, runtime.site.scope)
            if items.open_items:
                titles = "".join(f"\n- {item.title}" for item in items.open_items)
                return await runtime.run(choose(agent), f"{FINISH_OPEN}{titles}", self._signal, is_planned=True)
            if (outcome := await self._queued(choose)) is not None:
                return outcome
        session = runtime.site.scope.conversation_id
        raise NotFound(f"Session {session!r} has nothing open. Give a goal: punchlist run GOAL")

    def _complete(self, first: Coroutine[Any, Any, TurnResult], choose: Choose) -> TurnResult:
        async def run_all() -> TurnResult:
            self._loop = asyncio.get_running_loop()
            self._stop_on_interrupt()
            ticks = asyncio.create_task(self._tick()) if self._output.animated else None
            try:
                return await run_turns()
            finally:
                if ticks is not None:
                    ticks.cancel()

        async def run_turns() -> TurnResult:
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
            self._live.close()
            self._output.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._output.tick()

    async def _ask(self, call: WaitingToolCall, problem: str | None = None) -> ApprovalAnswer | None:
        assert self._prompt is not None
        self._output.pause()
        try:
            return await self._prompt.ask(call, problem)
        finally:
            self._output.resume()

    async def _stay(self, outcome: TurnResult, choose: Choose) -> TurnResult:
        """With --wait, continue a waiting turn as soon as it can continue."""
        while self._waits and outcome.reason is Reason.WAITING and not self._signal.is_set:
            if not await wait_until_resumable(self.runtime, outcome.turn_id, self._signal):
                break
            outcome = await self._resume_session(choose)
        return outcome

    async def _queued(self, choose: Choose) -> TurnResult | None:
        """Run a turn for the next queued message, if there is one (S10)."""
        site, call = self.runtime.site, make_bridge(self.runtime.site.store)
        agent = choose("supervisor")
        scope = replace(site.scope, actor=Actor(Role.SUPERVISOR, agent.name))
        delivered = await call(MessageQueue(site.store).deliver, scope, owner=current_process())
        if delivered is None:
            return None
        await call(self._adopt_choice)
        self._output.note(f"next in the queue: {delivered.queued.content}")
        return await self.runtime.run_stored(agent, delivered.turn, self._signal)

    def _adopt_choice(self) -> None:
        """Use the mode and the model that the person has chosen for the next turn since this process began."""
        session = self.runtime.site.scope.conversation_id
        chosen = NextTurns(self._services.store, self._services.trust).get(session)
        if chosen is None or chosen.at <= self._chosen_at:
            return
        self._chosen_at = chosen.at
        self.runtime = replace(self.runtime, mode=Mode(chosen.mode))
        if chosen.model not in ("", self._model):
            try:
                resolver = ModelResolver(chosen.model, os.environ, self._output.note)
            except ConfigError as error:
                self._output.note(str(error))
            else:
                self._model = chosen.model
                self.runtime = replace(self.runtime, model_for=resolver)

    def _stop_soon(self, why: str) -> None:
        """Cancel the turn, from any thread."""
        # After the event loop has ended, there is no turn to stop.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._signal.set, why)

    def _stop_on_interrupt(self) -> None:
        """The first Ctrl-C cancels the turn, the second one ends the process."""
        loop = asyncio.get_running_loop()
        first = 0.0

        def stop(why: str) -> None:
            nonlocal first
            if not self._signal.is_set:
                first = loop.time()
                self._signal.set(why)
            elif loop.time() - first > SAME_SIGNAL_SECONDS:
                end_all()
                os._exit(CANCELLED)

        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, stop, "a person pressed Ctrl-C")
            loop.add_signal_handler(signal.SIGTERM, stop, "the process received SIGTERM")
