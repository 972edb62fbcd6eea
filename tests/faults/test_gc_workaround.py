"""Python before 3.12 makes an object twice, and dies, when rubbish is found while it is made and threads go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.faults.garbage import MEMOS
from tests.faults.processes import run_module

from punchlist.engine.gc_workaround import COLLECTS_DURING_ALLOCATION

pytestmark = pytest.mark.spec("M9")


def test_what_is_made_while_others_go_on_is_made_once() -> None:
    made = json.loads(run_module("tests.faults.garbage"))
    assert made == {"ours": True, "entries": 1 + MEMOS, "length": "as it was", "others": 500}


@pytest.mark.skipif(not COLLECTS_DURING_ALLOCATION, reason="this Python looks between two steps of a program")
def test_in_a_worker_rubbish_is_looked_for_by_the_event_loop_alone(tmp_path: Path) -> None:
    assert json.loads(run_module("tests.faults.garbage", str(tmp_path / "project"))) == 0
