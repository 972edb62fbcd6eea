"""The manifest of promises and the tests tell the same story."""

from __future__ import annotations

import pytest
from tests.conftest import REQUIREMENTS, SPEC_TESTS


def test_every_id_is_done_or_says_why_it_is_open() -> None:
    wrong = [i for i, state in REQUIREMENTS.items() if state != "done" and not state.startswith("open: ")]
    assert wrong == []


def test_every_done_id_has_a_test(request: pytest.FixtureRequest) -> None:
    if request.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        pytest.skip("only a run of all tests knows")
    proved = request.config.stash[SPEC_TESTS]
    assert [i for i, state in REQUIREMENTS.items() if state == "done" and i not in proved] == []
