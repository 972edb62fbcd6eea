"""The files that CONTRIBUTING.md names exist."""

from __future__ import annotations

import re

from tests.conftest import ROOT, SLOWEST


def test_every_file_in_the_table_of_behaviours_exists() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Fifteen behaviours")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    files = [file for row in rows for file in re.findall(r"`([\w/]+\.py)`", row)]
    assert len(rows) == 15
    assert [file for file in files if not (ROOT / "src/punchlist" / file).is_file()] == []


def test_every_file_that_runs_first_exists() -> None:
    assert [name for name in SLOWEST if not (ROOT / "tests" / name).is_file()] == []
