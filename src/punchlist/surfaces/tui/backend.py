"""The services as the application uses them.

Every method blocks for a short time, so the application calls them in threads. Nothing here knows the screen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from punchlist.config import current_user
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope, StoredTurn
from punchlist.errors import InvalidInput, NotFound, PunchlistError
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import is_running
from punchlist.models.model import ModelInfo
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.figures import format_count
from punchlist.surfaces.tui.screen_state import (
    ConversationState,
    EntryPage,
    HomeRow,
    HomeState,
    PendingApproval,
    TurnFigures,
)
from punchlist.surfaces.tui.stored_entries import entries_from, with_stored
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.views.chat import read_chat
from punchlist.views.todos import TodoList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from punchlist.app import Services
    from punchlist.surfaces.tui.entries import CallEntry
    from punchlist.surfaces.tui.todo_panel import TodoEdit
    from punchlist.toolcalls.stored_call import StoredApproval, StoredCall
    from punchlist.views.inbox_model import InboxItem

FIRST_PAGE: Final = 60
PAGE: Final = 100
SESSION_ROWS: Final = 40
REASON: Final = "changed in the terminal application"
OUTCOMES: Final = {
    "once": ApprovalOutcome.PROCEED_ONCE,
    "tool": ApprovalOutcome.PROCEED_ALWAYS_TOOL,
    "prefix": ApprovalOutcome.PROCEED_ALWAYS_PREFIX,
    "server": ApprovalOutcome.PROCEED_ALWAYS_SERVER,
    "edit": ApprovalOutcome.MODIFY,
    "deny": ApprovalOutcome.CANCEL,
}


class Backend:
    def __init__(self, services: Services, options: AgentOptions | None = None) -> None:
        self.services = services
        self.options = options or AgentOptions()
        self.person = Actor(Role.PERSON, current_user())
        self._goals: dict[str, str] = {}
        self._infos: dict[str, ModelInfo] = {}

    def scope(self, session: str) -> Scope:
        return Scope(session, self.person)

    def now(self) -> datetime:
        return self.services.store.clock()

    @property
    def model(self) -> str:
        """The model of the next turn; empty if none is set."""
        from punchlist.models.providers import default_model

        agents = self.services.agents
        chosen = agents.get(self.options.agent or "supervisor")
        return self.options.model or chosen.model or agents.default_model or default_model(os.environ) or ""

    # --- home -----------------------------------------------------------------------------------------------

    def home(self) -> HomeState:
        approvals = {one.call_id: one for one in self.approvals()}
        requests = [self._request_row(item) for item in self.services.inbox.list()]
        return HomeState([*requests, *self._sessions()], approvals)

    def _request_row(self, item: InboxItem) -> HomeRow:
        place = f"mission {item.mission}" if item.mission else item.session or ""
        first = next((part for part in item.question.splitlines() if part.strip()), item.subject)
        title = f"{item.subject}: {first}" if item.kind == "approval" else first
        return HomeRow(
            id=f"request:{item.id}",
            group="needs_you",
            state="needs_you",
            title=title,
            details=tuple(part for part in (str(item.kind), place) if part),
            at=item.asked_at,
            session=item.session,
            kind=str(item.kind),
            request_id=item.id,
            mission=item.mission,
            text=item.question,
            answers=tuple(str(answer) for answer in item.answers),
        )

    def _sessions(self) -> list[HomeRow]:
        from punchlist.conversations.repository import overviews
        from punchlist.host_sessions import HostSessions

        with self.services.store.read() as tx:
            found = overviews(tx, SESSION_ROWS)
        agents = HostSessions(self.services.settings, os.environ).running()
        rows = [
            self._session_row(each.conversation.id, each.last, agents.get(each.conversation.id))
            for each in found
            if '"channel":' not in each.conversation.metadata
        ]
        return sorted(filter(None, rows), key=lambda row: row.at, reverse=True)

    def _session_row(self, session: str, turn: StoredTurn | None, host: str | None) -> HomeRow | None:
        """A session in which an agent of ours or a third-party one (`host`) works, or has worked."""
        todos = self.todos(session)
        if turn is None and not todos.items:
            return None
        is_open = host is not None or (turn is not None and turn.open and self._is_ours(turn))
        state, reason = self._session_state(turn, host, todos)
        running = next((item for item in todos.items if item.status == "in_progress"), None)
        summary = todos.summary
        done = f"{summary['completed']}/{summary['total']}" if summary["total"] else ""
        goal = self._goal(turn) if turn is not None else ""
        title = running.label if running and is_open else goal or session
        details = [session, host or (turn.agent_id if turn is not None and is_open else ""), done, reason]
        if turn is not None and is_open and host is None:
            figures = self._figures(turn)
            auto = "auto off" if figures.limit is None else f"auto {figures.continuations}/{figures.limit}"
            details += [auto, f"{format_count(figures.tokens)} tok"]
        at = turn.ended_at or turn.started_at if turn is not None else timestamp(self.now())
        return HomeRow(
            id=f"session:{session}",
            group="working" if is_open else "done",
            state=state,
            title=title,
            details=tuple(filter(None, details)),
            at=at,
            session=session,
        )

    def _session_state(self, turn: StoredTurn | None, host: str | None, todos: TodoList) -> tuple[str, str]:
        """The sign of a session, and why its turn ended."""
        if host is not None:
            return "in_progress", ""
        if turn is None or not self._is_ours(turn):
            return ("waiting", "open items") if todos.open_items else ("completed", "")
        if turn.open:
            return ("in_progress", "") if self._works(turn) else ("waiting", "waits")
        reason = turn.end_reason or ""
        if reason.startswith("completed"):
            return "completed", reason
        return ("failed" if reason.startswith("error") else "waiting"), reason

    def _goal(self, turn: StoredTurn) -> str:
        if turn.id not in self._goals:
            messages = self.services.conversations.turn_messages(turn.id)[:1]
            self._goals[turn.id] = next((message.content for message in messages if message.role == "user"), "")
        return self._goals[turn.id]

    def search(self, words: str) -> list[HomeRow]:
        """Sessions whose name, goal or items contain all words, newest first."""
        wanted = words.lower().split()
        found = []
        for row in self._sessions():
            items = self.todos(row.session or "").items
            text = " ".join([row.title, *row.details, *(item.title for item in items)]).lower()
            if all(word in text for word in wanted):
                found.append(row)
        return found

    def _works(self, turn: StoredTurn) -> bool:
        return turn.owner is not None and is_running(turn.owner) is not False

    # --- a conversation -------------------------------------------------------------------------------------

    def page(
        self, session: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
    ) -> EntryPage:
        """A page of the history; the newest one by default. Empty if the session does not exist yet."""
        try:
            found = read_chat(self.services.store, session, before=before, after=after, limit=limit)
        except NotFound:
            return EntryPage((), 0, 0, False, False)
        positions = [each.message.position for each in found.entries]
        return EntryPage(
            entries_from(found.entries, self._call),
            positions[0] if positions else (before or 0),
            positions[-1] if positions else (after or 0),
            found.earlier,
            found.later,
        )

    def calls(self, entries: Sequence[CallEntry]) -> list[CallEntry]:
        """The current state of calls that had not ended."""
        return [with_stored(entry, stored) if (stored := self._call(entry.id)) else entry for entry in entries]

    def _call(self, id: str) -> StoredCall | None:
        try:
            return self.services.approvals.call(id)
        except NotFound:
            return None

    def conversation(self, session: str) -> ConversationState:
        todos = self.todos(session)
        turn = todos.turn
        return ConversationState(
            session,
            todos,
            turn,
            turn is not None and turn.open and self._works(turn),
            self.approvals(session),
            MessageQueue(self.services.store).pending(session),
            self._figures(turn),
        )

    def _figures(self, turn: StoredTurn | None) -> TurnFigures:
        from punchlist.agent.resume import restore

        agents = self.services.agents
        name = turn.agent_id if turn is not None else self.options.agent or "supervisor"
        try:
            agent = agents.get(name)
        except NotFound:
            return TurnFigures(model=name)
        limit = agent.limits.continuations if agent.todo_driven else None
        figures = TurnFigures(model=self.model, limit=limit, budget=agent.limits.cost, token_budget=agent.limits.tokens)
        if turn is None:
            return figures
        with suppress(PunchlistError):
            restored = restore(self.services.conversations.turn_messages(turn.id))
            counters, info = restored.counters, self._info(figures.model)
            return replace(
                figures,
                continuations=counters.continuations,
                tokens=counters.tokens,
                cost=info.cost(restored.usage),
                context=counters.context,
                context_window=info.context_window,
            )
        return figures

    def _info(self, model: str) -> ModelInfo:
        """Prices and context window of a model; empty if they are unknown."""
        if model not in self._infos:
            self._infos[model] = ModelInfo()
            with suppress(PunchlistError):
                from punchlist.models.pricing import model_info
                from punchlist.models.providers import resolve_model

                self._infos[model] = model_info(resolve_model(model, os.environ))
        return self._infos[model]

    def todos(self, session: str) -> TodoList:
        return self.services.todos.list(self.scope(session))

    def change_todo(self, session: str, change: TodoEdit) -> None:
        todos, scope, reference = self.services.todos, self.scope(session), str(change.number)
        match change.action:
            case "add":
                todos.add(scope, [change.text], reason=REASON)
            case "edit":
                todos.edit(scope, reference, change.text, reason=REASON)
            case "move":
                todos.move(scope, reference, change.position, reason=REASON)
            case "start":
                todos.start(scope, reference, reason=REASON)
            case "complete":
                todos.complete(scope, reference, reason=REASON)
            case "reopen":
                todos.reopen(scope, reference, reason=REASON)
            case "cancel":
                todos.cancel(scope, reference)
            case "accept":
                todos.accept(scope, reference, reason=REASON)
            case "undo":
                todos.undo(scope, reason=REASON)

    # --- turns ----------------------------------------------------------------------------------------------

    def start(self, session: str, goal: str | None, *, resume: bool = False) -> None:
        """Start a turn in a process of its own."""
        from punchlist.agent.turn_process import start_turn
        from punchlist.integrations.session_goals import SessionGoals

        options = self.options
        accepted_by = (
            None if goal is None else SessionGoals(self.services.store, self.services.conversations).get(session)
        )
        start_turn(
            self.services,
            session,
            goal,
            model=options.model,
            mode=options.mode,
            agent=options.agent,
            until=accepted_by.criteria if accepted_by else None,
            resume=resume,
            folder=self.services.workspace,
        )

    def interrupt(self, session: str) -> bool:
        """Interrupt the open turn; False if there is none."""
        from punchlist.agent.turn_process import interrupt_turn

        return interrupt_turn(self.services, session, actor=self.person) is not None

    def queue(self, session: str, text: str) -> None:
        MessageQueue(self.services.store).add(self.scope(session), text)

    def edit_queued(self, session: str, id: str, text: str) -> None:
        MessageQueue(self.services.store).edit(self.scope(session), id, text)

    def withdraw_queued(self, session: str, id: str) -> None:
        MessageQueue(self.services.store).withdraw(self.scope(session), id)

    def call_tool(
        self, session: str, tool: str, arguments: Mapping[str, Any], show: Callable[[CallEntry], None]
    ) -> None:
        from punchlist.surfaces.tui.person_calls import call_tool

        call_tool(self.services, self.scope(session), tool, arguments, self.options.mode, show)

    def run_commands(self, commands: Sequence[str]) -> dict[str, str]:
        from punchlist.surfaces.tui.person_calls import run_commands

        return run_commands(self.services, commands)

    # --- approvals and other requests ---------------------------------------------------------------------------

    def approvals(self, session: str | None = None) -> list[PendingApproval]:
        return [self._pending(approval) for approval in self.services.approvals.waiting(session)]

    def _pending(self, approval: StoredApproval) -> PendingApproval:
        from punchlist.toolcalls.always import describe
        from punchlist.toolcalls.approvals import always_rule

        call = self.services.approvals.call(approval.call_id)
        question = approval.as_question
        rules = {outcome: always_rule(outcome, question, call.tool) for outcome in question.outcomes}
        return PendingApproval(
            approval.call_id,
            approval.conversation_id,
            call.tool,
            json.loads(call.arguments),
            approval.question,
            approval.why,
            call.workspace,
            approval.asked_at,
            {outcome.removeprefix("proceed_always_"): describe(rule) for outcome, rule in rules.items() if rule},
        )

    def answer_approval(
        self, approval: PendingApproval, answer: str, *, reason: str = "", arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Record an answer; if no process waits for it any more, resume the turn."""
        given = ApprovalAnswer(OUTCOMES[answer], self.person, arguments, reason)
        self.services.approvals.answer(approval.call_id, given)
        self._resume_if_idle(approval.session)

    def answer_request(self, row: HomeRow, words: str) -> None:
        """Answer a question with text, another request with one of its actions, such as `extend 2026-12-01`."""
        action, _, rest = words.partition(" ")
        if "answer" in row.answers:
            details: dict[str, Any] = {"action": "answer", "text": words}
        elif action.lower() in row.answers:
            details = {"action": action.lower(), **({"deadline": rest.strip()} if rest.strip() else {})}
        else:
            raise InvalidInput(f"Answer with one of: {', '.join(row.answers)}.")
        scope = self.scope(row.session or self.services.current_session())
        self.services.inbox.answer(scope, row.request_id or "", **details)
        if row.session is not None:
            self._resume_if_idle(row.session)

    def _resume_if_idle(self, session: str) -> None:
        """Continue a waiting turn whose process has ended. A living process notices the answer itself."""
        turn = self.services.conversations.current_turn(session)
        if turn is not None and not self._works(turn) and self._is_ours(turn):
            self.start(session, None, resume=True)

    def _is_ours(self, turn: StoredTurn) -> bool:
        """Whether one of Punchlist's agents works on the turn; third-party agents continue on their own."""
        return turn.agent_id in self.services.agents.definitions
