"""Home on both databases: untouched lists, third-party agents, and the list before a message (W9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import MessageRole, Scope
from punchlist.host_sessions import HostSessions
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.tui.home_rows import work_row
from punchlist.views.chat import list_message_before, read_chat
from punchlist.views.home import read_home

PERSON = Scope("shopping", Actor(Role.PERSON, "ada"))
HOST = Scope("hosted", Actor(Role.SUPERVISOR, "claude-code"))


@pytest.fixture
def services(project: Path, database: str) -> Iterator[Services]:
    built = Services(load({"database": database}, cwd=project))
    yield built
    built.close()


@pytest.mark.spec("W9")
def test_a_list_is_on_home_until_an_agent_works_on_it_or_nothing_is_open(services: Services) -> None:
    services.todos.add(PERSON, ["Buy milk", "Buy bread"], reason="test")
    [row] = read_home(services).working
    assert (row.kind, row.conversation_id, row.title, row.items.open) == ("list", "shopping", "Buy milk", 2)
    for number in "12":
        services.todos.complete(PERSON, number, reason="test")
    assert read_home(services).working == []
    services.todos.reopen(PERSON, "1", reason="test")
    services.conversations.begin_turn(Scope("shopping", Actor(Role.SUPERVISOR, "supervisor")), reason="test")
    assert [line.kind for line in read_home(services).working] == ["turn"]


@pytest.mark.spec("W9")
def test_a_third_party_agent_has_the_time_and_continuations_of_its_turn(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostSessions, "running", lambda _: {"hosted": "claude-code"})
    [row] = read_home(services).working
    assert (row.kind, row.started_at, row.continuations) == ("agent", None, 0)
    turn = services.conversations.begin_turn(HOST, reason="a new prompt")
    services.conversations.add_message(HOST, MessageRole.USER, "Fix it", turn_id=turn.id)
    for _ in range(2):
        services.conversations.add_message(HOST, MessageRole.USER, "Go on.", kind="continuation", turn_id=turn.id)
    [row] = read_home(services).working
    assert (row.title, row.started_at, row.continuations) == ("Fix it", turn.started_at, 2)


@pytest.mark.spec("W9")
def test_a_conversation_with_several_turns_is_done_once(services: Services) -> None:
    scope = Scope("shopping", Actor(Role.SUPERVISOR, "supervisor"))
    for request in ("Buy milk", "Buy bread"):
        turn = services.conversations.begin_turn(scope, reason="test")
        services.conversations.add_message(scope, MessageRole.USER, request, turn_id=turn.id)
        services.conversations.end_turn(scope, reason="completed")
    services.conversations.begin_turn(HOST, reason="test")
    services.conversations.end_turn(HOST, reason="completed")
    hosted, shopping = read_home(services).done
    assert (hosted.conversation_id, hosted.turns) == ("hosted", 1)
    assert (shopping.title, shopping.turns) == ("Buy bread", 2)
    assert work_row(shopping).details == ("completed", "2 turns", "shopping")


@pytest.mark.spec("W9")
def test_the_list_before_a_message_is_found(services: Services) -> None:
    services.todos.add(PERSON, ["Buy milk"], reason="test")
    services.todos.add(PERSON, ["Buy bread"], reason="test")
    first, second = (each.message for each in read_chat(services.store, "shopping").entries)
    assert list_message_before(services.store, "shopping", first.position) == ""
    assert list_message_before(services.store, "shopping", second.position) == first.content
