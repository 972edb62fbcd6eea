"""The state in a request of a mission's agents is bounded, whatever the size of everything else (M10, M17).

Through the front door: the runtime that a worker builds for a turn, with a model that keeps the requests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import StoppedClock
from tests.contract.missions import BUILD, Team, developer_experience

from punchlist.agent.definitions import BUILT_IN, LEAD, OWNER
from punchlist.agent.turn_model import TurnRequest
from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import NewMessage, NoticeKind, Scope
from punchlist.engine.runtime_factory import RuntimeFactory, TurnTask
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import SYSTEM
from punchlist.kernel.text import visible
from punchlist.kernel.token_estimate import estimated_tokens
from punchlist.missions import chats
from punchlist.missions.directives.model import MAX_IN_FORCE
from punchlist.missions.directives.model import MAX_LENGTH as MAX_DIRECTIVE_LENGTH
from punchlist.missions.directives.service import Directives
from punchlist.missions.planning import prompts
from punchlist.missions.recommendations.service import Recommendations
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.models.model import ModelInfo, ModelRequest, Reply, RequestedCall, TextListener
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M10", "M17")
MAX_STATE_TOKENS = 6_000
LETTERS = ["x", "字", "\u200b", "<state>", "“", "a b ", "\U0001f9d1\u200d"]


class KeptRequests:
    """Makes a long plan, then answers."""

    name = "kept"
    info = ModelInfo(context_window=2_000_000)
    """The longest plan fits into it."""

    def __init__(self, items: int = 0, title: str = "x") -> None:
        self.requests: list[ModelRequest] = []
        texts = dict.fromkeys(("context", "completionCriteria"), (title * 40)[:3_000])
        self._items = [{"title": f"{number} {title}", **texts} for number in range(items)]

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        self.requests.append(request)
        if self._items and len(self.requests) == 1:
            return Reply("", (RequestedCall("c", "create_todo", {"items": self._items}),))
        return Reply("Done.")

    @property
    def states(self) -> list[str]:
        return ["".join(message.text for message in one.messages[one.stable :]) for one in self.requests]


def build(store: Store, folder: Path) -> Services:
    services = Services(load(environment={"HOME": str(folder)}, cwd=folder))
    services._store = store
    return services


def run_turn(
    services: Services,
    team: Team,
    model: KeptRequests,
    agent: str,
    remark: Callable[[], str] | None = None,
    request: str = "Go",
) -> None:
    mission, pillar = team.mission, team.pillars[BUILD]
    chat = mission.conversation_id if agent == LEAD else pillar.todo_conversation_id
    message = NewMessage("user", NoticeKind.CYCLE_REPORT.value, request)
    of_pillar = None if agent == LEAD else pillar
    task = TurnTask("t", BUILT_IN[agent], message, chat, mission, of_pillar, remark=remark)
    turn = services.conversations.begin_turn(task.scope, reason="a test", request=message, abandoned=True)
    factory = RuntimeFactory(services, lambda _: model, None)
    asked = TurnRequest(task.agent, CancelSignal(), None, owner_is_dead=True)
    try:
        with suppress(NotAllowed):
            asyncio.run(factory.build(task).run_turn(asked, turn.id))
    finally:
        factory.live.close()


def fill(team: Team, text: str, directives: int, recommendations: int, todos: int, posts: int) -> None:
    for number in range(directives):
        with suppress(InvalidInput, IllegalTransition):
            Directives(team.store).add(team.person, team.slug, f"{number} {text}"[:MAX_DIRECTIVE_LENGTH].strip())
    notes = Recommendations(team.store)
    for number in range(recommendations):
        notes.add(team.owner, team.slug, f"{number} {text}"[:2_000].strip())
    for number in range(todos):
        with suppress(IllegalTransition):
            todo = team.create(f"{number} {text}"[:500].strip(), description=text[:20_000], target=TodoStatus.BACKLOG)
        with suppress(NotAllowed, IllegalTransition):
            team.todos.update(
                team.owner,
                team.slug,
                todo.id,
                TodoAction.REPRIORITIZE,
                text[:2_000].strip() or "x",
                priority=TodoPriority.LOW,
            )
    chat = team.mission.conversation_id
    for number in range(posts):
        with team.store.write() as tx:
            chats.post(tx, Scope(chat, SYSTEM), chat, NoticeKind.NOTE, f"{number} {text}")


@pytest.mark.parametrize("agent", [LEAD, OWNER])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    letters=st.sampled_from(LETTERS),
    length=st.sampled_from([1, 60, 500, 3_000]),
    directives=st.integers(0, MAX_IN_FORCE),
    recommendations=st.sampled_from([0, 14, 90]),
    todos=st.sampled_from([0, 9]),
    posts=st.sampled_from([0, 40]),
    items=st.sampled_from([0, 100]),
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_state_of_a_request_is_bounded(
    tmp_path: Path, database: str, clock: StoppedClock, agent: str, **sizes: Any
) -> None:
    check_bound(tmp_path, database, clock, agent, **sizes)


def check_bound(
    tmp_path: Path,
    database: str,
    clock: StoppedClock,
    agent: str,
    *,
    letters: str,
    length: int,
    directives: int,
    recommendations: int,
    todos: int,
    posts: int,
    items: int,
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    address = database if not database.startswith("sqlite") else f"sqlite:///{folder}/punchlist.db"
    store = open_store(address, clock=clock)
    try:
        team = developer_experience(store)
        text = (letters * length)[: max(length, len(letters))]
        fill(team, text, directives, recommendations, todos, posts)
        model = KeptRequests(items, text[:400].strip() or "x")
        run_turn(build(store, folder), team, model, agent, remark=lambda: text * 50)
        assert len(model.requests) >= (2 if items else 1)
        for state in model.states:
            assert estimated_tokens(state) <= MAX_STATE_TOKENS
        last = model.states[-1]
        held = Recommendations(store).list(team.slug)
        if agent == LEAD:
            numbers = [view.recommendation.number for view in held]
            shown = next((number for number in range(30, 0, -1) if f"and {len(held) - number} more: read" in last), 30)
            assert shown >= (30 if text.isascii() and "<" not in text else 7)
            assert all(f"\n{number}. " in last for number in numbers[:shown])
            if len(held) > shown:
                assert (
                    f"and {len(held) - shown} more: read them with mission_recommendation_list, after={shown}" in last
                )
        if len(text * 50) > 25_000:
            assert "left out: too long" in last
    finally:
        store.close()


@pytest.mark.parametrize("agent", [LEAD, OWNER])
def test_everything_at_its_limit(tmp_path: Path, database: str, clock: StoppedClock, agent: str) -> None:
    """Directives whole, fourteen recommendations and more, a long plan, a long chat; on both databases."""
    sizes = {"directives": 20, "recommendations": 90, "todos": 9, "posts": 40, "items": 100}
    check_bound(tmp_path, database, clock, agent, letters="x", length=3_000, **sizes)


def test_all_directives_are_whole_in_the_fullest_request(team: Team, tmp_path: Path) -> None:
    fill(team, "x" * 3_000, MAX_IN_FORCE, 90, 9, 40)
    model = KeptRequests(100, "y" * 400)
    run_turn(build(team.store, tmp_path), team, model, LEAD, remark=lambda: "z" * 100_000)
    for number in range(MAX_IN_FORCE):
        whole = visible(f"{number} {'x' * 3_000}"[:MAX_DIRECTIVE_LENGTH])
        assert all(f"{number + 1}. {whole}" in state for state in model.states)
    assert max(map(estimated_tokens, model.states)) <= MAX_STATE_TOKENS


def test_a_todo_that_is_too_long_says_where_the_rest_is(team: Team) -> None:
    todo = team.create("Profile", description="d" * 20_000, completion_criteria="c" * 4_000)
    told = prompts.delegation_text(todo)
    left_out = re.search(r"(d+)\n… \[([\d,]+) characters left out: read them with mission_todo_list\]", told)
    assert left_out is not None
    assert len(left_out[1]) + int(left_out[2].replace(",", "")) == 20_000
    assert "c" * 4_000 in told
    assert told.count("left out") == 1
    assert estimated_tokens(told) <= MAX_STATE_TOKENS


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)
