"""`mission_todo_list`: in the order in which one wants to read, in pages, without what is archived (M5, M14)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import by_hand
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience
from tests.tables import engine_of

from punchlist.errors import InvalidInput, NotFound, StoreDamaged
from punchlist.missions.changes import MissionWrite
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.transitions import find_todo, update_todo
from punchlist.storage.store import Store, Transaction


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def titles(listed: dict[str, Any]) -> list[str]:
    return [item["title"] for item in listed["items"]]


def history(team: Team, clock: StoppedClock) -> list[str]:
    """Todos in all states, made in some order; their titles in the order in which they are to be listed."""
    made = {}
    for number, (state, priority) in enumerate(
        [
            (TodoStatus.COMPLETED, TodoPriority.LOW),
            (TodoStatus.BACKLOG, TodoPriority.LOW),
            (TodoStatus.PENDING, TodoPriority.MEDIUM),
            (TodoStatus.BACKLOG, TodoPriority.CRITICAL),
            (TodoStatus.PENDING, TodoPriority.MEDIUM),
            (TodoStatus.IN_PROGRESS, TodoPriority.LOW),
            (TodoStatus.CANCELLED, TodoPriority.CRITICAL),
            (TodoStatus.PENDING, TodoPriority.CRITICAL),
            (TodoStatus.IN_PROGRESS, TodoPriority.HIGH),
            (TodoStatus.PENDING, TodoPriority.HIGH),
        ]
    ):
        clock.advance(seconds=1)
        made[number] = team.todo_in(state, f"{number}", priority=priority).title
    return [made[number] for number in (8, 5, 7, 9, 2, 4, 3, 1, 6, 0)]


@pytest.mark.spec("M5")
def test_what_is_open_comes_first_by_state_urgency_and_age_then_what_ended_newest_first(
    team: Team, clock: StoppedClock
) -> None:
    order = history(team, clock)
    assert titles(team.call(team.lead, "list")) == order
    assert titles(team.call(team.lead, "list", status="open")) == order[:8]
    assert titles(team.call(team.lead, "list", status="active")) == order[:6]
    assert titles(team.call(team.lead, "list", status="backlog")) == order[6:8]
    assert titles(team.call(team.lead, "list", status="completed")) == ["0"]
    assert titles(team.call(team.lead, "list", status="cancelled")) == ["6"]


@pytest.mark.spec("M5")
def test_pages_follow_each_other_without_gap_or_repetition(team: Team, clock: StoppedClock) -> None:
    order = history(team, clock)
    for limit in (1, 3, 4, 8, 9, 10, 100):
        pages = [team.call(team.lead, "list", limit=limit)]
        while cursor := pages[-1].get("nextCursor"):
            pages.append(team.call(team.lead, "list", limit=limit, cursor=cursor))
        assert [title for page in pages for title in titles(page)] == order
        assert {len(page["items"]) for page in pages[:-1]} <= {limit}
        assert len(pages) == -(-len(order) // limit)


@pytest.mark.spec("M5")
def test_those_that_ended_at_the_same_moment_are_all_found(team: Team) -> None:
    for number in range(7):
        team.todo_in(TodoStatus.CANCELLED, f"{number}")
    found, cursor = [], None
    while True:
        page = team.call(team.lead, "list", limit=2, cursor=cursor)
        found += titles(page)
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert sorted(found) == [str(number) for number in range(7)]


@pytest.mark.spec("M5")
def test_a_cursor_or_a_limit_that_is_none_is_refused(team: Team) -> None:
    forged = [
        "x",
        "Ww",
        "WzFd",
        "WyJhIiwgNV0",
        "bnVsbA",
        "ÿ",
        "W" * 250,
        "W1tbW1tbW1tbW1tbW1tb",
        "WyIwXHUwMDAwIiwgIngiXQ",
    ]
    for cursor in forged:
        with pytest.raises(InvalidInput, match=r"^cursor: must be a nextCursor"):
            team.call(team.lead, "list", cursor=cursor)
    for limit in (0, -1, 501, 1.5, "many", True, 10**30):
        with pytest.raises(InvalidInput, match=r"^limit: must be a whole number from 1 to 500, got"):
            team.call(team.lead, "list", limit=limit)


@pytest.mark.spec("M14")
def test_what_ended_long_ago_is_left_out_but_never_deleted(team: Team, clock: StoppedClock) -> None:
    team.todo_in(TodoStatus.COMPLETED, "old")
    clock.advance(days=29)
    team.todo_in(TodoStatus.CANCELLED, "newer")
    team.create("open")
    assert titles(team.call(team.lead, "list")) == ["open", "newer", "old"]
    clock.advance(days=1, seconds=1)
    assert titles(team.call(team.lead, "list")) == ["open", "newer"]
    assert titles(team.call(team.lead, "list", status="all", archived=True)) == ["open", "newer", "old"]
    clock.advance(days=365)
    assert titles(team.call(team.lead, "list")) == ["open"]
    assert titles(team.call(team.lead, "list", status="completed", archived=True)) == ["old"]


@pytest.mark.spec("M14")
def test_a_pillars_list_has_its_own_and_what_also_affects_it(team: Team) -> None:
    team.create("builds")
    team.create("both", also_affects=(ONBOARDING,))
    team.create("people", pillar=ONBOARDING)
    team.todo_in(TodoStatus.CANCELLED, "ended")
    assert sorted(titles(team.call(team.lead, "list", pillarSlug=BUILD))) == ["both", "builds", "ended"]
    listed = team.call(team.other_owner, "list", pillarSlug=ONBOARDING)
    assert sorted((item["title"], item["pillarSlug"]) for item in listed["items"]) == [
        ("both", BUILD),
        ("people", ONBOARDING),
    ]
    assert listed["summary"]["active"] == 3


@pytest.mark.spec("M13")
def test_a_todo_that_is_overdue_or_that_a_person_is_asked_about_says_so(store: Store, team: Team) -> None:
    todo = team.create("A")
    team.create("B")
    with store.write() as tx:
        flag(tx, team, todo.id)
    by_hand(
        store,
        "INSERT INTO escalations (id, mission_id, todo_id, kind, question, status, asked_at) "
        "VALUES ('e', :mission, :todo, 'overdue', 'Extend?', 'acknowledged', '2026')",
        mission=todo.mission_id,
        todo=todo.id,
    )
    # Made at the same moment, they may stand in either order.
    first, second = sorted(team.call(team.lead, "list")["items"], key=lambda item: str(item["title"]))
    assert (first["overdue"], first["escalated"]) == (True, True)
    assert not {"overdue", "escalated"} & set(second)
    team.update(todo, TodoAction.CANCEL)
    ended = team.call(team.lead, "list", status="cancelled")["items"][0]
    assert not {"overdue", "escalated"} & set(ended)


def flag(tx: Transaction, team: Team, todo_id: str) -> None:
    write = MissionWrite(tx, team.system, team.mission)
    update_todo(write, "overdue", find_todo(tx, team.mission, todo_id), "late", overdue_at=tx.now())


@pytest.mark.spec("M5")
def test_a_todo_is_found_by_its_id_or_the_end_of_it(store: Store, team: Team) -> None:
    todo, other = team.create("A"), developer_experience(store, "other").create("B")
    assert team.todos.find(team.slug, todo.id) == team.todos.find(None, todo.id[-12:].upper()) == todo
    for slug, wanted in [(team.slug, other.id), (None, "nothing"), (None, ""), (None, "%"), (None, "-" * 36)]:
        with pytest.raises(NotFound, match="no todo"):
            team.todos.find(slug, wanted)
    with pytest.raises(NotFound):
        team.todos.get(todo.id[-12:])


@pytest.mark.spec("M5")
def test_an_end_that_several_ids_have_is_refused_unless_one_of_them_is_open(store: Store, team: Team) -> None:
    first, second = team.create("A"), team.create("B")
    ends = {first.id: "20000", second.id: "10000"}
    for id, end in ends.items():
        by_hand(store, "DELETE FROM runs")
        copy = team.todos.get(id)._replace(id=f"{id[: -len(end)]}{end}")
        by_hand(
            store,
            "UPDATE mission_todos SET id = :new, checksum = :checksum WHERE id = :id",
            new=copy.id,
            checksum=copy.checksum(),
            id=id,
        )
    with pytest.raises(InvalidInput, match="matches the ends of 2 ids"):
        team.todos.find(None, "0000")
    assert team.todos.find(None, "10000").title == "B"
    team.update(team.todos.find(None, "10000"), TodoAction.CANCEL)
    assert team.todos.find(None, "0000").title == "A"


@pytest.mark.spec("X5")
def test_a_row_that_is_not_as_it_was_written_is_not_listed_as_truth(store: Store, team: Team) -> None:
    for column, value in [
        ("title", "changed"),
        ("status", "backlog"),
        ("deadline", "2030-01-01"),
        ("outcome", "changed"),
        ("priority", "low"),
        ("check_result", '{"passed": true}'),
    ]:
        todo = team.create()
        before = getattr(todo, column)
        change = f"UPDATE mission_todos SET {column} = :value WHERE id = :id"
        by_hand(store, change, value=value, id=todo.id)
        for look in (partial(team.todos.get, todo.id), partial(team.call, team.lead, "list")):
            with pytest.raises(StoreDamaged, match=f"Todo '{todo.id}' of a mission is not what was written"):
                look()
        by_hand(store, change, value=before, id=todo.id)
        assert team.todos.get(todo.id) == todo


@pytest.mark.spec("M14")
def test_lists_are_read_along_indexes_however_much_has_ended(store: Store) -> None:
    """What SQLite intends to do. PostgreSQL decides by what is in the table; the benchmark looks at both."""
    if store.database.kind != "sqlite":
        return
    where = {"owner": "", "since": "0", "at": "9999", "id": "", "most": 100, "mission_id": "", "label": ""}
    with engine_of(store).connect() as connection:
        for statement in (
            todo_repository.open_in_mission,
            *todo_repository.ENDED.values(),
            *todo_repository.UNARCHIVED.values(),
        ):
            sql, values = statement.on(store.database.kind, where)
            (first, *_) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", tuple(values)).fetchall()
            assert "SEARCH mission_todos USING INDEX idx_mission_todos_" in first[-1]
