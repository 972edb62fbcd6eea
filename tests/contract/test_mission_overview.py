"""The page of a mission and the list of its chats, each from one view."""

from __future__ import annotations

import pytest
from tests.contract.missions import BUILD, ONBOARDING, SLUG, developer_experience

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.missions.directives.service import Directives
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.recommendations.service import Recommendations
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.store import Store
from punchlist.views.mission_chats import read_mission_chats, run_in_chat
from punchlist.views.mission_overview import read_overview

pytestmark = pytest.mark.spec("M15", "X7")


def test_a_mission_is_read_with_all_that_its_page_shows(store: Store) -> None:
    team = developer_experience(store)
    Metrics(store).record(team.person, SLUG, "local-build-time", 55)
    Directives(store).add(team.person, SLUG, "Builds come first")
    Recommendations(store).add(team.owner, SLUG, "Buy a faster machine")
    team.todo_in(TodoStatus.IN_PROGRESS)
    found = read_overview(store, SLUG)
    assert found.board.counts[TodoStatus.IN_PROGRESS] == 1
    assert (found.health.mission.slug, found.health.queued_runs) == (SLUG, 1)
    assert {name: len(plot.points) for name, plot in found.plots.items()} == {
        "local-build-time": 1,
        "cache-hit-rate": 0,
    }
    assert [directive.content for directive in found.directives] == ["Builds come first"]
    assert [view.recommendation.content for view in found.recommendations] == ["Buy a faster machine"]
    assert ([run.kind for run in found.runs], found.total.runs) == (["execute"], 1)


def test_the_chats_of_a_mission_say_who_works_and_what_waits(store: Store) -> None:
    team = developer_experience(store)
    pillar = team.pillars[BUILD]
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    MessageQueue(store).add(Scope(pillar.todo_conversation_id, team.person.actor), "Mind the cache")
    assert run_in_chat(store, pillar.todo_conversation_id) is None
    queue, [run] = RunQueue(store, "worker"), Runs(store).for_todo(todo.id)
    assert queue.dispatch(run)
    chats = read_mission_chats(store, SLUG)
    assert [(chat.channel, chat.pillar and chat.pillar.slug) for chat in chats] == [
        ("mission", None),
        ("pillar", BUILD),
        ("pillar-todo", BUILD),
        ("pillar", ONBOARDING),
        ("pillar-todo", ONBOARDING),
    ]
    works = chats[2]
    assert (works.id, works.waiting, works.run and works.run.id) == (
        pillar.todo_conversation_id, 1, run.id,
    )  # fmt: skip
    assert [chat.run for chat in chats if chat is not works] == [None] * 4
