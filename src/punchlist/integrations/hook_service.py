"""Decisions for the hooks of third-party agents: a prompt begins a turn, an early stop is continued.

The continuation rules are the same as for our own agents (`agent/continuation.py`). Their input is read from the
session's lists, messages and events. A continuation is recorded before it is returned: one that cannot be recorded
would not be counted, and is not given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import (
    EXITS,
    Continue,
    Exits,
    Reason,
    Situation,
    Stop,
    TurnCounters,
    Wait,
    decide,
)
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.list_state import TurnLists
from punchlist.agent.message_kinds import CONTINUATION, REMINDER, TEXT
from punchlist.agent.prompts import reminder
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, MessageRole, NewMessage, Scope, StoredTurn, TurnScope
from punchlist.conversations.service import Conversations, conversation_change
from punchlist.errors import Conflict, StoreDamaged
from punchlist.integrations import messages
from punchlist.integrations.call_journal import NO_CALLS, ReportedCalls
from punchlist.integrations.messages import GOAL_NOT_MET, StopDecision
from punchlist.integrations.native_copy import NativeListCopies
from punchlist.integrations.session_state import (
    CONFIRMATION,
    EARLIER_LIST_KEY,
    FINGERPRINT_KEY,
    GOAL_KEY,
    NEW_PROMPT,
    PROMPT_KEY,
    REVISION_KEY,
    SESSION_KEY,
    SESSION_STARTED,
    VERDICT_KEY,
    WORK_KEY,
    SessionState,
    read_history,
)
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt, without_tags
from punchlist.plan import repository as plan_repository
from punchlist.plan.model import plan_stream
from punchlist.storage import event_log
from punchlist.storage.store import Store
from punchlist.verification.model import CheckOutcome

if TYPE_CHECKING:
    from punchlist.integrations.host_checks import HostChecks
    from punchlist.integrations.host_evidence import ClaimedItem
    from punchlist.integrations.item_checks import CheckedItem
    from punchlist.integrations.session_goals import GoalDecision, SessionGoals

_LIST_TOOLS: Final = {"plan": ("create_todo",), "checklist": ("TodoWrite",)}
_HISTORY_EVENTS: Final = 300
_HISTORY_MESSAGES: Final = 50
_MAX_REQUEST_LENGTH: Final = 20_000
_FINITE_BACKGROUND: Final = ("subagent", "workflow")
"""Kinds of background task that always end. A command may be a server that runs all day."""
NOTHING_OPEN: Final = "nothing is open"
EARLIER_LIST: Final = "the list is from an earlier session and this one has not changed it"
LIST_UNTOUCHED: Final = "the agent has not changed its list since your last message"
OWN_AGENT_WORKING: Final = "an agent run by Punchlist is working on this list"


class HookService(NativeListCopies):
    def __init__(
        self,
        store: Store,
        conversations: Conversations,
        agent: AgentDefinition,
        checks: HostChecks | None = None,
        *,
        lists: str | None = None,
    ) -> None:
        """`checks` runs the checks of completed items when the agent stops; None runs none. `lists` is the only kind
        of list that the agent is served; None if that is both, or unknown."""
        self._store = store
        self._conversations = conversations
        self._agent = agent
        self._checks = checks
        self._lists = lists

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
        text = initial_reminder(self._agent, self._lists)
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
        goal = self._goals.get(scope.conversation_id)
        told = messages.goal_set(goal.criteria) if goal else ""
        if state.is_prepared:
            self._record(scope, TEXT, text or "…", {PROMPT_KEY: True}, turn=state.turn)
            prepared = messages.plan_prepared(plan) if plan else ""
            return _paragraphs(prepared, _changes_by_people(state, checklist_only=bool(plan)), told)
        request = NewMessage(MessageRole.USER.value, TEXT, text) if text else None
        try:
            self._conversations.begin_turn(scope, reason=NEW_PROMPT, request=request)
        except Conflict:
            # One of our own agents owns the turn.
            return ""
        unfinished = messages.plan_unfinished(plan, plans=self._lists != "checklist") if plan else ""
        return _paragraphs(_changes_by_people(state), unfinished, told)

    def stop_requested(
        self,
        scope: Scope,
        session: str | None,
        *,
        host_limit: int | None = None,
        background: Sequence[tuple[str, str]] = (),
        worked: bool = True,
        deadline: float = math.inf,
        journal: ReportedCalls = NO_CALLS,
        own_list_tool: str | None = None,
    ) -> StopDecision:
        """The agent wants to stop. The checks of the items that it completed are run first (V2).

        It is asked once about completed items for which it made no call (V1), as far as `journal` has its calls.

        `host_limit` is the number of continuations in a row that the host accepts while nothing changes, `background`
        the kind and description of its running tasks, `worked` whether the agent used a tool since the last prompt,
        `deadline` the time of the monotonic clock until which checks may run, `own_list_tool` its name for the tool
        of its own list.
        """
        state = self._load(scope, session, journal)
        checked: Sequence[CheckedItem] = ()
        if self._may_check(state) and (checked := self._run_checks(scope, state, deadline)):
            state = self._load(scope, session, journal)
        not_run = tuple(messages.check_not_run(item) for item in checked if item.result.outcome is CheckOutcome.NOT_RUN)
        failed = [item for item in checked if item.result.outcome is CheckOutcome.FAILED]
        # Others may work on the same list: the agent is asked about what it completed itself.
        claims = [item for item in self._claims(scope, state, journal) if item.id in journal.claimed]
        reopened = {item.id for item in failed}
        problems = _paragraphs(
            messages.checks_failed(failed),
            messages.checks_failed_before([item for item in state.failed if item.id not in reopened]),
            messages.claims_questioned(claims),
        )
        exits = Exits(list_tool=own_list_tool) if own_list_tool and self._is_copy(scope, state) else EXITS
        situation = replace(self._situation(state), exits=exits)
        decided = self._decide_stop(scope, state, situation, host_limit, background, worked, problems)
        if decided.decision == Stop(Reason.COMPLETED, NOTHING_OPEN) and self._may_check(state):
            if claims:
                decided = self._continue(scope, state, problems)
            else:
                decided = self._decide_goal(scope, state, deadline) or decided
        asked = tuple(item.id for item in claims) if decided.prompt is not None else ()
        kept = any(item.has_passed and item.result.outcome is CheckOutcome.NOT_RUN for item in checked)
        return replace(decided, notes=(*decided.notes, *not_run), questioned=asked, not_rechecked=kept)

    def list_written(self, scope: Scope, session: str | None, journal: ReportedCalls) -> list[str]:
        """The agent has written its list. Returns the ids of the completed items that nothing supports (V1)."""
        state = self._load(scope, session)
        return [item.id for item in self._claims(scope, state, journal)]

    def _claims(self, scope: Scope, state: SessionState, journal: ReportedCalls) -> list[ClaimedItem]:
        """The completed items without evidence that the agent is to be asked about. The others get their evidence."""
        if not journal.since or not self._may_check(state):
            return []
        from punchlist.integrations.host_evidence import HostEvidence

        unproven = HostEvidence(self._store, self._conversations).attach(scope, state, journal)
        is_limit_reached = len(state.continuations) >= self._agent.limits.continuations
        return [] if is_limit_reached else [item for item in unproven if item.id not in journal.questioned]

    def _decide_goal(self, scope: Scope, state: SessionState, deadline: float) -> StopDecision | None:
        """What the session's goal asks for when the list is clear (V3); None if the agent may stop."""
        goal = self._goals.get(scope.conversation_id)
        if goal is None or self._checks is None:
            return None
        from punchlist.integrations.session_goals import check_goal, decide_goal

        checked = check_goal(goal, self._checks, deadline)
        decision = decide_goal(checked, state.history.goal_keys)
        if not checked.failed and goal.judge_model is not None:
            return self._decide_by_judge(scope, state, deadline, decision)
        if decision.prompt is not None:
            return self._continue(scope, state, decision.prompt, {GOAL_KEY: checked.key})
        if decision.unmet:
            return StopDecision(Stop(Reason.OPEN, f"{GOAL_NOT_MET}: {decision.unmet}"))
        notes = tuple(f"This check of the goal was not run: {excerpt(each, 200)}" for each in checked.not_run)
        return StopDecision(Stop(Reason.COMPLETED, NOTHING_OPEN), notes=notes)

    def _decide_by_judge(
        self, scope: Scope, state: SessionState, deadline: float, without_verdict: GoalDecision
    ) -> StopDecision:
        """The checks of the goal pass; a judge decides about its criteria (V3)."""
        from punchlist.integrations.goal_judge import GoalVerdicts, start_judge

        verdicts, session = GoalVerdicts(self._store, self._conversations), scope.conversation_id
        after = state.request.position if state.request else 0
        found = verdicts.state(session, after)
        if not found.is_fresh:
            if not found.is_running and self._checks is not None:
                verdicts.add_start(scope, start_judge(session, self._checks.workspace))
            found = verdicts.wait(session, after, deadline)
        match found.decide():
            case Continue(prompt):
                return self._continue(scope, state, prompt, {GOAL_KEY: VERDICT_KEY})
            case Stop(Reason.COMPLETED) as met:
                return StopDecision(met, notes=(messages.JUDGED_AS_MET,))
            case Stop(_, why):
                return StopDecision(Stop(Reason.OPEN, f"{GOAL_NOT_MET}: {why}"))
        if without_verdict.prompt is not None:
            # The agent looks at its work meanwhile.
            return self._continue(scope, state, without_verdict.prompt, {GOAL_KEY: CONFIRMATION})
        return StopDecision(Stop(Reason.COMPLETED, NOTHING_OPEN), notes=(messages.STILL_JUDGED,))

    @property
    def _goals(self) -> SessionGoals:
        from punchlist.integrations.session_goals import SessionGoals

        return SessionGoals(self._store, self._conversations)

    def _may_check(self, state: SessionState) -> bool:
        """Checks are run for an agent that would be sent back if they fail."""
        return self._agent.todo_driven and not state.is_owned_by_own_agent and state.history.ended_by_person is None

    def _run_checks(self, scope: Scope, state: SessionState, deadline: float) -> Sequence[CheckedItem]:
        if self._checks is None or not (unchecked := state.unchecked):
            return ()
        from punchlist.integrations.item_checks import ItemChecks

        return ItemChecks(self._store, self._conversations, self._checks).run(scope, unchecked, deadline)

    def _decide_stop(
        self,
        scope: Scope,
        state: SessionState,
        situation: Situation,
        host_limit: int | None,
        background: Sequence[tuple[str, str]],
        worked: bool,
        failures: str,
    ) -> StopDecision:
        decision = decide(situation)
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
            return self._continue(
                scope, state, messages.earlier_list_open(open_items, situation.exits), {EARLIER_LIST_KEY: True}
            )
        if state.is_untouched:
            if state.continuations and not worked:
                return StopDecision(Stop(Reason.OPEN, LIST_UNTOUCHED), open_items)
            return self._continue(scope, state, messages.untouched_list_open(open_items, situation.exits))
        return self._continue(scope, state, _paragraphs(failures, messages.items_dropped(open_items), decision.prompt))

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
            tools=_list_tools(self._lists),
            listed=bool(state.lists.text),
        )
        if text:
            self._record(scope, REMINDER, text, {FINGERPRINT_KEY: state.fingerprint}, turn=state.turn)
        return text or ""

    def _continue(
        self, scope: Scope, state: SessionState, prompt: str, data: Mapping[str, Any] = MappingProxyType({})
    ) -> StopDecision:
        # Recorded as it is returned, so that it is recognised when the host reports it as a prompt.
        prompt = without_tags(_paragraphs(_changes_by_people(state), prompt))
        marks = {FINGERPRINT_KEY: state.fingerprint, WORK_KEY: state.work}
        self._record(scope, CONTINUATION, prompt, {**marks, **data}, turn=state.turn)
        pause = self._agent.check_interval * 2.0 ** state.history.unchanged(state.fingerprint)
        return StopDecision(Continue(prompt), state.lists.open, pause)

    def _is_own_continuation(self, scope: Scope, prompt: str) -> bool:
        """Some hosts report our continuation as a prompt of the user, possibly after the turn has ended."""
        recent = self._conversations.recent(scope.conversation_id, _HISTORY_MESSAGES)
        return any(message.kind == CONTINUATION and message.content.strip() in prompt for message in recent)

    def _load(self, scope: Scope, session: str | None, journal: ReportedCalls = NO_CALLS) -> SessionState:
        turn = self._conversations.current_turn(scope.conversation_id)
        turn_scope = TurnScope(scope.conversation_id, scope.actor, turn.id if turn else "")
        # The checklist belongs to the session: it counts however many prompts ago it was written.
        lists = TurnLists(self._store, turn_scope, plan=turn is not None, checklist=True).read()
        if lists.checklist is None:
            raise StoreDamaged("; ".join(lists.problems))
        with self._store.read() as tx:
            events = event_log.newest(tx, _HISTORY_EVENTS, scope.conversation_id)
            messages_of_turn = tuple(conversation_repository.turn_messages(tx, turn.id)) if turn else ()
            request = _last_request(messages_of_turn)
            since = request.created_at if request else ""
            todos = tuple(plan_repository.read_todos(tx, turn.id)) if turn else ()
            by_person = turn is not None and plan_repository.planned_by_person(tx, plan_stream(turn.id), since)
        history = read_history(events, session)
        checklist, work = lists.checklist, journal.different
        changed_at = journal.changed_at if journal.changed_at > journal.rechecked_at else ""
        return SessionState(
            *(turn, messages_of_turn, request, lists, checklist, todos, history, by_person, work),
            prompted_at=journal.prompted_at,
            changed_at=changed_at,
        )

    def _situation(self, state: SessionState) -> Situation:
        elapsed = (self._store.clock() - parse_timestamp(state.turn.started_at)).total_seconds() if state.turn else 0.0
        ended = state.history.ended_by_person
        return Situation(
            open=state.lists.open,
            counters=TurnCounters(
                continuations=state.fruitless_continuations,
                all_continuations=len(state.continuations),
                unchanged=state.history.fruitless(state.fingerprint, state.work),
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


def initial_reminder(agent: AgentDefinition, lists: str | None = None) -> str:
    """The reminder for a session without a list (W7); empty if reminders are off."""
    tools = _list_tools(lists)
    return reminder(requests=0, since_change=0, after=agent.remind_after, open=(), tools=tools, listed=False) or ""


def _list_tools(lists: str | None) -> Sequence[str]:
    return _LIST_TOOLS.get(lists or "", ("create_todo", "TodoWrite"))


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _changes_by_people(state: SessionState, *, checklist_only: bool = False) -> str:
    """What people changed on the lists since a hook last told the agent (X9)."""
    if not state.history.untold:
        return ""
    from punchlist.integrations.person_changes import person_changes

    changes = person_changes(state.history.told, state.history.untold)
    return messages.changed_by_people([each for each in changes if each.on_checklist or not checklist_only])


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
