"""The record that the Lead gets for a review (M8): commands, exit status, changes and checks, bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from punchlist.engine.review_record import MAX_LENGTH, review_record_text
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.toolcalls.stored_call import StoredCall
from punchlist.verification.model import Check, CheckOutcome, CheckResult, Verification

pytestmark = pytest.mark.spec("M8")


def call(number: int, tool: str, result: str = "", *, failed: bool = False, **arguments: Any) -> StoredCall:
    empty: dict[str, Any] = dict.fromkeys(StoredCall._fields)
    return StoredCall(**empty)._replace(
        id=f"c{number}",
        position=number,
        tool=tool,
        arguments=json.dumps(arguments),
        status="error" if failed else "success",
        result=None if failed else result,
        explanation=result if failed else None,
        created_at=f"2026-03-01T09:00:{number:02}Z",
    )


def item(title: str, check: Check, outcome: CheckOutcome) -> TurnTodo:
    verification = Verification(check, CheckResult(outcome, "1 failed", "2026-03-01T09:00:00Z")).encode()
    return TurnTodo("t", "c", "turn", title, "", "", None, PlanStatus.COMPLETED, 0, verification=verification)


def test_it_says_which_commands_ran_how_they_ended_and_what_changed() -> None:
    calls = [
        call(1, "read_file", "text", path="build.py"),
        call(2, "edit_file", "done", path="build.py", old="a", new="b"),
        call(3, "run_command", "The command ended with exit code 1.\n\n2 failed", command="make test", failed=True),
        call(4, "run_command", "12 passed", command="make lint"),
        call(5, "complete_todo", "ok", id="1"),
    ]
    checked = item("Run the tests", Check(command="make test"), CheckOutcome.FAILED)
    assert review_record_text(calls, [checked], MAX_LENGTH) == (
        "4 tool calls, 1 without success.\n"
        "Checks of the plan:\n- “Run the tests” `make test`: failed\n"
        "Commands:\n- `make test`: exit code 1; 2 failed\n- `make lint`: exit code 0; 12 passed\n"
        "Files changed:\n- build.py\n"
        "Other calls:\n- read_file 1x"
    )


def test_nothing_done_is_no_record() -> None:
    assert review_record_text([call(1, "list_todo")], [], MAX_LENGTH) == ""


def test_it_is_bounded_and_says_what_is_left_out() -> None:
    calls = [
        call(number % 60, "run_command", "x" * 5_000, command=f"run {number} " + "y" * 500) for number in range(900)
    ]
    calls += [call(1, "write_file", "done", path=f"{'d' * 150}/{number}") for number in range(900)]
    text = review_record_text(calls, [], MAX_LENGTH)
    assert len(text) <= MAX_LENGTH + 500
    assert "older ones are left out" in text
    assert "run 899 " in text
