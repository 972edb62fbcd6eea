"""Agents of others: a prompt begins a turn, and one that stops early is sent back to its list.

The same governor decides as for our own agents (`agent/continuation.py`). What it has to know is read
from the session's lists, messages and events; what it decides is written there before anybody hears it.
An answer that could not be written down is never "go on": nobody would be counting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from punchlist.agent.continuation import Continue, Decision, Reason, Situation, Stop, TurnCounters, Wait, decide
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.list_state import ListState, TurnLists
from punchlist.agent.message_kinds import CONTINUATION, REMINDER, TEXT
from punchlist.agent.reminders import reminder
from punchlist.checklist import service as checklist_service
from punchlist.checklist.lifecycle import ChecklistAction, ChecklistStatus
from punchlist.checklist.model import Checklist, item_json
from punchlist.checklist.service import Checklists
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, MessageRole, NewMessage, Scope, StoredTurn, TurnScope
from punchlist.conversations.service import Conversations, change
from punchlist.errors import Conflict
from punchlist.integrations import messages as integrations_messages
from punchlist.integrations.background_work import BackgroundWork, waited_for
from punchlist.integrations.native_lists import fitted
from punchlist.integrations.session_history import (
    ASIDE,
    BEGAN,
    MARK,
    PROMPT,
    PROMPTED,
    REVISION,
    SESSION,
    SessionHistory,
    follow,
    is_of_a_person,
)
from punchlist.kernel.actors import Role
from punchlist.kernel.clock import moment
from punchlist.kernel.events import Event
from punchlist.kernel.process_id import lives
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.transitions import plan_stream
from punchlist.storage import event_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

_WRITERS: Final = ("create_todo", "TodoWrite")
_LOOK_BACK: Final = 300
"""Events. What is older than so many changes of a session is no longer asked about."""
_WORDS_BACK: Final = 50
"""Messages among which words of ours are looked for that somebody hands on."""
_LONGEST_REQUEST: Final = 20_000
_PLANNED_BEFORE: Final = Statement(
    f"SELECT 1 FROM events WHERE stream = :stream AND action = '{PlanAction.CREATE}' "
    f"AND (actor NOT LIKE '{Role.PERSON}:%' OR at <= :since) LIMIT 1"
)
"""Something on a plan that an agent has put there, or that was there when the user last said something."""
_MOST_TRIES: Final = 5
AS_ITS_OWN: Final = "as the agent's own list says"
"""Why a checklist is written that is a copy of one that the agent keeps itself."""
OF_BEFORE: Final = "it is a list of an earlier session, and this one has not touched it"
LEFT: Final = "since you last said something, the agent has left its list as it was"
OF_OURS: Final = "an agent of Punchlist's own works on this list"


@dataclass(frozen=True, slots=True)
class _SessionState:
    turn: StoredTurn | None
    said: tuple[Message, ...]
    view: ListState
    trail: SessionHistory
    checklist: Checklist
    planned_by_people: bool
    """Whether a person has put all of the turn's plan there, since the user last said something."""

    @property
    def mark(self) -> str:
        return self.view.fingerprint

    @property
    def sent_back(self) -> list[Message]:
        """Since the user last said something."""
        last = self.asked.position if self.asked else 0
        return [message for message in self.said if message.kind == CONTINUATION and message.position > last]

    @property
    def asked(self) -> Message | None:
        return _last_request(self.said)

    @property
    def planned(self) -> bool:
        """Whether anything of a plan is open."""
        listed = {item.id for item in self.checklist.items}
        return any(item.id not in listed for item in self.view.open)

    @property
    def untouched(self) -> bool:
        """Whether all that is open was left by others before the agent's session began."""
        return self.trail.began_with == self.checklist.revision and not self.planned

    @property
    def aside(self) -> bool:
        """Whether the agent has left its list as it was since the user said something."""
        asked, changed = self.asked, self.checklist.updated_at
        return asked is not None and changed is not None and changed < asked.created_at and not self.planned

    @property
    def prepared(self) -> bool:
        """Whether a person has put there what is planned, and the user speaks of it only now."""
        begun_by_person = self.trail.prepared == (self.turn.id if self.turn else "")
        return (begun_by_person and not self.sent_back and not self.asked) or (self.planned and self.planned_by_people)

    @property
    def occupied(self) -> bool:
        """Whether one of our own agents is at work: the turn and its plan are its."""
        owner = self.turn.owner if self.turn else None
        return owner is not None and lives(owner) is not False


@dataclass(frozen=True, slots=True)
class StopDecision:
    decision: Decision
    view: ListState
    pause: float = 0.0
    """Seconds to wait before it is sent back (C4): longer each time that nothing came of it."""
    quiet: bool = False
    """The person need not be told."""


