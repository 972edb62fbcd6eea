"""Decisions for the hooks of third-party agents: a prompt begins a turn, an early stop is continued.

The continuation rules are the same as for our own agents (`agent/continuation.py`). Their input is read from the
session's lists, messages and events. A continuation is recorded before it is returned: one that cannot be recorded
would not be counted, and is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from punchlist.agent.continuation import (
    Continue,
    Decision,
    OpenItem,
    Reason,
    Situation,
    Stop,
    TurnCounters,
    Wait,
    decide,
    ending_text,
)
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.list_state import ListState, TurnLists
from punchlist.agent.message_kinds import CONTINUATION, REMINDER, TEXT
from punchlist.agent.prompts import reminder
from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import ChecklistAction, ChecklistStatus
from punchlist.checklist.model import Checklist, item_json
from punchlist.checklist.service import Checklists
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, MessageRole, NewMessage, Scope, StoredTurn, TurnScope
from punchlist.conversations.service import Conversations, conversation_change
from punchlist.errors import Conflict, StoreDamaged
from punchlist.integrations import messages
from punchlist.integrations.native_lists import merge_copy
from punchlist.integrations.session_history import (
    EARLIER_LIST_KEY,
    FINGERPRINT_KEY,
    NEW_PROMPT,
    PROMPT_KEY,
    REVISION_KEY,
    SESSION_KEY,
    SESSION_STARTED,
    SessionHistory,
    is_by_person,
    read_history,
)
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Event
from punchlist.kernel.processes import is_running
from punchlist.kernel.text import visible_block
from punchlist.plan import repository as plan_repository
from punchlist.plan.model import plan_stream
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

_LIST_TOOLS: Final = ("create_todo", "TodoWrite")
_HISTORY_EVENTS: Final = 300
_HISTORY_MESSAGES: Final = 50
_MAX_REQUEST_LENGTH: Final = 20_000
_MAX_ATTEMPTS: Final = 5
_FINITE_BACKGROUND: Final = ("subagent", "workflow")
"""Kinds of background task that always end. A command may be a server that runs all day."""
COPY_REASON: Final = "copied from the agent's own list"
EARLIER_LIST: Final = "the list is from an earlier session and this one has not changed it"
LIST_UNTOUCHED: Final = "the agent has not changed its list since your last message"
OWN_AGENT_WORKING: Final = "an agent run by Punchlist is working on this list"


@dataclass(frozen=True, slots=True)
class StopDecision:
    decision: Decision
    open_items: tuple[OpenItem, ...] = ()
    pause: float = 0.0
    """Seconds to wait before the agent continues (C4); doubles while nothing changes."""
    silent: bool = False
    """The person gets no notice."""

    @property
    def prompt(self) -> str | None:
        """What the agent is told to do next; None if it may stop."""
        return self.decision.prompt if isinstance(self.decision, Continue) else None

    def notice(self) -> str:
        """What the person is told about a stop with open items."""
        match self.decision:
            case Wait(on):
                text = ending_text(Reason.WAITING, "; ".join(on), ())
            case Stop(reason, why) if reason is not Reason.COMPLETED and not self.silent:
                text = ending_text(reason, why, self.open_items)
            case _:
                return ""
        return visible_block(text)


class HookService:
    def __init__(self, store: Store, conversations: Conversations, agent: AgentDefinition) -> None:
        self._store = store
        self._conversations = conversations
        self._agent = agent

    def session_started(self, scope: Scope, session: str | None, *, is_new: bool) -> str:
        """A host session was started, resumed or compacted. Returns context for the agent."""
        state = self._load(scope, session)
        if is_new and session:
            data = {SESSION_KEY: session, REVISION_KEY: state.checklist.revision}
            self._record(scope, SESSION_STARTED, f"{scope.actor.name} started a session.", data, turn=None)
        if state.lists.open:
            if is_new:
                return messages.list_found(state.lists.text)
            return messages.list_resumed(state.lists.text, state.request.content if state.request else None)
        if not is_new or state.history.reminded == state.fingerprint:
            return ""
        text = initial_reminder(self._agent)
        if text:
            self._record(scope, REMINDER, text, {FINGERPRINT_KEY: state.fingerprint}, turn=None)
        return text

    def prompt_submitted(self, scope: Scope, prompt: str, *, redact: Callable[[str], str] = str) -> str:
        """The user sent a prompt: a turn begins and the counters restart (C4, T7). Returns context for the agent.

        `redact` removes secrets from the text before it is stored.
        """
        if self._is_own_continuation(scope, prompt):
            return ""
        state = self._load(scope, None)
        plan = state.lists.plan_text if state.has_open_plan else ""
        text = redact(prompt).strip()[:_MAX_REQUEST_LENGTH]
        if state.is_prepared:
            self._record(scope, TEXT, text or "…", {PROMPT_KEY: True}, turn=state.turn)
            return messages.plan_prepared(plan) if plan else ""
        request = NewMessage(MessageRole.USER.value, TEXT, text) if text else None
        try:
            self._conversations.begin_turn(scope, reason=NEW_PROMPT, request=request)
        except Conflict:
            # One of our own agents owns the turn.
            return ""
        return messages.plan_unfinished(plan) if plan else ""

    def stop_requested(
        self,
        scope: Scope,
        session: str | None,
        *,
        host_limit: int | None = None,
        background: Sequence[tuple[str, str]] = (),
        worked: bool = True,
    ) -> StopDecision:
        """The agent wants to stop.

        `host_limit` is the number of continuations in a row that the host accepts while nothing changes, `background`
        the kind and description of its running tasks, `worked` whether the agent used a tool since the last prompt.
        """
        state = self._load(scope, session)
        decision = decide(self._situation(state))
        open_items = state.lists.open
        if not isinstance(decision, Continue):
            return StopDecision(decision, open_items)
        unchanged = state.history.unchanged(state.fingerprint)
        if state.is_owned_by_own_agent:
            return StopDecision(Stop(Reason.OPEN, OWN_AGENT_WORKING), open_items)
        if waits := _awaited(background, include_all=unchanged > 0):
            return StopDecision(Wait(waits), open_items)
        if host_limit is not None and unchanged >= host_limit:
            why = f"its host accepts at most {host_limit} continuations in a row"
            return StopDecision(Stop(Reason.CAPPED, why), open_items)
        if state.is_earlier_list:
            if state.history.continuations_in_session or state.fingerprint in state.history.skipped:
                return StopDecision(Stop(Reason.OPEN, EARLIER_LIST), open_items, silent=True)
            return self._continue(scope, state, messages.earlier_list_open(open_items), {EARLIER_LIST_KEY: True})
        if state.is_untouched:
            if state.continuations and not worked:
                return StopDecision(Stop(Reason.OPEN, LIST_UNTOUCHED), open_items)
            return self._continue(scope, state, messages.untouched_list_open(open_items))
        return self._continue(scope, state, decision.prompt)

    def tools_used(self, scope: Scope, session: str | None, count: int) -> str:
        """The agent used `count` tools without changing its list. Returns a reminder, if one is due (W7)."""
        state = self._load(scope, session)
        if state.history.reminded == state.fingerprint:
            return ""
        text = reminder(
            requests=count,
            since_change=count,
            after=self._agent.remind_after,
            open=state.lists.open,
            tools=_LIST_TOOLS,
            listed=bool(state.lists.text),
        )
        if text:
            self._record(scope, REMINDER, text, {FINGERPRINT_KEY: state.fingerprint}, turn=state.turn)
        return text or ""

    def copy_native_list(self, scope: Scope, todos: list[dict[str, Any]], *, only_existing_copy: bool = False) -> bool:
        """Copy the agent's own list to the checklist, keeping items that people added to the copy.

        Returns False, and changes nothing, if the checklist has open items and is not such a copy; with
        `only_existing_copy` also if it has none.
        """
        checklists = Checklists(self._store, self._conversations)
        for _ in range(_MAX_ATTEMPTS):
            with self._store.read() as tx:
                previous = checklist_repository.find_checklist(tx, scope.conversation_id)
                open_items = {item.id for item in previous.items if item.status is not ChecklistStatus.COMPLETED}
                last_change, added_by_people = self._authors(tx, scope, previous.revision, open_items)
            if (open_items or only_existing_copy) and (last_change is None or last_change.reason != COPY_REASON):
                return False
            items = merge_copy(todos, [item_json(item) for item in previous.items], added_by_people)
            try:
                checklists.rewrite(scope, items, reason=COPY_REASON, revision=previous.revision)
                return True
            except Conflict:
                # A person or another hook changed the checklist first.
                continue
        return False

    def _continue(
        self, scope: Scope, state: _SessionState, prompt: str, data: Mapping[str, Any] = MappingProxyType({})
    ) -> StopDecision:
        self._record(scope, CONTINUATION, prompt, {FINGERPRINT_KEY: state.fingerprint, **data}, turn=state.turn)
        pause = self._agent.check_interval * 2.0 ** state.history.unchanged(state.fingerprint)
        return StopDecision(Continue(prompt), state.lists.open, pause)

    def _authors(
        self, tx: Transaction, scope: Scope, revision: int, ids: Collection[str]
    ) -> tuple[Event | None, set[str]]:
        """The checklist's last change by an agent, and those of `ids` that a person added.

        Items older than the history that is read count as added by a person.
        """
        last_change, by_people, unknown = None, set[str](), set(ids)
        for version in range(revision, max(0, revision - _HISTORY_EVENTS), -1):
            event = event_log.at_version(tx, checklist_repository.checklist_stream(scope.conversation_id), version)
            if event is None or (last_change is not None and not unknown):
                break
            added = {step["id"] for step in event.payload()["steps"] if step["action"] == ChecklistAction.ADD}
            if is_by_person(event):
                by_people |= added & unknown
            elif last_change is None:
                last_change = event
            unknown -= added
        return last_change, by_people | unknown

    def _is_own_continuation(self, scope: Scope, prompt: str) -> bool:
        """Some hosts report our continuation as a prompt of the user, possibly after the turn has ended."""
        recent = self._conversations.recent(scope.conversation_id, _HISTORY_MESSAGES)
        return any(message.kind == CONTINUATION and message.content.strip() in prompt for message in recent)

    def _load(self, scope: Scope, session: str | None) -> _SessionState:
        turn = self._conversations.current_turn(scope.conversation_id)
        turn_scope = TurnScope(scope.conversation_id, scope.actor, turn.id if turn else "")
        # The checklist belongs to the session: it counts however many prompts ago it was written.
        lists = TurnLists(self._store, turn_scope, plan=turn is not None, checklist=True, since="").read()
        if lists.checklist is None:
            raise StoreDamaged("; ".join(lists.problems))
        with self._store.read() as tx:
            events = event_log.newest(tx, _HISTORY_EVENTS, scope.conversation_id)
            messages_of_turn = tuple(conversation_repository.turn_messages(tx, turn.id)) if turn else ()
            request = _last_request(messages_of_turn)
            since = request.created_at if request else ""
            by_person = turn is not None and plan_repository.planned_by_person(tx, plan_stream(turn.id), since)
        history = read_history(events, session)
        return _SessionState(turn, messages_of_turn, request, lists, lists.checklist, history, by_person)

    def _situation(self, state: _SessionState) -> Situation:
        elapsed = (self._store.clock() - parse_timestamp(state.turn.started_at)).total_seconds() if state.turn else 0.0
        ended = state.history.ended_by_person
        return Situation(
            open=state.lists.open,
            counters=TurnCounters(
                continuations=len(state.continuations),
                unchanged=state.history.unchanged(state.fingerprint),
                seconds=max(elapsed, 0.0),
            ),
            limits=self._agent.limits,
            enabled=self._agent.todo_driven,
            cancelled=f"a person ended the turn ({ended})" if ended else None,
        )

    def _record(self, scope: Scope, kind: str, text: str, data: dict[str, Any], *, turn: StoredTurn | None) -> None:
        role = MessageRole.USER if kind in (CONTINUATION, TEXT) else MessageRole.SYSTEM
        with self._store.write() as tx:
            if kind == CONTINUATION:
                # Continuations are counted by turn, so there has to be one.
                turn_id: str | None = self._conversations.ensure_turn(tx, scope).id
            else:
                self._conversations.ensure(tx, scope)
                turn_id = turn.id if turn else None
            message = conversation_repository.add_message(
                tx, scope.conversation_id, role, text, kind=kind, turn_id=turn_id
            )
            event_data = conversation_repository.fingerprint(message) | data
            event_log.append(
                tx, conversation_change(scope, "say", message.id, f"a {kind} for a host agent", event_data)
            )


@dataclass(frozen=True, slots=True)
class _SessionState:
    turn: StoredTurn | None
    messages: tuple[Message, ...]
    request: Message | None
    """The user's last message in the turn."""
    lists: ListState
    checklist: Checklist
    history: SessionHistory
    planned_by_person: bool
    """A person created the whole plan since the user's last message."""

    @property
    def fingerprint(self) -> str:
        return self.lists.fingerprint

    @property
    def continuations(self) -> list[Message]:
        """Since the user's last message."""
        last = self.request.position if self.request else 0
        return [message for message in self.messages if message.kind == CONTINUATION and message.position > last]

    @property
    def has_open_plan(self) -> bool:
        listed = {item.id for item in self.checklist.items}
        return any(item.id not in listed for item in self.lists.open)

    @property
    def is_earlier_list(self) -> bool:
        """Everything open existed before the host session started."""
        return self.history.initial_revision == self.checklist.revision and not self.has_open_plan

    @property
    def is_untouched(self) -> bool:
        """The agent has not changed its checklist since the user's last message, and has no plan."""
        changed_at = self.checklist.updated_at
        if self.request is None or changed_at is None or self.has_open_plan:
            return False
        return changed_at < self.request.created_at

    @property
    def is_prepared(self) -> bool:
        """A person planned the turn, and this is the user's first message about it."""
        begun_by_person = self.history.turn_of_person == (self.turn.id if self.turn else "")
        if begun_by_person and not self.continuations and not self.request:
            return True
        return self.has_open_plan and self.planned_by_person

    @property
    def is_owned_by_own_agent(self) -> bool:
        owner = self.turn.owner if self.turn else None
        return owner is not None and is_running(owner) is not False


def initial_reminder(agent: AgentDefinition) -> str:
    """The reminder for a session without a list (W7); empty if reminders are off."""
    return (
        reminder(requests=0, since_change=0, after=agent.remind_after, open=(), tools=_LIST_TOOLS, listed=False) or ""
    )


def _last_request(turn_messages: Sequence[Message]) -> Message | None:
    of_user = (
        message for message in reversed(turn_messages) if (message.role, message.kind) == (MessageRole.USER, TEXT)
    )
    return next(of_user, None)


def _awaited(background: Sequence[tuple[str, str]], *, include_all: bool) -> tuple[str, ...]:
    """Background tasks that a stopping agent may be waiting for.

    A task that may never end counts only when the agent stops again without having changed its lists.
    """
    return tuple(
        f"its {kind} “{description}”" if description else f"its {kind}"
        for kind, description in background
        if include_all or kind in _FINITE_BACKGROUND
    )
