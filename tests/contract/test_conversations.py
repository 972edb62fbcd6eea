"""Conversations, turns, messages and traces are stored with what they belong to (T15, T7)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes
from tests.sessions import add_trace, newest_sessions, start_session, traces

from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.conversations.turn_writer import TurnAlreadyEnded
from punchlist.errors import InvalidInput, NotFound
from punchlist.storage.store import Store


@pytest.mark.spec("T15")
def test_a_conversation_is_made_once_and_found_again(store: Store, conversations: Conversations, agent: Scope) -> None:
    made = start_session(store, agent, title=" Release ", metadata={"b": 1, "a": "ü"})
    assert start_session(store, agent, title="something else") == made == conversations.get("s")
    assert (made.title, made.metadata) == ("Release", '{"a":"ü","b":1}')


@pytest.mark.spec("T15")
def test_a_session_that_is_not_there_is_not_found(conversations: Conversations) -> None:
    with pytest.raises(NotFound, match="There is no session 'nowhere'"):
        conversations.get("nowhere")


@pytest.mark.spec("T15")
def test_sessions_are_listed_newest_first(store: Store, agent: Scope, clock: StoppedClock) -> None:
    for name in ("one", "two", "three"):
        start_session(store, Scope(name, agent.actor))
        clock.advance(seconds=1)
    assert [found.id for found in newest_sessions(store)] == ["three", "two", "one"]
    assert [found.id for found in newest_sessions(store, 2)] == ["three", "two"]


@pytest.mark.spec("T15")
def test_messages_are_stored_with_their_turn(
    conversations: Conversations, turn: TurnScope, clock: StoppedClock
) -> None:
    for role in MessageRole:
        conversations.add_message(turn, role, f"line one of {role}\nline two", kind="text", turn_id=turn.turn_id)
        clock.advance(seconds=1)
    found = conversations.messages("s")
    assert [message.role for message in found] == list(MessageRole)
    assert {(message.turn_id, message.conversation_id) for message in found} == {(turn.turn_id, "s")}
    assert found[0].content == "line one of user\nline two"
    assert found[0].created_at == "2026-02-21T09:00:00.000000Z"


@pytest.mark.spec("T15")
def test_messages_come_back_in_the_order_they_were_said_whatever_the_clock_does(
    conversations: Conversations, agent: Scope, clock: StoppedClock
) -> None:
    said = [str(number) for number in range(20)]
    for number in said:
        conversations.add_message(agent, MessageRole.USER, number)
        clock.advance(hours=-1 if number == "10" else 0)
    assert [message.content for message in conversations.messages("s")] == said


@pytest.mark.spec("T15")
def test_traces_are_stored_with_their_turn(store: Store, turn: TurnScope, clock: StoppedClock) -> None:
    asked = add_trace(store, turn, turn.turn_id, input="{}", output="hello")
    clock.advance(seconds=1)
    failed = add_trace(store, turn, turn.turn_id, error="overloaded", started_at="2026-02-21T09:00:00.500000Z")
    assert traces(store, turn.turn_id) == [asked, failed]
    assert (asked.turn_id, asked.conversation_id, asked.kind, asked.output) == (turn.turn_id, "s", "model", "hello")
    assert (failed.started_at, failed.ended_at) == ("2026-02-21T09:00:00.500000Z", "2026-02-21T09:00:01.000000Z")


@pytest.mark.spec("T7", "T15")
def test_nothing_is_stored_under_a_turn_of_another_session(
    store: Store, conversations: Conversations, turn: TurnScope, other_turn: TurnScope
) -> None:
    with nothing_changes(store):
        with pytest.raises(NotFound, match="has no turn"):
            add_trace(store, turn, other_turn.turn_id)
        with pytest.raises(TurnAlreadyEnded, match="deleted"):
            add_trace(store, turn, "nothing")
        for turn_id in (other_turn.turn_id, "nothing"):
            with pytest.raises(NotFound, match="has no turn"):
                conversations.add_message(turn, MessageRole.USER, "hello", turn_id=turn_id)


@pytest.mark.spec("T7")
def test_a_session_has_one_open_turn_and_keeps_those_that_ended(
    conversations: Conversations, agent: Scope, clock: StoppedClock
) -> None:
    opened = []
    for _ in range(3):
        opened.append(conversations.open_turn(agent).id)
        assert conversations.open_turn(agent).id == opened[-1]
        clock.advance(seconds=1)
        ended = conversations.end_turn(agent, reason="a new prompt")
        assert ended
        assert (ended.id, ended.open, ended.end_reason) == (opened[-1], False, "a new prompt")
    assert [turn.id for turn in conversations.turns("s")] == opened[::-1]


@pytest.mark.spec("T7")
def test_where_no_turn_is_open_there_is_none_to_end(store: Store, conversations: Conversations, agent: Scope) -> None:
    with nothing_changes(store):
        assert conversations.end_turn(agent, reason="test") is None
        assert conversations.current_turn("s") is None


def test_a_turn_does_not_end_for_a_bad_reason(store: Store, conversations: Conversations, turn: TurnScope) -> None:
    with nothing_changes(store):
        for reason in ("", " ", "x" * 501, "a\nb", "a\x1b[2Jb", "\ud800"):
            with pytest.raises(InvalidInput, match=r"^reason: must "):
                conversations.end_turn(turn, reason=reason)


def test_a_reason_is_stored_without_what_surrounds_it(conversations: Conversations, agent: Scope) -> None:
    for reason in (" done\n", "done\x1c", "\x85done", "done\u2028"):
        conversations.open_turn(agent)
        ended = conversations.end_turn(agent, reason=reason)
        assert ended
        assert ended.end_reason == "done"
