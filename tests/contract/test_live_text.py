"""Streamed text and output of running calls reach other processes, bounded and beside the event log (S8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from time import monotonic

import pytest
from tests.conftest import StoppedClock

from punchlist.agent.events import AgentEvent, ReplyReceived, TextDelta, ToolOutput, TurnEnded
from punchlist.agent.live_output import FLUSH_SECONDS, MAX_CHARACTERS, LiveOutput
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.models.model import Usage
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.views import live_hub
from punchlist.views.activity_repository import ActivityEntry
from punchlist.views.live_hub import LiveHub, LiveItem, Subscription
from punchlist.views.live_text import GAP_SECONDS, LiveText, LiveTextFeed

PATIENCE = 20.0


@pytest.fixture
def other(database: str) -> Iterator[Store]:
    """The database as another process sees it."""
    opened = open_store(database)
    yield opened
    opened.close()


@pytest.fixture
def writer(store: Store) -> Iterator[LiveOutput]:
    output = LiveOutput(store)
    yield output
    output.close()


@pytest.fixture
def hub(other: Store) -> Iterator[LiveHub]:
    opened = LiveHub(other)
    yield opened
    opened.close()


def said(turn: TurnScope, text: str) -> AgentEvent:
    return TextDelta("a", turn.turn_id, text)


def replied(turn: TurnScope) -> AgentEvent:
    return ReplyReceived("a", turn.turn_id, "", 0, Usage(), None)


def until(feed: LiveTextFeed, wanted: str, call_id: str | None = None) -> list[LiveText]:
    """The pieces up to the one after which `wanted` has arrived; an empty text stands for the end."""
    found: list[LiveText] = []
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        found += [piece for piece in feed.poll() if piece.call_id == call_id]
        if found and (found[-1].ended if not wanted else "".join(piece.text for piece in found).endswith(wanted)):
            return found
    raise AssertionError(f"{wanted!r} did not arrive: {found}")


def rows(store: Store) -> int:
    with store.read() as tx:
        return int(tx.raw("SELECT count(*) FROM live_output")[0][0])


@pytest.mark.spec("S8")
def test_streamed_text_and_output_reach_another_process_and_end_with_the_reply(
    other: Store, writer: LiveOutput, turn: TurnScope
) -> None:
    listen, feed = writer.listener("s"), LiveTextFeed(other, "s")
    assert feed.poll() == []
    listen(said(turn, "The report "))
    until(feed, "report ")
    listen(said(turn, "is\x00 ready."))
    listen(ToolOutput("a", turn.turn_id, "c1", "line 1\n"))
    [piece] = until(feed, "ready.")
    assert (piece.position, piece.text, piece.turn_id) == (11, "is\ufffd ready.", turn.turn_id)
    late = LiveTextFeed(other, "s")
    assert "".join(piece.text for piece in late.poll() if piece.call_id is None) == "The report is\ufffd ready."
    assert LiveTextFeed(other, "another").poll() == []
    listen(replied(turn))
    [end] = until(feed, "")
    assert (end.text, end.position) == ("", 21)
    # The end of the reply stays for readers; its text does not. The call goes on.
    assert [piece.call_id for piece in LiveTextFeed(other, "s").poll()] == ["c1"]
    listen(said(turn, "Another reply."))
    [piece] = until(feed, "reply.")
    assert piece.position == 0


@pytest.mark.spec("S8")
def test_a_reply_that_arrives_at_once_writes_nothing(store: Store, writer: LiveOutput, turn: TurnScope) -> None:
    heard: list[AgentEvent] = []
    listen = writer.listener("s", heard.append)
    for _ in range(100):
        listen(said(turn, "text"))
        listen(replied(turn))
    writer.close()
    assert len(heard) == 200
    assert rows(store) == 0


@pytest.mark.spec("S8")
def test_only_the_end_of_long_output_is_kept(store: Store, writer: LiveOutput, turn: TurnScope) -> None:
    listen, feed = writer.listener("s"), LiveTextFeed(store)
    feed.poll()
    for number in range(6):
        listen(ToolOutput("a", turn.turn_id, "c1", f"{number}" * (MAX_CHARACTERS // 2)))
        until(feed, f"{number}", "c1")
    [*_, last] = LiveTextFeed(store).poll()
    kept = sum(len(piece.text) for piece in LiveTextFeed(store).poll())
    assert last.text.endswith("5")
    assert last.position + len(last.text) == 3 * MAX_CHARACTERS
    assert MAX_CHARACTERS <= kept <= MAX_CHARACTERS * 2
    listen(ToolOutput("a", turn.turn_id, "c1", "x" * (2 * MAX_CHARACTERS)))
    pieces = until(feed, "x", "c1")
    assert len(pieces[-1].text) == MAX_CHARACTERS
    assert pieces[-1].position == 4 * MAX_CHARACTERS


@pytest.mark.spec("S8")
def test_what_a_dead_process_left_is_not_shown_after_the_end_of_its_turn_and_deleted_by_the_next_owner(
    store: Store, clock: StoppedClock, conversations: Conversations, agent: Scope, turn: TurnScope
) -> None:
    dead, feed = LiveOutput(store), LiveTextFeed(store)
    feed.poll()
    dead.listener("s")(said(turn, "half a sen"))
    until(feed, "sen")
    assert len(LiveTextFeed(store).poll()) == 1
    clock.advance(seconds=1)
    owner = LiveOutput(store)
    owner.listener("s")(said(turn, "Again."))
    until(feed, "Again.")
    assert [piece.text for piece in LiveTextFeed(store).poll()] == ["Again."]
    conversations.end_turn(agent, reason="cancelled: a person interrupted it")
    assert LiveTextFeed(store).poll() == []
    # The thread of the dead process would still write.
    dead._streams.clear()
    owner.listener("s")(TurnEnded("a", turn.turn_id, None))  # type: ignore[arg-type]
    owner.close()
    assert rows(store) == 1


def test_a_number_that_becomes_visible_late_is_not_missed(store: Store, turn: TurnScope) -> None:
    now = 0.0
    feed = LiveTextFeed(store, after=4, monotonic=lambda: now)

    def add(seq: int) -> None:
        with store.write() as tx:
            tx.raw(
                "INSERT INTO live_output (seq, conversation_id, turn_id, call_id, position, text, ended, created_at) "
                f"VALUES ({seq}, 's', '{turn.turn_id}', '', 0, 't{seq}', 0, 'now') RETURNING seq"
            )

    add(5)
    add(7)
    assert [piece.text for piece in feed.poll()] == ["t5", "t7"]
    if not store.database.one_writer:
        add(6)
        assert [piece.text for piece in feed.poll()] == ["t6"]
    add(9)
    assert [piece.text for piece in feed.poll()] == ["t9"]
    now += GAP_SECONDS
    assert feed.poll() == []
    assert feed._settled == 9


# --- subscriptions ----------------------------------------------------------------------------------------


def collect(subscription: Subscription, wanted: int) -> list[LiveItem]:
    found: list[LiveItem] = []
    deadline = monotonic() + PATIENCE
    while len(found) < wanted:
        assert monotonic() < deadline, found
        found += subscription.read(timeout=PATIENCE)
    return found


def test_a_subscription_has_events_and_text_in_one_stream(
    store: Store, hub: LiveHub, conversations: Conversations, writer: LiveOutput, agent: Scope, turn: TurnScope
) -> None:
    writer.listener("s")(said(turn, "So far."))
    until(LiveTextFeed(store), "So far.")
    with hub.subscribe(conversation_id="s") as mine, hub.subscribe(conversation_id="t") as other:
        [text] = collect(mine, 1)
        conversations.add_message(agent, MessageRole.USER, "Hello.")
        [event] = collect(mine, 1)
        assert isinstance(text, LiveText)
        assert isinstance(event, ActivityEntry)
        assert (text.text, event.action) == ("So far.", "say")
        assert other.read(timeout=0.0) == []
        last = mine.last
    assert last == event.seq
    conversations.add_message(agent, MessageRole.USER, "While you were away.")
    with hub.subscribe(conversation_id="s", after=last, text=False) as again:
        [missed] = collect(again, 1)
        assert isinstance(missed, ActivityEntry)
        assert missed.seq > last
        conversations.add_message(agent, MessageRole.USER, "Now.")
        assert len(collect(again, 1)) == 1


def test_a_subscriber_that_does_not_read_loses_no_events(
    hub: LiveHub, conversations: Conversations, agent: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MAX_QUEUED", 10)
    conversations.add_message(agent, MessageRole.USER, "First.")
    with hub.subscribe() as slow, hub.subscribe() as quick:
        for number in range(25):
            conversations.add_message(agent, MessageRole.USER, f"{number}")
            collect(quick, 1)
        found = collect(slow, 25)
        assert [item.seq for item in found] == sorted({item.seq for item in found})
        assert len(found) == 25


def test_a_thousand_asynchronous_subscribers_share_one_thread(
    hub: LiveHub, conversations: Conversations, agent: Scope
) -> None:
    before = threading.active_count()

    async def read(subscription: Subscription) -> int:
        async for item in subscription:
            return item.seq
        return 0

    async def scenario() -> set[int]:
        subscriptions = [hub.subscribe() for _ in range(1_000)]
        tasks = [asyncio.create_task(read(subscription)) for subscription in subscriptions]
        await asyncio.sleep(0)
        assert threading.active_count() == before + 1
        await asyncio.to_thread(conversations.add_message, agent, MessageRole.USER, "Hello.")
        async with asyncio.timeout(PATIENCE):
            seen = await asyncio.gather(*tasks)
        assert await subscriptions[0].batch(timeout=FLUSH_SECONDS) is not None
        hub.close()
        assert await subscriptions[0].batch() == []
        return set(seen)

    assert len(asyncio.run(scenario())) == 1
    assert len(hub) == 0
