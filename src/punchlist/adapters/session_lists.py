"""`Lists`: what every framework is given, whatever it calls its agents.

    run = lists.begin()                       a run of the framework's agent begins
    run, text = lists.before(run)             what the model is told of the lists before a request
    said = lists.call(run, "start_todo", …)   what one of their tools answers
    run, prompt = lists.after(run)            the model has stopped: sent back with a prompt, or let go with a reason

A run is a value (`run.py`): the framework keeps it where it keeps what is its own, so that runs that happen at the same
time know nothing of each other. The governor (`agent.continuation`) decides as it does for our own loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import time
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from punchlist.adapters.run_state import AdapterRun
from punchlist.agent.context import state_text
from punchlist.agent.continuation import Continue, Limits, Proceed, Reason, Stop, Wait, decide, ending_text
from punchlist.agent.definitions import REMIND_AFTER, AgentDefinition, environment_overrides, with_overrides
from punchlist.agent.list_state import ListItem, ListState, TurnLists
from punchlist.agent.message_kinds import CONTINUATION, ENDING
from punchlist.agent.prompts import HONESTY, PLANNING
from punchlist.agent.reminders import reminder
from punchlist.app import App
from punchlist.checklist.tools import GUIDANCE as CHECKLIST
from punchlist.config import load
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.errors import ConfigError, InvalidInput, PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.ids import new_id
from punchlist.kernel.tool import ListToolSpec
from punchlist.storage.async_bridge import AsyncBridge, make_bridge
from punchlist.storage.sqlite import WouldBlock
from punchlist.surfaces.role_tools import RoleTools

MAX_REMEMBERED_RUNS: Final = 1_000
"""Sessions whose last run can still be asked for."""


FINISHED: Final = "completed: nothing is open"
"""Why a turn ends when a run begins after all of its list is done."""
_PLAIN: Final = re.compile(r"[!-~]{1,200}")
CANCELLING: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


class ToolAnswer(NamedTuple):
    """What a tool answers."""

    text: str
    failed: bool = False


class SessionLists:
    """The lists of a framework's agents: the tools of a role, and the governor that keeps the agents at it."""

    def __init__(
        self,
        session: str | None = None,
        *,
        database: str | None = None,
        workspace: str | Path = ".",
        role: Role | str = Role.SUPERVISOR,
        agent: str = "agent",
        limits: Limits | None = None,
        continues: bool | None = None,
        remind_after: int | None = REMIND_AFTER,
    ) -> None:
        """All runs work in `session`; without one, each conversation of the framework has its own. `database` is that
        of the project around `workspace` unless named. `role` says which tools there are (a `worker` has no plan),
        `agent` is the name in the trail. `limits` and `continues` say how far an agent is sent back; where they are
        not given, environment and settings do."""
        if limits is not None and limits.cost is not None:
            raise ConfigError("limits: what a framework's model costs is not known here. Limit tokens or seconds.")
        self._named = session
        self._remind_after = remind_after
        self._actor = Actor(_role(role), agent)
        self._house = App(load({"database": database}, cwd=Path(workspace).resolve()))
        like = _as_our_own(self._house)
        # A limit of cost is for our own agents: nobody knows here what this one costs.
        self.limits = replace(like.limits, cost=None) if limits is None else limits
        self._continues = like.todo_driven if continues is None else continues
        # Whatever is wrong with the database is said here, and not in the middle of a run.
        self.bridge: AsyncBridge = make_bridge(self._house.store)
        self._toolbox = RoleTools(self._house, self._actor.role)
        self._runs: OrderedDict[str, AdapterRun] = OrderedDict()
        self._remembering = Lock()

    @property
    def tools(self) -> Sequence[ListToolSpec[Any]]:
        return self._toolbox.tools

    @property
    def guidance(self) -> str:
        """What a system prompt says of the tools."""
        planning = [PLANNING] if self._toolbox.has_plan else []
        return "\n\n".join([*planning, f"## Checklist\n\n{CHECKLIST}", HONESTY])

    # --- a run --------------------------------------------------------------------------------------------

    def begin(self, conversation: str | None = None) -> AdapterRun:
        """A run begins, in the session of that conversation. It goes on with the turn that is open there, as long as
        that is not finished: after a crash, after a wait, beside another run."""
        scope = Scope(self._session(conversation), self._actor)
        conversations = self._house.conversations
        first = not conversations.turns(scope.conversation_id, 1)
        turn = conversations.open_turn(scope, reason="a run begins")
        run = AdapterRun(scope.conversation_id, turn.id, turn.started_at, time(), first)
        view = self._look(run)
        finished = bool(view.items) and not view.open and self._toolbox.has_plan
        if turn.owner is not None or finished:
            # One that somebody works on is not ended: that is refused, and says who does.
            turn = conversations.begin_turn(scope, reason=FINISHED if finished else "a new request")
            run = AdapterRun(scope.conversation_id, turn.id, turn.started_at, time())
            view = self._look(run)
        return self._remember(run.with_lists(view))

    def before(self, run: AdapterRun) -> tuple[AdapterRun, str]:
        """Before a request: what the model is told of the lists, and perhaps that it forgets them (W7)."""
        try:
            view = self._look(run)
            if view.turn_end_reason == FINISHED:
                run, view = self._moved(run)
        except WouldBlock:
            raise
        except PunchlistError as error:
            return run, state_text(f"The lists cannot be read now: {error}")
        run, text = run.with_lists(view), None
        if run.reminded_at != run.mark:
            text = reminder(
                requests=run.iterations,
                since_change=run.iterations - run.changed_at,
                after=self._remind_after,
                open=view.open,
                tools=[tool.name for tool in self.tools],
                listed=bool(view.text) or not run.first,
            )
        if text is not None:
            run = replace(run, reminded_at=run.mark)
        return run, state_text(view.text, text or "")

    def _moved(self, run: AdapterRun) -> tuple[AdapterRun, ListState]:
        """Another run in the session has begun after the list was done: this one goes on beside it."""
        turn = self._house.conversations.open_turn(Scope(run.session, self._actor), reason="a run goes on")
        run = replace(run, turn_id=turn.id, since=turn.started_at)
        return run, self._look(run)

    def call(self, run: AdapterRun, tool: str, arguments: object) -> ToolAnswer:
        """What comes of a call; what is wrong with it is said to the model, and nothing is raised for it."""
        try:
            return ToolAnswer(self._toolbox.call(self._here(run), tool, arguments).text)
        except WouldBlock:
            # It has not begun, and is called again where it may wait (`storage.bridge`).
            raise
        except PunchlistError as error:
            return ToolAnswer(str(error), failed=True)

    def after(
        self, run: AdapterRun, *, waits_for: Sequence[str] = (), otherwise: Stop | None = None
    ) -> tuple[AdapterRun, str | None]:
        """The model has stopped: what sends it back to its list, or None and the reason why it may go.

        `waits_for` are calls that wait for a person. `otherwise` is how the run ends where it would be sent back, but
        the framework has no room for more, or no way back."""
        try:
            return self._decided(run, waits_for, otherwise)
        except WouldBlock:
            raise
        except PunchlistError as error:
            # What could not be seen or written down is never "go on": nobody would be counting.
            return self._remember(run.end(Reason.ERROR, str(error))), None

    def _decided(
        self, run: AdapterRun, waits_for: Sequence[str], otherwise: Stop | None
    ) -> tuple[AdapterRun, str | None]:
        view = self._look(run)
        run, seconds = run.count_stop(view, self.limits), max(time() - run.begun, 0.0)
        decision = decide(
            run.situation(view, self.limits, seconds=seconds, enabled=self._continues, waits_for=waits_for)
        )
        if isinstance(decision, Continue) and otherwise is not None:
            decision = otherwise
        match decision:
            case Continue(prompt):
                self._say(run, MessageRole.USER, CONTINUATION, prompt)
                return self._remember(run.count_continuation()), prompt
            case Wait(on):
                decision = Stop(Reason.WAITING, "; ".join(on))
            case Proceed():
                raise AssertionError("it has made no calls, and nobody has said anything")
        if decision.reason is not Reason.COMPLETED:
            self._say(run, MessageRole.SYSTEM, ENDING, ending_text(decision.reason, decision.why, view.open))
        return self._remember(run.end(decision.reason, decision.why)), None

    def _say(self, run: AdapterRun, role: MessageRole, kind: str, text: str) -> None:
        """For people who look at the conversation: what else was said is the framework's."""
        scope = Scope(run.session, self._actor)
        self._house.conversations.add_message(scope, role, text, kind=kind, turn_id=run.turn_id)

    def fail(self, run: AdapterRun, error: BaseException) -> AdapterRun:
        """The framework has given up, or somebody has ended its run."""
        reason = Reason.CANCELLED if isinstance(error, CANCELLING) else Reason.ERROR
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return self._remember(run.end(reason, told))

    # --- afterwards ---------------------------------------------------------------------------------------

    def last(self, session: str | None = None) -> AdapterRun | None:
        """The last run of a session, or of a conversation of the framework; without either, of all."""
        with self._remembering:
            if session is None:
                return next(reversed(self._runs.values()), None)
            return self._runs.get(session) or self._runs.get(_fitting(session))

    @property
    def reason(self) -> Reason | None:
        """Why the last run ended; None when it has not, or when there was none."""
        run = self.last()
        return None if run is None or run.reason is None else Reason(run.reason)

    @property
    def why(self) -> str:
        run = self.last()
        return "" if run is None else run.why

    def todos(self, session: str | None = None) -> tuple[ListItem, ...]:
        """What was on the lists of the last run."""
        run = self.last(session)
        return () if run is None else self._look(run).items

    def close(self) -> None:
        self._house.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- how ----------------------------------------------------------------------------------------------

    def _session(self, conversation: str | None) -> str:
        return self._named or (_fitting(conversation) if conversation else f"agent-{new_id()}")

    def _here(self, run: AdapterRun) -> TurnScope:
        return TurnScope(run.session, self._actor, run.turn_id)

    def _look(self, run: AdapterRun) -> ListState:
        lists = TurnLists(
            self._house.store,
            self._here(run),
            plan=self._toolbox.has_plan,
            checklist=True,
            since=run.since,
        )
        return lists.read()

    def _remember(self, run: AdapterRun) -> AdapterRun:
        with self._remembering:
            self._runs[run.session] = run
            self._runs.move_to_end(run.session)
            while len(self._runs) > MAX_REMEMBERED_RUNS:
                self._runs.popitem(last=False)
        return run


def _as_our_own(house: App) -> AgentDefinition:
    """As whom the agents of others are limited: the supervisor, as environment and files have it."""
    continues, continuations = environment_overrides(os.environ)
    return with_overrides(house.agents.get("supervisor"), continues=continues, continuations=continuations)


def _fitting(conversation: str) -> str:
    """The name of a conversation as that of a session, which has no blanks and is not long."""
    if _PLAIN.fullmatch(conversation):
        return conversation
    digest = hashlib.sha256(conversation.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', conversation)[:50]}-{digest}"


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInput(f"role: must be one of {', '.join(Role)}, got {role!r}") from None
