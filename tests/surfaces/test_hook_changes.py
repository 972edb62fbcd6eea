"""What people change on the lists of a third-party agent stays, and the agent is told once (X9, X2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.conftest import Hook
from tests.surfaces.mcp_client import WireClient

Update = Callable[..., Any]


@pytest.fixture
def update(hook: Hook) -> Update:
    """The agent replaces its own list: texts with their status."""

    def replace(**statuses: str) -> None:
        plan = [{"step": text.replace("_", " "), "status": status} for text, status in statuses.items()]
        hook("tool", tool_name="update_plan", tool_input={"plan": plan})

    return replace


@pytest.fixture
def copy(punchlist: Cli) -> Callable[[], dict[str, str]]:
    """The status of each item of the copy, by its text."""

    def read() -> dict[str, str]:
        shown = json.loads(punchlist("todos", "--json").stdout)
        return {item["title"]: item["status"] for item in shown["items"]}

    return read


@pytest.fixture
def stop(hook: Hook) -> Callable[[], str]:
    """What the agent is told when it stops."""
    return lambda: str(hook("stop").get("reason", ""))


@pytest.fixture
def prompt(hook: Hook) -> Callable[[], str]:
    """What the agent is told with a prompt."""

    def submit() -> str:
        answer = hook("prompt", prompt="Go on.")
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    return submit


@pytest.mark.spec("X9", "X2")
@pytest.mark.parametrize(("command", "status"), [("done", "completed"), ("cancel", "cancelled")])
def test_an_item_that_a_person_ended_stays_ended_although_the_agents_own_list_has_it_open(
    update: Update, copy: Callable[[], dict[str, str]], punchlist: Cli, command: str, status: str
) -> None:
    update(Read="in_progress", Write="pending")
    assert punchlist("todos", command, "2").returncode == 0
    for of_agent in ("pending", "in_progress", "pending"):
        update(Read="completed", Write=of_agent)
        assert copy() == {"Read": "completed", "Write": status}
    update(Read="completed", Write="completed")
    assert copy() == {"Read": "completed", "Write": "completed"}


@pytest.mark.spec("X9", "X2")
def test_an_item_that_a_person_reopens_or_the_agent_ended_follows_the_agents_own_list(
    update: Update, copy: Callable[[], dict[str, str]], punchlist: Cli
) -> None:
    update(Read="completed", Write="pending")
    update(Read="pending", Write="pending")
    assert copy() == {"Read": "pending", "Write": "pending"}
    punchlist("todos", "done", "2")
    punchlist("todos", "reopen", "2")
    update(Read="pending", Write="in_progress")
    assert copy() == {"Read": "pending", "Write": "in_progress"}


@pytest.mark.spec("X9", "X2")
def test_a_text_that_a_person_changed_stays_until_the_agent_has_another(
    update: Update, copy: Callable[[], dict[str, str]], punchlist: Cli
) -> None:
    update(Read="in_progress", Write="pending")
    punchlist("todos", "edit", "2", "Publish")
    punchlist("todos", "edit", "2", "Publish the article")
    update(Read="completed", Write="in_progress")
    assert copy() == {"Read": "completed", "Publish the article": "in_progress"}
    update(Read="completed", Write="pending", More="pending")
    assert copy() == {"Read": "completed", "Publish the article": "pending", "More": "pending"}
    punchlist("todos", "done", "2")
    update(Read="completed", Write="pending", More="pending")
    assert copy() == {"Read": "completed", "Publish the article": "completed", "More": "pending"}
    update(Read="completed", Write="pending", Publish="pending", More="pending")
    assert copy() == {"Read": "completed", "Write": "pending", "Publish the article": "completed", "More": "pending"}
    update(Read="completed", Write="completed", Publish_the_article="completed", More="completed")
    assert set(copy().values()) == {"completed"}


@pytest.mark.spec("X9", "X2")
def test_an_agent_that_stops_is_told_once_what_people_changed(
    update: Update, stop: Callable[[], str], prompt: Callable[[], str], punchlist: Cli
) -> None:
    update(Fix_the_parser="in_progress", Write="pending")
    assert "The user" not in stop()
    punchlist("todos", "done", "1")
    punchlist("todos", "add", "Write the changelog")
    punchlist("todos", "edit", "2", "Write more")
    update(Fix_the_parser="in_progress", Write="pending")
    told = stop()
    assert told.startswith(
        "The user completed “Fix the parser”, added “Write the changelog” and reworded “Write” as “Write more”. "
        "Bring your own list into line.\n\n"
    )
    assert "2 items are still open" in told
    assert "The user completed" not in stop()
    assert prompt() == ""
    punchlist("todos", "cancel", "2")
    assert prompt() == "The user cancelled “Write more”. Bring your own list into line."
    assert prompt() == ""


@pytest.mark.spec("X9", "X2")
def test_five_changes_are_named_and_nothing_that_the_agent_ended_or_never_knew(
    update: Update, prompt: Callable[[], str], punchlist: Cli
) -> None:
    update(Read="pending", Write="pending")
    for number in range(1, 9):
        punchlist("todos", "add", f"Item {number} <b> “x”")
    punchlist("todos", "cancel", "10")
    punchlist("todos", "done", "1")
    punchlist("todos", "move", "9", "3")
    update(Read="completed", Write="pending", **{"Item_1_<b>_“x”": "completed"})
    assert prompt() == (
        "The user added “Item 2 ‹b> ‘x’”, “Item 3 ‹b> ‘x’”, “Item 4 ‹b> ‘x’”, “Item 5 ‹b> ‘x’”, “Item 6 ‹b> ‘x’” "
        "and 2 more. Bring your own list into line."
    )


@pytest.mark.spec("X9", "X2")
def test_a_move_and_a_removal_are_told(update: Update, prompt: Callable[[], str], punchlist: Cli) -> None:
    update(One="pending", Two="pending", Three="pending")
    punchlist("todos", "move", "3", "1")
    assert prompt() == "The user moved “Three”. Bring your own list into line."
    punchlist("todos", "remove", "2")
    assert prompt() == "The user removed “Two”. Bring your own list into line."


@pytest.mark.spec("X9")
def test_a_list_that_people_wrote_before_the_first_agent_is_no_change(
    prompt: Callable[[], str], stop: Callable[[], str], punchlist: Cli
) -> None:
    punchlist("todos", "add", "One")
    assert prompt() == ""
    assert "The user added" not in stop()
    punchlist("todos", "add", "Two")
    assert stop().startswith("The user added “Two”.")


@pytest.mark.spec("X9", "X2")
def test_an_agent_with_a_plan_is_told_too(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    stop = partial(hook, "stop")
    with WireClient(project, environment) as client:
        made = client.call("create_todo", items=[{"title": title} for title in ("Build", "Try", "Ship")])
        assert "The user" not in stop()["reason"]
        punchlist("todos", "cancel", "2")
        punchlist("todos", "edit", "3", "Ship it")
        punchlist("todos", "add", "Tell")
        client.call("complete_todo", todoId=made["structuredContent"]["created"][0]["id"], outcome="built")
        assert stop()["reason"].startswith(
            "The user cancelled “Try”, reworded “Ship” as “Ship it” and added “Tell”.\n\n2 items are still open"
        )
        assert "The user" not in stop()["reason"]
