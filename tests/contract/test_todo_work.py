"""The recorded work on a mission todo, a page at a time: evidence and transcript, over HTTP and on the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.missions import developer_experience
from tests.contract.todo_work import add_work
from tests.contract.web import API, WebSite, opened

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import NewMessage
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.store import Store
from punchlist.surfaces.web.logins import Logins
from punchlist.views.mission_repository import said_after
from punchlist.views.todo_transcript import read_newest, read_todo_transcript


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        yield site


@pytest.mark.spec("M15", "X4", "X7")
def test_the_evidence_of_a_todo_is_paged_over_http_and_on_its_page(site: WebSite) -> None:
    todo = developer_experience(site.services.store).todo_in(TodoStatus.IN_PROGRESS)
    add_work(site.services.store, todo.id, turns=3, calls=50)
    costs = site.http.get(f"{API}/todos/{todo.id}").json()["costs"]
    assert (costs["toolCalls"], len(costs["evidence"])) == (150, 100)
    commands = [call["arguments"]["command"] for call in costs["evidence"]]
    rest = site.http.get(f"{API}/todos/{todo.id}/evidence?cursor={costs['evidenceCursor']}").json()
    assert [call["arguments"]["command"] for call in rest["items"]] + commands == [
        f"make part-{number}" for number in range(1, 151)
    ]
    assert "nextCursor" not in rest
    page = site.http.get(f"/todos/{todo.id}").text
    assert "make part-51" in page
    assert "make part-50<" not in page
    earlier = f"/todos/{todo.id}/evidence?before={costs['evidenceCursor']}"
    assert earlier in page
    page = site.http.get(earlier).text
    assert "make part-50<" in page
    assert "make part-51" not in page


@pytest.mark.spec("M15", "X7")
def test_the_transcript_is_read_from_its_beginning_or_its_end(store: Store) -> None:
    todo = developer_experience(store).todo_in(TodoStatus.IN_PROGRESS)
    assert read_newest(store, todo.id, limit=5).entries == []
    add_work(store, todo.id, turns=3, calls=4)
    page = read_todo_transcript(store, todo.id, limit=7)
    rest = read_todo_transcript(store, todo.id, cursor=page.cursor, limit=7)
    everything = [*page.entries, *rest.entries]
    assert [entry.message.content for entry in everything] == [
        f"Message {number}.{place}" for number in range(3) for place in range(4)
    ]
    assert read_newest(store, todo.id, limit=6).entries == everything[-6:]


@pytest.mark.spec("X7")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_statistics_of_chats_without_turns_do_not_hide_the_index_of_turns(store: Store) -> None:
    """SQLite avoids an index over all messages, once it knows that most of them have the same turn: none."""
    team = developer_experience(store)
    with store.write() as tx:
        notice = NewMessage("system", "note", "text")
        conversation_repository.add_messages(tx, team.mission.conversation_id, None, [notice] * 2_000)
        tx.raw_step("ANALYZE")
    with store.read() as tx:
        sql = said_after.sql.replace(":turn_id", "'x'").replace(":most", "9")
        sql = sql.replace(":at", "''").replace(":position", "0").replace(":id", "''")
        [step, *_] = tx.raw(f"EXPLAIN QUERY PLAN {sql}")
    assert "USING INDEX idx_messages_turn (turn_id=?" in step[3]
