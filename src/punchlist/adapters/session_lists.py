"""`SessionLists`: the interface that all framework adapters use.

    run = lists.begin()                         a run of the framework's agent starts
    run, text = lists.before(run)               the list state to show to the model before a request
    answer = lists.call(run, "start_todo", …)   call a list tool
    run, prompt = lists.after(run)              the model has stopped: continue with a prompt, or end with a reason

A run is a value (`run_state.py`) that the framework stores with its own state, so that concurrent runs do not
share anything. `agent.continuation` decides as it does for our own loop.
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
from punchlist.agent.continuation import (
    Continue,
    Judge,
    Limits,
    Proceed,
    Reason,
    Stop,
    TryFresh,
    Wait,
    decide,
    ending_text,
)
from punchlist.agent.definitions import REMIND_AFTER, AgentDefinition, with_overrides
from punchlist.agent.list_state import ListItem, ListState, TurnLists
from punchlist.agent.message_kinds import CONTINUATION, ENDING
from punchlist.agent.prompts import HONESTY, planning, reminder
from punchlist.app import Services
from punchlist.checklist.render import GUIDANCE as CHECKLIST
from punchlist.config import continuation_settings, load
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.errors import ConfigError, InvalidInput, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.ids import new_id
from punchlist.kernel.tool import ListToolSpec
from punchlist.storage.async_bridge import AsyncBridge, make_bridge
from punchlist.storage.sqlite import WouldBlock
from punchlist.surfaces.role_tools import RoleTools

MAX_REMEMBERED_RUNS: Final = 1_000
"""Sessions whose last run is kept for `last`."""
FINISHED: Final = "completed: nothing is open"
"""End reason of a turn whose list is clear when the next run starts."""
_PLAIN: Final = re.compile(r"[!-~]{1,200}")
CANCELLING: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


class ToolAnswer(NamedTuple):
    text: str
    failed: bool = False


class SessionLists:
    """The lists of a framework's agents: the tools of a role, and the decision whether an agent continues."""

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
        """All runs use `session`; without it, each conversation of the framework has its own. `database` defaults to
        that of the project around `workspace`. `role` selects the tools (a `worker` has no plan); `agent` is the name
        in the audit trail. `limits` and `continues` control continuation; they default to environment and settings."""
        if limits is not None and limits.cost is not None:
            raise ConfigError("limits: the cost of a framework's model is unknown. Limit tokens or seconds instead.")
        self._named = session
        self._remind_after = remind_after
        self._actor = Actor(_role(role), agent)
        self._app = Services(load({"database": database}, cwd=Path(workspace).resolve()))
        defaults = _default_agent(self._app)
        # The cost of this model is unknown, so the cost limit of the settings does not apply.
        self.limits = replace(defaults.limits, cost=None) if limits is None else limits
        self._continues = defaults.todo_driven if continues is None else continues
        # Opening the database here reports its problems before a run starts.
        self.bridge: AsyncBridge = make_bridge(self._app.store)
        self._role_tools = RoleTools(self._app, self._actor.role)
        self._runs: OrderedDict[str, AdapterRun] = OrderedDict()
        self._lock = Lock()

    @property
    def tools(self) -> Sequence[ListToolSpec[Any]]:
        return self._role_tools.tools

    @property
    def guidance(self) -> str:
        """Instructions about the tools, for the system prompt."""
        names = [tool.name for tool in self.tools]
        plan = [planning(names)] if self._role_tools.has_plan else []
        return "\n\n".join([*plan, f"## Checklist\n\n{CHECKLIST}", HONESTY])

    # --- a run --------------------------------------------------------------------------------------------

    def begin(self, conversation: str | None = None) -> AdapterRun:
        """Start a run in the session of that conversation. It joins the open turn unless its list is clear, for
        example after a crash, after a wait, or beside another run."""
        scope = Scope(self._session(conversation), self._actor)
        conversations = self._app.conversations
        first = not conversations.turns(scope.conversation_id, 1)
        turn = conversations.open_turn(scope, reason="a run begins")
        run = AdapterRun(scope.conversation_id, turn.id, turn.started_at, time(), first)
        lists = self._read_lists(run)
        finished = bool(lists.items) and not lists.open and self._role_tools.has_plan
        if turn.owner is not None or finished:
            # `begin_turn` refuses to end a turn that another process owns.
            turn = conversations.begin_turn(scope, reason=FINISHED if finished else "a new request")
            run = AdapterRun(scope.conversation_id, turn.id, turn.started_at, time())
            lists = self._read_lists(run)
        return self._remember(run.with_lists(lists))

    def before(self, run: AdapterRun) -> tuple[AdapterRun, str]:
        """The list state for the next model request, with a reminder if one is due (W7)."""
        try:
            lists = self._read_lists(run)
            if lists.turn_end_reason == FINISHED:
                run, lists = self._join_new_turn(run)
        except WouldBlock:
            raise
        except PunchlistError as error:
            return run, state_text(f"The lists cannot be read: {error}")
        run, text = run.with_lists(lists), None
        if run.reminded_at != run.fingerprint:
            text = reminder(
                requests=run.iterations,
                since_change=run.iterations - run.changed_at,
                after=self._remind_after,
                open=lists.open,
                tools=[tool.name for tool in self.tools],
                listed=bool(lists.text) or not run.first,
            )
        if text is not None:
            run = replace(run, reminded_at=run.fingerprint)
        return run, state_text(lists.text, text or "")

    def _join_new_turn(self, run: AdapterRun) -> tuple[AdapterRun, ListState]:
        """Join the turn that another run of the session opened after the list became clear."""
        turn = self._app.conversations.open_turn(Scope(run.session, self._actor), reason="a run goes on")
        run = replace(run, turn_id=turn.id, since=turn.started_at)
        return run, self._read_lists(run)

    def call(self, run: AdapterRun, tool: str, arguments: object) -> ToolAnswer:
        """Call a list tool. Errors are returned for the model, not raised."""
        try:
            return ToolAnswer(self._role_tools.call(self._scope(run), tool, arguments).text)
        except WouldBlock:
            # Nothing has happened yet; the async bridge calls it again in a thread.
            raise
        except PunchlistError as error:
            return ToolAnswer(str(error), failed=True)

    def after(
        self, run: AdapterRun, *, waits_for: Sequence[str] = (), otherwise: Stop | None = None
    ) -> tuple[AdapterRun, str | None]:
        """The model has stopped. Returns the continuation prompt, or None with the reason in the run.

        `waits_for` describes calls that wait for a person. `otherwise` ends a run that would continue if the
        framework cannot continue it."""
        try:
            return self._decide(run, waits_for, otherwise)
        except WouldBlock:
            raise
        except PunchlistError as error:
            # Without a readable list and a stored counter the run must not continue.
            return self._remember(run.end(Reason.ERROR, str(error))), None

    def _decide(
        self, run: AdapterRun, waits_for: Sequence[str], otherwise: Stop | None
    ) -> tuple[AdapterRun, str | None]:
        lists = self._read_lists(run)
        run, seconds = run.count_stop(lists, self.limits), max(time() - run.started, 0.0)
        decision = decide(
            run.situation(lists, self.limits, seconds=seconds, enabled=self._continues, waits_for=waits_for)
        )
        if isinstance(decision, Continue) and otherwise is not None:
            decision = otherwise
        match decision:
            case Continue(prompt):
                self._save_message(run, MessageRole.USER, CONTINUATION, prompt)
                return self._remember(run.count_continuation()), prompt
            case Wait(on):
                decision = Stop(Reason.WAITING, "; ".join(on))
            case Proceed() | TryFresh() | Judge():
                raise AssertionError("a stopped model has no calls, no pending message and no fresh attempts")
        if decision.reason is not Reason.COMPLETED:
            self._save_message(run, MessageRole.SYSTEM, ENDING, ending_text(decision.reason, decision.why, lists.open))
        return self._remember(run.end(decision.reason, decision.why)), None

    def _save_message(self, run: AdapterRun, role: MessageRole, kind: str, text: str) -> None:
        """Store a message for people; the framework stores the rest of the conversation."""
        scope = Scope(run.session, self._actor)
        self._app.conversations.add_message(scope, role, text, kind=kind, turn_id=run.turn_id)

    def fail(self, run: AdapterRun, error: BaseException) -> AdapterRun:
        """Record that the framework's run failed or was cancelled."""
        reason = Reason.CANCELLED if isinstance(error, CANCELLING) else Reason.ERROR
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return self._remember(run.end(reason, why))

    # --- results ------------------------------------------------------------------------------------------

    def last(self, session: str | None = None) -> AdapterRun | None:
        """The last run of a session or framework conversation; without an argument, the last of all."""
        with self._lock:
            if session is None:
                return next(reversed(self._runs.values()), None)
            return self._runs.get(session) or self._runs.get(_session_name(session))

    @property
    def reason(self) -> Reason | None:
        """Why the last run ended; None if it has not ended or there was none."""
        run = self.last()
        return None if run is None or run.reason is None else Reason(run.reason)

    @property
    def why(self) -> str:
        run = self.last()
        return "" if run is None else run.why

    def todos(self, session: str | None = None) -> tuple[ListItem, ...]:
        """The items on the lists of the last run."""
        run = self.last(session)
        return () if run is None else self._read_lists(run).items

    def close(self) -> None:
        self._app.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- internals ----------------------------------------------------------------------------------------

    def _session(self, conversation: str | None) -> str:
        return self._named or (_session_name(conversation) if conversation else f"agent-{new_id()}")

    def _scope(self, run: AdapterRun) -> TurnScope:
        return TurnScope(run.session, self._actor, run.turn_id)

    def _read_lists(self, run: AdapterRun) -> ListState:
        turn_lists = TurnLists(
            self._app.store,
            self._scope(run),
            plan=self._role_tools.has_plan,
            checklist=True,
        )
        return turn_lists.read()

    def _remember(self, run: AdapterRun) -> AdapterRun:
        with self._lock:
            self._runs[run.session] = run
            self._runs.move_to_end(run.session)
            while len(self._runs) > MAX_REMEMBERED_RUNS:
                self._runs.popitem(last=False)
        return run


def _default_agent(app: Services) -> AgentDefinition:
    """The supervisor with its overrides: its settings are the defaults for framework agents."""
    continues, continuations = continuation_settings(os.environ)
    return with_overrides(app.agents.get("supervisor"), continues=continues, continuations=continuations)


def _session_name(conversation: str) -> str:
    """A session name for a conversation: no blanks, limited length."""
    if _PLAIN.fullmatch(conversation):
        return conversation
    digest = hashlib.sha256(conversation.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', conversation)[:50]}-{digest}"


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInput(f"role: must be one of {', '.join(Role)}, got {role!r}") from None
