"""Full-text search over requests, messages and the items of all lists, on both databases."""

from __future__ import annotations

import json

import pytest
from tests.contract.front import todo
from tests.contract.rehearsing import Rehearse, calls, plans, says

from punchlist.checklist.service import Checklists
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.storage.store import Store
from punchlist.views import search_index
from punchlist.views.conversations import read_conversations
from punchlist.views.search import make_excerpt, read_search
from punchlist.views.search_index import catch_up

PERSON = Actor(Role.PERSON, "me")


def found(store: Store, text: str, **options: str) -> list[tuple[str, str]]:
    return [(hit.kind, hit.excerpt) for hit in read_search(store, text, **options).hits]  # type: ignore[arg-type]


@pytest.mark.spec("T15")
def test_requests_answers_and_todos_are_found_but_not_results_of_calls(rehearse: Rehearse, store: Store) -> None:
    rehearse(
        plans("Compare the loaders"),
        calls(("run_command", {"command": "echo zebra"}), text="I measure first."),
        says("The webpack loader is slow."),
        *[says("Nothing new.")] * 5,
    ).run("Why is the Build slow?")
    assert found(store, "build") == [("request", "Why is the Build slow?")]
    assert {kind for kind, _ in found(store, "loader")} == {"plan_todo", "message"}
    assert found(store, "slow loader") == [("message", "The webpack loader is slow.")]
    assert found(store, "zebra") == []
    assert found(store, "slow", kind="request") == [("request", "Why is the Build slow?")]
    assert found(store, "slow", conversation_id="another") == []
    [hit] = read_search(store, "webp").hits
    assert [hit.excerpt[start:end] for start, end in hit.matches] == ["webp"]
    assert hit.conversation_id == "s"
    assert hit.position is not None
    json.dumps(read_search(store, "slow").as_json())


@pytest.mark.spec("T15")
def test_the_index_follows_every_list_and_forgets_what_was_replaced(
    store: Store, checklists: Checklists, conversations: Conversations, agent: Scope, turn: TurnScope
) -> None:
    checklists.rewrite(agent, [todo("Buy apples", "completed")])
    assert found(store, "apples") == [("checklist_item", "Buy apples")]
    checklists.rewrite(agent, [todo("Buy pears")])
    assert found(store, "pears") == [("checklist_item", "Buy pears")]
    assert found(store, "apples") == []
    conversations.end_turn(agent, reason="done")
    MessageQueue(store).add(Scope("s", PERSON), "From the queue, with Ärger in src/app_main.py")
    MessageQueue(store).deliver(agent)
    for text in ("queue", "arger", "ÄRGER", "main", "app_main", "src/app"):
        assert [kind for kind, _ in found(store, text)] == ["request"], text


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", ["", "   ", '"', "' OR 1", "a AND", "NEAR(", "*", "x:*", "\\", "-", "½", "a" * 5_000])
def test_any_text_can_be_searched_for(store: Store, conversations: Conversations, agent: Scope, text: str) -> None:
    conversations.add_message(agent, MessageRole.USER, "<b>bold</b> OR not")
    read_search(store, text)
    [hit] = read_search(store, "bold").hits
    assert hit.excerpt == "<b>bold</b> OR not"


def test_results_are_paged(store: Store, conversations: Conversations, agent: Scope) -> None:
    for number in range(7):
        conversations.add_message(agent, MessageRole.USER, f"apple {number}")
    first = read_search(store, "apple", limit=4)
    rest = read_search(store, "apple", limit=4, cursor=first.cursor)
    assert len({hit.id for hit in (*first.hits, *rest.hits)}) == 7
    assert rest.cursor is None
    for wrong in ({"cursor": "x"}, {"kind": "x"}):
        with pytest.raises(InvalidInput):
            read_search(store, "apple", **wrong)  # type: ignore[arg-type]
    conversations.add_message(Scope("t", PERSON), MessageRole.USER, "a pear")
    assert [line.id for line in read_conversations(store, search="pear").conversations] == ["t"]


def test_a_long_log_is_indexed_in_several_steps(
    store: Store, conversations: Conversations, agent: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "BATCH", 2)
    for number in range(7):
        conversations.add_message(agent, MessageRole.USER, f"apple {number}")
    assert not catch_up(store, seconds=0.0)
    assert catch_up(store)
    page = read_search(store, "apple")
    assert page.complete
    assert len(page.hits) == 7


def test_an_excerpt_begins_near_the_first_match() -> None:
    excerpt, matches = make_excerpt("word " * 100 + "here is the needle. " + "more " * 100, ["needle"])
    assert excerpt.startswith("…word")
    assert excerpt.endswith("…")
    assert [excerpt[start:end] for start, end in matches] == ["needle"]
    assert len(excerpt) < 250