class HookService:
    def __init__(
        self, store: Store, conversations: Conversations, checklists: Checklists, agent: AgentDefinition
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._checklists = checklists
        self._agent = agent

    def began(self, scope: Scope, session: str | None, *, fresh: bool) -> str:
        """The agent's session begins, or goes on: after a pause, or after its memory was compacted. What to tell it."""
        now = self._look(scope, session)
        if fresh and session:
            told = f"{scope.actor.name} has begun a session."
            self._note(scope, BEGAN, told, {SESSION: session, REVISION: now.checklist.revision}, turn=None)
        if now.view.open:
            asked = now.asked.content if now.asked else None
            return (
                integrations_messages.found(now.view.shown)
                if fresh
                else integrations_messages.so_far(now.view.shown, asked)
            )
        if not fresh or now.trail.reminded == now.mark:
            return ""
        text = initial_reminder(self._agent)
        if text:
            self._note(scope, REMINDER, text, {MARK: now.mark}, turn=None)
        return text

    def prompted(self, scope: Scope, prompt: str, *, hide: Callable[[str], str] = str) -> str:
        """The user has said something: a turn begins, and the counting anew (C4, T7). What to tell the agent. `hide`
        takes out what is not to be kept of it."""
        if self._said(scope, prompt):
            # Some hand our own words on as if the user had said them.
            return ""
        now = self._look(scope, None)
        left = self._lists(scope, now.turn, checklist=False).shown if now.planned else ""
        text = hide(prompt).strip()[:_LONGEST_REQUEST]
        if now.prepared:
            self._note(scope, TEXT, text or "…", {PROMPT: True}, turn=now.turn)
            return integrations_messages.prepared(left) if left else ""
        request = NewMessage(MessageRole.USER.value, TEXT, text) if text else None
        try:
            self._conversations.begin_turn(scope, reason=PROMPTED, request=request)
        except Conflict:
            # One of our own agents is at work there, and the turn is its.
            return ""
        return integrations_messages.left(left) if left else ""

    def stopped(
        self,
        scope: Scope,
        session: str | None,
        *,
        most: int | None = None,
        work: Sequence[BackgroundWork] = (),
        worked: bool = True,
    ) -> StopDecision:
        """The agent wants to hand back. `most` is how often its program lets itself be sent back for nothing, `work`
        what it has left to run, and `worked` whether it has used any tool since the user last said something."""
        now = self._look(scope, session)
        decision = decide(self._situation(now))
        if not isinstance(decision, Continue):
            return StopDecision(decision, now.view)
        times = now.trail.unchanged(now.mark)
        if now.occupied:
            return StopDecision(Stop(Reason.OPEN, OF_OURS), now.view)
        if waits := waited_for(work, again=times > 0):
            return StopDecision(Wait(tuple(map(str, waits))), now.view)
        if most is not None and times >= most:
            why = f"its program lets itself be sent back {most} times in a row"
            return StopDecision(Stop(Reason.CAPPED, why), now.view)
        if now.untouched:
            if now.trail.sent_back_in_session or now.mark in now.trail.left_alone:
                return StopDecision(Stop(Reason.OPEN, OF_BEFORE), now.view, quiet=True)
            return self._send_back(scope, now, integrations_messages.of_before(now.view.open), {ASIDE: True})
        if now.aside:
            if now.sent_back and not worked:
                return StopDecision(Stop(Reason.OPEN, LEFT), now.view)
            return self._send_back(scope, now, integrations_messages.aside(now.view.open))
        return self._send_back(scope, now, decision.prompt)

    def _send_back(
        self, scope: Scope, now: _SessionState, prompt: str, data: Mapping[str, Any] = MappingProxyType({})
    ) -> StopDecision:
        self._note(scope, CONTINUATION, prompt, {MARK: now.mark, **data}, turn=now.turn)
        pause = self._agent.check_interval * 2.0 ** now.trail.unchanged(now.mark)
        return StopDecision(Continue(prompt), now.view, pause)

    def used(self, scope: Scope, session: str | None, uses: int) -> str:
        """The agent has used so many tools without touching its list. What to remind it of, if of anything (W7)."""
        now = self._look(scope, session)
        if now.trail.reminded == now.mark:
            return ""
        after = self._agent.remind_after
        text = reminder(
            asked=uses, since_change=uses, after=after, open=now.view.open, tools=_WRITERS, listed=bool(now.view.shown)
        )
        if text:
            self._note(scope, REMINDER, text, {MARK: now.mark}, turn=now.turn)
        return text or ""

    def copied(self, scope: Scope, todos: list[dict[str, Any]], *, again: bool = False) -> bool:
        """Keep a copy of the list that the agent keeps itself; False where that would overwrite another, or with
        `again` where it is no such copy yet. What people have put on the copy stays on it."""
        for _ in range(_MOST_TRIES):
            with self._store.read() as tx:
                before = checklist_service.read(tx, scope.conversation_id)
                still_open = {item.id: item for item in before.items if item.status is not ChecklistStatus.COMPLETED}
                last, of_people = self._who_wrote(tx, scope, before.revision, still_open)
            if (still_open or again) and (last is None or last.reason != AS_ITS_OWN):
                return False
            items = fitted(todos, [item_json(item) for item in before.items], of_people)
            try:
                self._checklists.rewrite(scope, items, reason=AS_ITS_OWN, at=before.revision)
                return True
            except Conflict:
                # A person, or another hook, was first.
                continue
        return False

    def _who_wrote(
        self, tx: Transaction, scope: Scope, revision: int, ids: Collection[str]
    ) -> tuple[Event | None, set[str]]:
        """The last change of the checklist that no person has made, and which of these items a person has put on it;
        what is older than one looks back may be."""
        last, of_people, unknown = None, set[str](), set(ids)
        for version in range(revision, max(0, revision - _LOOK_BACK), -1):
            event = event_log.at_version(tx, checklist_service.checklist_stream(scope.conversation_id), version)
            if event is None or (last is not None and not unknown):
                break
            added = {step["id"] for step in event.payload()["steps"] if step["action"] == ChecklistAction.ADD}
            if is_of_a_person(event):
                of_people |= added & unknown
            elif last is None:
                last = event
            unknown -= added
        return last, of_people | unknown

    def _said(self, scope: Scope, prompt: str) -> bool:
        """Whether these are words of ours, of whichever turn: a person may have ended it before they were heard."""
        recent = self._conversations.recent(scope.conversation_id, _WORDS_BACK)
        return any(one.kind == CONTINUATION and one.content.strip() in prompt for one in recent)

    # --- how things stand ---------------------------------------------------------------------------------

    def _look(self, scope: Scope, session: str | None) -> _SessionState:
        turn = self._conversations.current_turn(scope.conversation_id)
        view = self._lists(scope, turn)
        with self._store.read() as tx:
            events = event_log.newest(tx, _LOOK_BACK, scope.conversation_id)
            said = (
                tuple(Message(*row) for row in tx.all(conversation_repository.OF_TURN, turn_id=turn.id)) if turn else ()
            )
            checklist = checklist_service.read(tx, scope.conversation_id)
            asked = _last_request(said)
            since = asked.created_at if asked else ""
            by_people = turn is not None and not tx.one(_PLANNED_BEFORE, stream=plan_stream(turn.id), since=since)
        return _SessionState(turn, said, view, follow(events, session), checklist, by_people)

    def _lists(self, scope: Scope, turn: StoredTurn | None, *, checklist: bool = True) -> ListState:
        place = TurnScope(scope.conversation_id, scope.actor, turn.id if turn else "")
        # Since ever: a checklist is the session's, however many prompts ago it was written.
        return TurnLists(self._store, place, plan=turn is not None, checklist=checklist, since="").look()

    def _situation(self, now: _SessionState) -> Situation:
        since = (self._store.clock() - moment(now.turn.started_at)).total_seconds() if now.turn else 0.0
        return Situation(
            open=now.view.open,
            spent=TurnCounters(
                continuations=len(now.sent_back), unchanged=now.trail.unchanged(now.mark), seconds=max(since, 0.0)
            ),
            limits=self._agent.limits,
            enabled=self._agent.todo_driven,
            cancelled=f"a person has ended the turn ({now.trail.stopped})" if now.trail.stopped else None,
        )

    def _note(self, scope: Scope, kind: str, text: str, data: dict[str, Any], *, turn: StoredTurn | None) -> None:
        role = MessageRole.USER if kind in (CONTINUATION, TEXT) else MessageRole.SYSTEM
        with self._store.write() as tx:
            turn_id = self._turn_id(tx, scope, kind, turn)
            message = conversation_repository.add_message(
                tx, scope.conversation_id, role, text, kind=kind, turn_id=turn_id
            )
            event_log.append(
                tx,
                change(
                    scope,
                    "say",
                    message.id,
                    f"a {kind} for another agent",
                    conversation_repository.fingerprint(message) | data,
                ),
            )

    def _turn_id(self, tx: Transaction, scope: Scope, kind: str, turn: StoredTurn | None) -> str | None:
        if kind == CONTINUATION:
            # It is counted by turn, so there has to be one.
            return self._conversations.ensure_turn(tx, scope).id
        self._conversations.ensure(tx, scope)
        return turn.id if turn else None


def _last_request(said: Sequence[Message]) -> Message | None:
    """What the user has said last in a turn."""
    return next((one for one in reversed(said) if (one.role, one.kind) == (MessageRole.USER, TEXT)), None)


def initial_reminder(agent: AgentDefinition) -> str:
    """For a session with no list yet (W7); empty where reminders are off."""
    return reminder(asked=0, since_change=0, after=agent.remind_after, open=(), tools=_WRITERS, listed=False) or ""
