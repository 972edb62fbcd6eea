"""Mode and model that a person chooses for the next turns of a session (C15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist.app import Services
from punchlist.audit.check import check
from punchlist.config import load
from punchlist.conversations import repository
from punchlist.conversations.model import Scope
from punchlist.conversations.next_turn import NextTurns
from punchlist.kernel.events import Actor, Role
from punchlist.storage.schema_version import SCHEMA_VERSION

PERSON = Scope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def services(project: Path, database: str) -> Iterator[Services]:
    built = Services(load({"database": database}, cwd=project))
    yield built
    built.close()


@pytest.mark.spec("C15")
def test_the_last_choice_counts_and_is_part_of_the_event_log(services: Services) -> None:
    choices = NextTurns(services.store, services.trust)
    assert choices.choose(PERSON, "plan", "") == ""
    assert choices.get("s") is None
    services.conversations.open_turn(PERSON)
    choices.choose(PERSON, "yolo", "")
    at = choices.choose(PERSON, "plan", "ollama:x")
    assert choices.get("s") == ("plan", "ollama:x", at)
    assert check(services.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("C15")
def test_a_choice_that_this_user_has_not_signed_does_not_count(services: Services) -> None:
    choices = NextTurns(services.store, services.trust)
    services.conversations.open_turn(PERSON)
    services.conversations.open_turn(Scope("other", PERSON.actor))
    choices.choose(PERSON, "plan", "")
    signed = services.conversations.get("s").metadata
    forged = json.loads(signed)
    forged["nextTurn"]["mode"] = "yolo"
    with services.store.write() as tx:
        tx.run(repository.SET_METADATA, id="s", metadata=json.dumps(forged))
        tx.run(repository.SET_METADATA, id="other", metadata=signed)
    assert choices.get("s") is None
    assert choices.get("other") is None
