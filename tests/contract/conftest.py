"""What only the contract tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import StoppedClock
from tests.contract.crowd import Crowd
from tests.contract.rehearsing import Rehearse, Rehearsing
from tests.contract.scenario import Scenario, play

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.storage.store import Store


@pytest.fixture
def other_turn(conversations: Conversations, agent: Scope) -> TurnScope:
    """The open turn of another session, of the same agent."""
    other = Scope("another", agent.actor)
    return TurnScope("another", agent.actor, conversations.open_turn(other).id)


@pytest.fixture
def scenario(store: Store, clock: StoppedClock, agent: Scope) -> Scenario:
    """A session with something of everything in it."""
    return play(store, clock, agent)


@pytest.fixture
def rehearse(store: Store, agent: Scope, tmp_path: Path) -> Rehearse:
    """Agents of one session in one folder, on what they are to say."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return lambda *replies, **agents: Rehearsing(store, agent, folder, *replies, **agents)


@pytest.fixture(scope="session")
def crowd() -> Iterator[Crowd]:
    """Processes that write at the same moment."""
    started = Crowd()
    yield started
    started.end()
