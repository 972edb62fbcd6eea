"""Full-text search over requests, messages and the items of all lists, on both databases."""

from __future__ import annotations

import json

import pytest
from tests.contract.front import todo
from tests.contract.missions import BUILD, SLUG, developer_experience
from tests.contract.rehearsing import Rehearse, calls, plans, says

from punchlist.checklist.service import Checklists
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, NoticeKind, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import NewMissionTodo
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
    conversations.add_message(agent, MessageRole.USER, "an apple that was written between the pages")
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


def test_what_the_program_wrote_comes_last_and_marks_of_markdown_are_not_shown(
    store: Store, conversations: Conversations, agent: Scope
) -> None:
    prompt = "## Planning Cycle\n\n- **Pears** and [apples](https://a.example): pears, pears, pears"
    conversations.add_message(agent, MessageRole.SYSTEM, prompt, kind=NoticeKind.NOTE)
    conversations.add_message(agent, MessageRole.USER, "Which of the long list of things that we have are pears?")
    first, last = read_search(store, "pears").hits
    assert (first.is_notice, last.is_notice) == (False, True)
    assert last.excerpt == "Planning Cycle Pears and apples: pears, pears, pears"
    assert [last.excerpt[start:end] for start, end in last.matches] == ["Pears", *["pears"] * 3]


def test_the_title_of_a_todo_is_apart_from_its_text(store: Store) -> None:
    team = developer_experience(store)
    new = NewMissionTodo(
        BUILD, "Profile the build", description="# Goal\nFind what is slow.", completion_criteria="A list"
    )
    team.todos.create(team.person, SLUG, new)
    [hit] = read_search(store, "profile").hits
    assert (hit.title, hit.excerpt) == ("Profile the build", "Goal · Find what is slow. · A list")
    assert [hit.title[start:end] for start, end in hit.title_matches] == ["Profile"]


def test_an_excerpt_begins_near_the_first_match() -> None:
    excerpt, matches = make_excerpt("word " * 100 + "here is the needle. " + "more " * 100, ["needle"])
    assert excerpt.startswith("…word")
    assert excerpt.endswith("…")
    assert [excerpt[start:end] for start, end in matches] == ["needle"]
    assert len(excerpt) < 250


@pytest.mark.spec("T15")
def test_a_notice_that_repeats_a_message_is_found_once(store: Store, conversations: Conversations) -> None:
    owner, lead = (Scope(name, Actor(Role.OWNER, "pillar-owner")) for name in ("pillar", "mission"))
    conversations.add_message(owner, MessageRole.ASSISTANT, "The calendar reads the clock twice.")
    for text in ("The calendar reads the clock twice.", "Another clock is slow."):
        conversations.add_message(lead, MessageRole.SYSTEM, text, kind=NoticeKind.TODO_RESULT)
    assert sorted(text for _, text in found(store, "clock")) == [
        "Another clock is slow.",
        "The calendar reads the clock twice.",
    ]
