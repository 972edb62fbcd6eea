"""A mission's chat in the requests of its agents: a running summary and the newest messages (M10)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.agent import chat_memory
from punchlist.agent.chat_memory import RECENT_LENGTH, SUMMARY_LENGTH, ChatMemory
from punchlist.agent.context import message_length
from punchlist.agent.transcript import to_stored
from punchlist.conversations.model import MessageRole, NewMessage, NoticeKind, Scope, StoredTurn
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreError
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions import chats
from punchlist.models.model import Message, Reply
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M10")
LEAD = Actor(Role.LEAD, "mission-lead")
OWNER = Actor(Role.OWNER, "pillar-owner")


@dataclass
class Chat:
    store: Store
    clock: StoppedClock
    id: str

    @property
    def conversations(self) -> Conversations:
        return Conversations(self.store)

    def begin(self, request: str, kind: str = "text", actor: Actor = LEAD) -> StoredTurn:
        self.clock.advance(hours=1)
        message = NewMessage("user", kind, request)
        return self.conversations.begin_turn(Scope(self.id, actor), reason="a test", request=message, abandoned=True)

    def turn(self, request: str, answer: str, kind: str = "text", actor: Actor = LEAD) -> None:
        scope, turn = Scope(self.id, actor), self.begin(request, kind, actor)
        reply = to_stored(Reply(answer))
        self.conversations.add_message(scope, MessageRole(reply.role), reply.content, kind=reply.kind, turn_id=turn.id)
        self.conversations.end_turn(scope, reason="completed: done")

    def notice(self, text: str, kind: NoticeKind = NoticeKind.NOTE) -> None:
        with self.store.write() as tx:
            chats.post(tx, Scope(self.id, SYSTEM), self.id, kind, text)

    def remembered(self, actor: Actor = LEAD, window: int | None = None) -> list[Message]:
        """What a new turn of the agent gets."""
        turn = self.begin("And now?", actor=actor)
        return ChatMemory(self.conversations).messages(self.id, actor.name, turn.id, window)

    def text(self, actor: Actor = LEAD) -> str:
        return "\n".join(message.text for message in self.remembered(actor))

    @property
    def stored(self) -> list[tuple[int, str, str]]:
        return [(one.position, one.kind, one.content) for one in self.conversations.messages(self.id)]


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def chat(team: Team, clock: StoppedClock) -> Chat:
    return Chat(team.store, clock, team.mission.conversation_id)


def test_more_than_ten_messages_are_remembered_as_they_are(chat: Chat) -> None:
    for number in range(14):
        chat.turn(f"Question {number}", f"Answer {number}")
    text = chat.text()
    assert "Summary" not in text
    assert [number for number in range(14) if f"Question {number}\nAnswer {number}" in text] == list(range(14))


def test_an_agent_gets_its_own_turns_and_all_notices(chat: Chat) -> None:
    chat.turn("For the Lead", "Lead speaking")
    chat.turn("For the owner", "Owner speaking", actor=OWNER)
    chat.notice("For all")
    assert "Lead speaking" in (text := chat.text())
    assert "For all" in text
    assert "Owner speaking" not in text


def test_what_is_old_is_folded_and_what_was_kept_stays(chat: Chat) -> None:
    chat.turn("Please keep the old cache until May.", "Noted.")
    chat.notice("[TODO 01234567-aaaa]\n> It takes 70 s now.", NoticeKind.TODO_RESULT)
    kept: list[str] = []
    for day in range(60):
        chat.turn(f"## Mission Review Cycle {day}", f"Decided {day}: " + "words " * 200, kind="cycle_report")
        if day % 10 == 9:
            before, text = chat.stored, chat.text()
            # The new turn's request is the only message that is new.
            assert chat.stored[:-1] == before
            for known in kept:
                assert known in text
            kept.append(f"Decided {day}")
    text = chat.text()
    assert "Please keep the old cache until May." in text
    assert "It takes 70 s now." in text
    assert [day for day in range(60) if f"Decided {day}: " in text] == list(range(60))
    # Prompts of the program are not repeated: the state of the mission is in every request.
    assert text.count("## Mission Review Cycle") < 20


def test_the_length_does_not_depend_on_the_chat(chat: Chat) -> None:
    lengths = []
    for number in range(120):
        chat.turn(f"Person says {number} " + "long " * 500, f"Answer {number} " + "long " * 500)
        if number % 20 == 19:
            lengths.append(sum(map(message_length, chat.remembered())))
    assert max(lengths) <= RECENT_LENGTH + SUMMARY_LENGTH + 1_000
    small = chat.remembered(window=8_000)
    assert sum(map(message_length, small)) <= 2 * 3_200 + 1_000


def test_a_chat_without_a_summary_is_read_in_pages(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        chat.turn(f"Question {number} " + "x" * 2_000, f"Answer {number}")
        chat.notice(f"Notice {number}")
    whole = chat.text()
    monkeypatch.setattr(chat_memory, "PAGE", 7)
    other = chat.remembered(OWNER)
    text = "\n".join(message.text for message in other)
    assert [number for number in range(40) if f"Notice {number}" in text] == list(range(40))
    assert [number for number in range(40) if f"Answer {number}" in whole] == list(range(40))


def test_a_turn_that_notices_overlap_is_folded_whole(chat: Chat) -> None:
    for number in range(30):
        turn = chat.begin(f"Question {number}")
        chat.notice(f"Notice {number} " + "x" * 1_500)
        reply = to_stored(Reply(f"Answer {number}"))
        scope = Scope(chat.id, LEAD)
        chat.conversations.add_message(scope, MessageRole(reply.role), reply.content, kind=reply.kind, turn_id=turn.id)
        chat.conversations.end_turn(scope, reason="completed: done")
    text = chat.text()
    assert "Summary of the" in text
    for number in range(30):
        assert f"Question {number}" in text
        assert f"Answer {number}" in text
        assert f"Notice {number}" in text


def test_a_failing_summary_does_not_stop_the_turn(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        chat.turn(f"Question {number}", "Answer " + "x" * 2_000)

    def fail(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(Conversations, "save_summary", fail)
        assert "Question 0" in chat.text()
    assert chat.conversations.summary(chat.id, LEAD.name) is None
    chat.remembered()
    saved = chat.conversations.summary(chat.id, LEAD.name)
    assert saved is not None
    chat.conversations.save_summary(chat.id, LEAD.name, saved.position, "{damaged")
    assert "Question 0" in chat.text()
