"""`punchlist search`, and Home in one call (I1, C15)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Cli

from punchlist.app import Services
from punchlist.config import load
from punchlist.views.home import read_home

SCRIPT = """
- calls: [{tool: create_todo, arguments: {items: [{title: Compare the loaders}]}}]
- calls: [{tool: run_command, arguments: {command: "touch made"}}]
"""


@pytest.mark.spec("T15", "I1", "C15")
def test_search_and_home_show_the_work_of_a_run(punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
    (project / "script.yaml").write_text(SCRIPT)
    assert punchlist("run", "Why is the build slow?", "--model", "rehearsal:script.yaml").returncode == 4
    assert punchlist("run", "Say hello.", "-s", "other", "--model", "rehearsal:missing.yaml").returncode == 1
    (project / "quick.yaml").write_text("- Hello.\n")
    assert punchlist("run", "Say hello.", "-s", "other", "--model", "rehearsal:quick.yaml").returncode == 0

    shown = punchlist("search", "slow", "bui").stdout
    assert "Why is the build slow?" in shown
    assert "request" in shown
    [hit] = json.loads(punchlist("search", "loaders", "--json").stdout)["items"]
    assert (hit["kind"], hit["excerpt"]) == ("plan_todo", "Compare the loaders")
    start, end = hit["matches"][0]
    assert hit["excerpt"][start:end] == "loaders"
    assert punchlist("search", "nothing here").stdout == "Nothing found.\n"

    services = Services(load(cwd=project, environment=environment))
    home = read_home(services)
    assert [(item.kind, item.subject) for item in home.needs_you] == [("approval", "run_command")]
    assert home.working == []
    [done] = home.done
    assert (done.title, done.conversation_id, done.state) == ("Say hello.", "other", "ended")
    assert (done.reason or "").startswith("completed")
    assert done.continuation_limit == 10
    assert home.needs_you_total == 1
    services.close()
