"""The requirements manifest and the tests agree, in both directions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import REQUIREMENTS, ROOT, SPEC_TESTS

ID = re.compile(r"\b(?:[WTCSMVI]|X)\d{1,2}\b")
CITED = re.compile(r"\(([WTCSMVIX]\d{1,2}(?:, [WTCSMVIX]\d{1,2})*)\)")


def test_every_requirement_has_a_text_and_a_status() -> None:
    wrong = [
        spec_id
        for spec_id, entry in REQUIREMENTS.items()
        if set(entry) != {"status", "text"}
        or not entry["text"].strip()
        or not (entry["status"] == "done" or entry["status"].startswith(("partial: ", "open: ")))
    ]
    assert wrong == []


def test_every_id_cited_in_the_source_has_a_text() -> None:
    cited = {
        (spec_id, str(path.relative_to(ROOT)))
        for path in sorted(Path(ROOT, "src").rglob("*.py"))
        for match in CITED.finditer(path.read_text())
        for spec_id in ID.findall(match[1])
    }
    assert cited, "the source cites no requirement at all: the pattern is wrong"
    assert [where for where in sorted(cited) if where[0] not in REQUIREMENTS] == []


def test_every_built_requirement_has_a_test(request: pytest.FixtureRequest) -> None:
    if request.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        pytest.skip("needs a run of the whole suite")
    proved = request.config.stash[SPEC_TESTS]
    built = [spec_id for spec_id, entry in REQUIREMENTS.items() if not entry["status"].startswith("open: ")]
    assert [spec_id for spec_id in built if spec_id not in proved] == []
