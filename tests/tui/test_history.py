"""The history of a conversation: results that arrive later than their calls, and moving through it."""

from __future__ import annotations

import json

import pytest
from tests.tui.stage import opened

from punchlist.app import Services
from punchlist.conversations.model import MessageRole, Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.entries import CallEntry, ReplyEntry
from punchlist.surfaces.tui.line_modes.chat_feed import ChatFeed
from punchlist.surfaces.tui.line_modes.plain_chat import entry_words

pytestmark = pytest.mark.anyio
SCOPE = Scope("s1", Actor(Role.SUPERVISOR, "supervisor"))
REFUSED = "Its check failed, so the item stays open: 2 tests fail."


class Talk:
    """Messages of one turn, written one by one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turn = services.conversations.begin_turn(SCOPE, reason="test").id

    def reply(self, *ids: str) -> None:
        calls = [{"id": id, "tool": "complete_todo", "arguments": {"todoId": "t1"}} for id in ids]
        self._add(MessageRole.ASSISTANT, json.dumps({"text": "", "calls": calls}), "reply")

    def result(self, id: str, text: str = REFUSED, *, failed: bool = True) -> None:
        self._add(MessageRole.TOOL, json.dumps({"id": id, "text": text, "failed": failed}), "result")

    def say(self, text: str) -> None:
        self._add(MessageRole.ASSISTANT, text, "text")

    def _add(self, role: MessageRole, content: str, kind: str) -> None:
        self._services.conversations.add_message(SCOPE, role, content, kind=kind, turn_id=self._turn)


@pytest.mark.spec("V2", "V1")
async def test_a_refused_completion_is_shown_when_its_result_arrives_later(services: Services) -> None:
    talk = Talk(services)
    talk.reply("c1")
    async with opened(services) as stage:
        await stage.until(lambda: "○ complete_todo" in stage.history)
        talk.result("c1")
        await stage.until(lambda: "✗ complete_todo" in stage.history and "2 tests fail" in stage.history)
        talk.reply("c2")
        await stage.until(lambda: stage.history.count("complete_todo") == 2)
        talk.say("Then I go on.")
        await stage.until(lambda: "Then I go on." in stage.history)
        talk.result("c2")
        await stage.until(lambda: stage.history.count("✗ complete_todo") == 2)


@pytest.mark.spec("T15")
def test_a_damaged_message_is_shown_as_text(services: Services) -> None:
    services.conversations.add_message(SCOPE, MessageRole.ASSISTANT, "{not json", kind="reply")
    [entry] = Backend(services, AgentOptions()).page(SCOPE.conversation_id).entries
    assert isinstance(entry, ReplyEntry)
    assert entry.text == "{not json"


@pytest.mark.spec("V2")
def test_line_modes_tell_a_refused_completion(services: Services) -> None:
    talk = Talk(services)
    feed = ChatFeed(Backend(services, AgentOptions()), SCOPE.conversation_id)
    talk.reply("c1")
    assert [call.id for call in feed.poll().running] == ["c1"]
    talk.result("c1")
    finished = feed.poll().finished
    assert [entry.status for entry in finished if isinstance(entry, CallEntry)] == ["error"]
    words = [word for entry in finished for word in entry_words(entry)]
    assert words == ["Tool complete_todo failed.", REFUSED]


@pytest.mark.spec("V2")
def test_a_result_on_the_page_after_its_call_belongs_to_the_call(services: Services) -> None:
    talk = Talk(services)
    talk.reply("c1", "c2")
    talk.result("c1")
    talk.result("c2", "Ok.", failed=False)
    page = Backend(services, AgentOptions()).page(SCOPE.conversation_id, before=2)
    assert [(entry.id, entry.status) for entry in page.entries if isinstance(entry, CallEntry)] == [
        ("c1", "error"),
        ("c2", "success"),
    ]


@pytest.mark.spec("X13")
async def test_page_keys_scroll_the_history_while_the_prompt_has_the_focus(services: Services) -> None:
    talk = Talk(services)
    for number in range(80):
        talk.say(f"Line {number}.")
    async with opened(services) as stage:
        history = stage.conversation.history
        await stage.until(lambda: "Line 79." in stage.text and stage.conversation.composer.prompt.has_focus)
        bottom = history.scroll_y
        await stage.pilot.press("pageup")
        await stage.until(lambda: history.scroll_y < bottom)
        await stage.type("I write")
        await stage.pilot.press("pagedown")
        await stage.until(lambda: history.scroll_y == bottom)
        assert stage.conversation.composer.text == "I write"
