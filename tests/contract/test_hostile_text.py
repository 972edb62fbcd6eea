"""Hostile text in every field: stored exactly, or refused in words; never a crash (W10, TRUST 20)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests.contract.front import call, everything, plan, todo, todo_write, trail
from tests.sessions import add_trace, traces
from tests.unit.hostile import EVERYTHING_HOSTILE, HIDES_FROM_PEOPLE

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

HOSTILE = {**EVERYTHING_HOSTILE, "10 MB": "x" * 10_000_000}


def failures(
    store: Store,
    send: Callable[[str], str],
    *,
    prepare: Callable[[], object] = lambda: None,
    texts: dict[str, str] = HOSTILE,
) -> dict[str, str]:
    """Where a text was neither stored as it is nor refused in words that leave everything as it was.

    `send` sends a text and tells what was stored of it; `prepare` goes before each.
    """
    found = {}
    for name, text in texts.items():
        prepare()
        before = everything(store)
        try:
            stored = send(text)
        except (InvalidInput, NotFound) as refused:
            if everything(store) != before:
                found[name] = "refused, but something was changed"
            elif len(str(refused)) > 1_000:
                found[name] = "refused at great length"
        except Exception as crash:
            found[name] = f"crashed: {type(crash).__name__}"
        else:
            if stored not in (text, text.strip()):
                found[name] = f"stored as {stored[:50]!r}"
    return found


def by_field(store: Store, send: Callable[[str, str], str], *fields: str) -> dict[tuple[str, str], str]:
    """The same for each field of a call; the long ones last, since some are stored."""
    tried = {
        (field, name): failures(store, partial(send, field), texts={name: text}).get(name)
        for name, text in HOSTILE.items()
        for field in fields
    }
    return {key: found for key, found in tried.items() if found}


@pytest.mark.spec("W10")
def test_a_checklist_stores_it_exactly_or_refuses_it(store: Store, checklists: Checklists, agent: Scope) -> None:
    def send(field: str, text: str) -> str:
        stored: str = todo_write(checklists, agent, [todo(**{field: text})]).data["todos"][0][field]
        return stored

    assert by_field(store, send, "content", "activeForm", "id") == {}


@pytest.mark.spec("W10")
def test_invisible_marks_are_stored_but_spelled_out_to_the_model(checklists: Checklists, agent: Scope) -> None:
    for text in HIDES_FROM_PEOPLE.values():
        result = todo_write(checklists, agent, [todo(text, "in_progress")])
        assert result.data["todos"][0]["content"] == text
        assert all(line.isprintable() for line in result.text.splitlines())


@pytest.mark.spec("W10")
def test_a_plan_stores_it_exactly_or_refuses_it(store: Store, plans: Plans, turn: TurnScope) -> None:
    def send(field: str, text: str) -> str:
        call(plans, turn, "create_todo", items=[{"title": "A", field: text, "order": 1}])
        stored: str = call(plans, turn, "list_todo")["items"][0][field]
        return stored

    assert by_field(store, send, "title", "context", "completionCriteria", "agentType") == {}


@pytest.mark.spec("W10")
def test_a_todo_ends_with_it_exactly_or_not_at_all(store: Store, plans: Plans, turn: TurnScope) -> None:
    def send(field: str, text: str) -> str:
        arguments = {"todoId": plans.list(turn).items[0].id, "outcome": "done", field: text}
        stored: str = call(plans, turn, "complete_todo", **arguments)[field]
        return stored

    plan(plans, turn, *["A"] * 2 * len(EVERYTHING_HOSTILE))
    assert by_field(store, send, "todoId", "outcome", "status") == {}


@pytest.mark.spec("W10")
def test_a_message_keeps_it_exactly_or_refuses_it(store: Store, conversations: Conversations, agent: Scope) -> None:
    assert failures(store, lambda text: conversations.add_message(agent, MessageRole.USER, text).content) == {}


@pytest.mark.spec("W10", "T15")
def test_a_trace_keeps_it_exactly_or_refuses_it(store: Store, turn: TurnScope) -> None:
    def send(field: str, text: str) -> str:
        made = add_trace(store, turn, turn.turn_id, **{field: text})
        (stored,) = [trace for trace in traces(store, turn.turn_id) if trace.id == made.id]
        told: str = getattr(stored, field)
        return told

    assert by_field(store, send, "name", "input", "output", "error") == {}


@pytest.mark.spec("W10", "X5")
def test_the_reason_for_a_change_keeps_it_exactly_or_refuses_it(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    def send(text: str) -> str:
        checklists.add(agent, "A", reason=text)
        return trail(store)[-1].reason

    assert failures(store, send, prepare=lambda: checklists.clear(agent, reason="test")) == {}


@pytest.mark.spec("W10", "X5")
def test_a_turn_ends_with_it_exactly_or_not_at_all(store: Store, conversations: Conversations, agent: Scope) -> None:
    def send(text: str) -> str:
        ended = conversations.end_turn(agent, reason=text)
        assert ended
        assert ended.end_reason
        return ended.end_reason

    assert failures(store, send, prepare=lambda: conversations.open_turn(agent)) == {}


@pytest.mark.spec("W10")
def test_a_session_is_named_by_it_exactly_or_refused(store: Store, checklists: Checklists, agent: Scope) -> None:
    def send(text: str) -> str:
        checklists.rewrite(replace(agent, conversation_id=text), [todo("A")])
        return next((row[0] for row in everything(store)["conversations"] if row[0] == text), "nothing")

    assert failures(store, send) == {}


@pytest.mark.spec("W10")
def test_a_session_named_by_it_can_be_looked_for_without_harm(
    store: Store, checklists: Checklists, conversations: Conversations
) -> None:
    def send(text: str) -> str:
        assert checklists.get(text).items == ()
        assert conversations.messages(text) == []
        conversations.get(text)
        return text

    assert failures(store, send) == {}
