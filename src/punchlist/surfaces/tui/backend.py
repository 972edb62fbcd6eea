"""The services as the application uses them.

Every method blocks for a short time, so the application calls them in threads. Nothing here knows the screen.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from punchlist.checklist.service import UPDATE_KIND
from punchlist.config import current_user
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import ChatEntry, Scope, StoredTurn
from punchlist.conversations.next_turn import NextTurns
from punchlist.errors import Conflict, InvalidInput, NotFound, PunchlistError
from punchlist.host_sessions import HostSessions
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import visible
from punchlist.missions.repository import active_slugs
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.home_rows import request_row, work_row
from punchlist.surfaces.tui.screen_state import (
    ConversationState,
    EntryPage,
    HomeRow,
    HomeState,
    PendingApproval,
    SessionState,
    TurnFigures,
)
from punchlist.surfaces.tui.stored_entries import entries_from, open_calls, results_of, with_results, with_stored
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.views import repository
from punchlist.views.chat import list_message_before, read_chat
from punchlist.views.conversations import TurnStatusLine, read_status, turn_state
from punchlist.views.home import read_home
from punchlist.views.live_text import LiveTextFeed
from punchlist.views.search import SearchPage, read_search
from punchlist.views.todos import TodoList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from punchlist.app import Services
    from punchlist.surfaces.tui.entries import CallEntry
    from punchlist.surfaces.tui.todo_panel import TodoEdit
    from punchlist.toolcalls.stored_call import StoredApproval, StoredCall
    from punchlist.views.live_text import LiveText

PAGE: Final = 100
HOME_ROWS: Final = 40
"""Of each group."""
SEARCH_ROWS: Final = 50
MAX_NAMED: Final = 10
"""Running sessions that are named when the application is closed."""
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
        if not self.options.mode:
            self.options.mode = self._configured_mode()
        self.person = Actor(Role.PERSON, current_user())
        self._next_turns = NextTurns(services.store, services.trust)
        self._opened_at = timestamp(self.now())
        self._known_choices: dict[str, str] = {}
        """When the choice for the next turns was made that `options` have, by session."""
        self._unshared = 0
        """Changes of `options` that are not stored yet."""

    def _configured_mode(self) -> str:
        # A problem of the file is told when a turn begins.
        with suppress(PunchlistError):
            return str(self.services.tool_settings.policy.mode or "default")
        return "default"

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

    def set_options(self, *, mode: str | None = None, model: str | None = None) -> None:
        """`share_options` must follow; it may do so in a thread."""
        self._unshared += 1
        self.options.mode = mode or self.options.mode
        self.options.model = model or self.options.model

    def share_options(self, session: str) -> None:
        """Tell the process of the turn, which delivers queued messages, and other windows on the session."""
        try:
            options = self.options
            self._known_choices[session] = self._next_turns.choose(
                self.scope(session), options.mode, options.model or ""
            )
        finally:
            self._unshared -= 1

    def _adopt_options(self, line: TurnStatusLine) -> None:
        """Take over what was chosen in another window since this one was opened, or for the open turn."""
        chosen = self._next_turns.get(line.conversation_id)
        if chosen is None or self._unshared or chosen.at <= self._known_choices.get(line.conversation_id, ""):
            return
        begun = line.turn.started_at if line.turn is not None and line.turn.open else self._opened_at
        mode = line.status.mode if line.turn is not None and line.turn.open and line.status is not None else ""
        if chosen.at > min(begun, self._opened_at) or chosen.mode == mode:
            self._known_choices[line.conversation_id] = chosen.at
            self.options.mode, self.options.model = chosen.mode, chosen.model or self.options.model

    # --- home -----------------------------------------------------------------------------------------------

    def home(self) -> HomeState:
        view = read_home(self.services, limit=HOME_ROWS)
        approvals = {one.call_id: one for one in self.approvals()}
        work = [work_row(line) for line in [*view.working, *view.done]]
        requests = [request_row(item, approvals.get(item.id)) for item in view.needs_you]
        with self.services.store.read() as tx:
            missions = active_slugs(tx)
        return HomeState([*requests, *work], approvals, view.needs_you_total, missions)

    def search(self, words: str) -> SearchPage:
        return read_search(self.services.store, words, limit=SEARCH_ROWS)

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
        entries = entries_from(found.entries, self._call, self._list_before(session, found.entries), self._editor)
        if found.later and open_calls(entries):
            # Their results can be behind the end of the page.
            following = read_chat(self.services.store, session, after=positions[-1], limit=limit)
            entries = with_results(entries, results_of(following.entries))
        return EntryPage(
            entries,
            positions[0] if positions else (before or 0),
            positions[-1] if positions else (after or 0),
            found.earlier,
            found.later,
            results_of(found.entries),
        )

    def streamed(self, session: str) -> list[LiveText]:
        """What the open turn of a session has streamed so far and is not stored yet."""
        return LiveTextFeed(self.services.store, session).poll()

    def _list_before(self, session: str, entries: Sequence[ChatEntry]) -> str:
        """The message about the list before the first one of a page; empty if there is none."""
        position = next((each.message.position for each in entries if each.message.kind == UPDATE_KIND), None)
        return list_message_before(self.services.store, session, position) if position is not None else ""

    def calls(self, entries: Sequence[CallEntry]) -> list[CallEntry]:
        """The current state of calls that had not ended."""
        return [
            with_stored(entry, stored, self._editor) if (stored := self._call(entry.id)) else entry for entry in entries
        ]

    def _call(self, id: str) -> StoredCall | None:
        try:
            return self.services.approvals.call(id)
        except NotFound:
            return None

    def _editor(self, call_id: str) -> str:
        """Who has edited the arguments of a call."""
        return self.services.approvals.editor(call_id)

    def conversation(self, session: str) -> ConversationState:
        todos = self.todos(session)
        try:
            line = read_status(self.services.store, session)
        except NotFound:
            return ConversationState(session, todos, figures=self._figures(None), host=self._host(session))
        if line.turn is None or not self._is_ours(line.turn):
            # A third-party agent: its turns are not ours to queue for or to interrupt.
            state: SessionState = "new"
        else:
            state = line.state
        queued = MessageQueue(self.services.store).pending(session) if line.queued else ()
        self._adopt_options(line)
        approvals = self.approvals(session) if line.approvals else ()
        return ConversationState(
            session, todos, line.turn, state, approvals, queued, self._figures(line), self._host(session)
        )

    def _host(self, session: str) -> str:
        return HostSessions(self.services.settings, os.environ).running().get(session, "")

    def _figures(self, line: TurnStatusLine | None) -> TurnFigures:
        """What the owner of the turn has stored; before the first turn, the agent's limits."""
        status, model = line.status if line else None, self.model
        if line is None or status is None:
            try:
                agent = self.services.agents.get(self.options.agent or "supervisor")
            except NotFound:
                return TurnFigures(model)
            limits = agent.limits
            limit = limits.continuations if agent.todo_driven else None
            done = self._continuations(line.turn) if line and line.turn else 0
            return TurnFigures(model, "", done, limit, budget=limits.cost, token_budget=limits.tokens)
        is_open = line.turn is not None and line.turn.open
        return TurnFigures(
            status.model if is_open else model,
            status.mode if is_open else "",
            status.continuations,
            status.continuation_limit,
            status.input_tokens + status.output_tokens,
            status.cost,
            status.cost_limit,
            status.token_limit,
            status.context_tokens,
            status.context_window,
        )

    def _continuations(self, turn: StoredTurn) -> int:
        """Of a third-party agent, from its messages."""
        with self.services.store.read() as tx:
            return repository.continuations_of_turn(tx, turn_id=turn.id) or 0

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

    def start(self, session: str, goal: str | None, *, resume: bool = False, queued: bool = False) -> None:
        """Start a turn in a process of its own."""
        from punchlist.agent.turn_process import start_turn
        from punchlist.integrations.session_goals import SessionGoals

        options = replace(self.options)
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
            queued=queued,
            folder=self.services.workspace,
        )
        if options != self.options:
            # Changed while the process began.
            self._unshared += 1
            self.share_options(session)

    def send(self, session: str, text: str) -> bool:
        """Give an idle agent a message. Older queued messages go first. Whether a turn with this message began."""
        queue = MessageQueue(self.services.store)
        if not queue.pending(session):
            try:
                self.start(session, text)
                return True
            except Conflict:
                # Another process was faster, for example a second window.
                pass
        queue.add(self.scope(session), text)
        self.deliver(session)
        return False

    def deliver(self, session: str) -> None:
        """Start a turn with the first queued message, unless a process works in the session: it delivers them itself.

        Nothing happens if the queue is empty.
        """
        with suppress(Conflict, NotFound):
            self.start(session, None, queued=True)

    def resume(self, session: str) -> None:
        """Continue the turn whose process died."""
        self.start(session, None, resume=True)

    def farewell(self) -> str:
        """What goes on running after the application is closed, and how to return to it."""
        with self.services.store.read() as tx:
            turns = [turn for turn in repository.open_turns(tx) if turn_state(turn) == "working"]
        sessions = list(dict.fromkeys(turn.conversation_id for turn in turns if self._is_ours(turn)))
        waiting = {approval.session for approval in self.approvals()}
        lines = [
            f"Session {visible(id)} {'waits for you' if id in waiting else 'goes on running'}: "
            f"punchlist chat -s {shlex.quote(id)}"
            for id in sessions
        ]
        more = [f"and {len(lines) - MAX_NAMED} more: punchlist sessions"] if len(lines) > MAX_NAMED else []
        return "\n".join([*lines[:MAX_NAMED], *more])

    def interrupt(self, session: str) -> bool:
        """Interrupt the open turn; False if there is none."""
        from punchlist.agent.turn_process import interrupt_turn

        return interrupt_turn(self.services, session, actor=self.person) is not None

    def queue(self, session: str, text: str) -> None:
        MessageQueue(self.services.store).add(self.scope(session), text)

    def edit_queued(self, session: str, id: str, text: str) -> None:
        MessageQueue(self.services.store).edit(self.scope(session), id, text)

    def call_tool(
        self,
        session: str,
        tool: str,
        arguments: Mapping[str, Any],
        show: Callable[[CallEntry], None],
        *,
        approved: bool = False,
    ) -> None:
        from punchlist.surfaces.tui.person_calls import call_tool

        call_tool(self.services, self.scope(session), tool, arguments, self.options.mode, show, approved=approved)

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
        """Record an answer; if no process waits for it any more, resume the turn.

        A call that the person has edited runs with its edited arguments.
        """
        if approval.is_edited and answer == "once":
            answer, arguments = "edit", approval.arguments
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
        if turn is not None and turn_state(turn) != "working" and self._is_ours(turn):
            self.start(session, None, resume=True)

    def _is_ours(self, turn: StoredTurn) -> bool:
        """Whether one of Punchlist's agents works on the turn; third-party agents continue on their own."""
        return turn.agent_id in self.services.agents.definitions
