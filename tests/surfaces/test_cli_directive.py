"""`punchlist mission directive`: people add, list and end standing instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.conftest import Cli
from tests.contract.missions import SLUG, developer_experience

from punchlist.storage.open import open_store
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M17")


@pytest.fixture
def mission(project_database: str) -> Iterator[Store]:
    opened = open_store(project_database)
    developer_experience(opened)
    yield opened
    opened.close()


@pytest.mark.usefixtures("mission")
def test_a_directive_is_added_listed_and_ended(punchlist: Cli) -> None:
    def directive(*arguments: str) -> str:
        done = punchlist("mission", "directive", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert directive("list", SLUG) == "There are no directives.\n"
    assert directive("add", SLUG, "Builds come first", "--until", "2099-03-31") == "Added directive 1.\n"
    assert directive("list", SLUG) == "1. Builds come first (until 2099-03-31)\n"
    (listed,) = json.loads(directive("list", SLUG, "--json"))
    assert (listed["number"], listed["content"], listed["holdsUntil"]) == (1, "Builds come first", "2099-03-31")
    assert directive("end", SLUG, "1") == "Ended directive 1.\n"
    assert directive("list", SLUG) == "There are no directives.\n"
    assert directive("list", SLUG, "--all") == "1. Builds come first (until 2099-03-31) (ended)\n"
    assert "differs from its events" not in punchlist("db", "check").stdout


@pytest.mark.usefixtures("mission")
def test_a_directive_that_is_too_long_is_refused(punchlist: Cli) -> None:
    refused = punchlist("mission", "directive", "add", SLUG, "x" * 501)
    assert refused.returncode != 0
    assert "text: " in refused.stderr


@pytest.mark.usefixtures("mission")
def test_an_agent_cannot_give_directives(punchlist: Cli) -> None:
    refused = punchlist("mission", "directive", "add", SLUG, "Trust me", env={"CLAUDECODE": "1"})
    assert refused.returncode != 0
    assert "is for you, not for an agent" in refused.stderr
