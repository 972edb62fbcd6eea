"""Evidence for the items of third-party agents, from the calls that their hooks report (V1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.conftest import Hook
from tests.surfaces.mcp_client import WireClient

from punchlist.integrations.call_journal import MAX_SIZE, CallJournal, ReportedCall, has_failed


def write(client: WireClient, hook: Hook, **statuses: str) -> dict[str, Any]:
    """`TodoWrite`, and what the host does after it: it calls the hook for the tool."""
    todos = [{"content": name, "activeForm": name, "status": status} for name, status in statuses.items()]
    written = client.call("TodoWrite", todos=todos)
    assert not written.get("isError"), written
    hook("tool", tool_name="mcp__punchlist__TodoWrite", tool_input={})
    return written


def marks(punchlist: Cli) -> dict[str, str | None]:
    items = json.loads(punchlist("todos", "--json").stdout)["items"]
    return {item["title"]: item.get("mark") for item in items}


@pytest.mark.spec("V1", "V4")
def test_calls_that_a_hook_reports_are_the_evidence_of_the_item_in_progress(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    hook("prompt", prompt="Do both")
    with WireClient(project, environment) as client:
        write(client, hook, A="in_progress", B="pending")
        hook("tool", tool_name="Edit", tool_input={"file_path": "a.py", "old_string": "x", "new_string": "y"})
        hook("tool", tool_name="Bash", tool_input={"command": "pytest -q"}, tool_response={"exit_code": 1})
        write(client, hook, A="completed", B="in_progress")
        write(client, hook, A="completed", B="completed")
    assert marks(punchlist) == {"A": "evidenced", "B": "claimed"}
    items = json.loads(punchlist("todos", "--json").stdout)["items"]
    assert items[0]["evidence"] == [{"tool": "Edit", "summary": "a.py", "changed": "a.py"}], "a failed call is none"
    asked = hook("stop")
    assert asked["decision"] == "block"
    assert "You marked “B” as completed, but no tool call has succeeded" in asked["reason"]
    assert "“A”" not in asked["reason"]
    assert hook("stop") == {}, "it is asked once"
    assert marks(punchlist)["B"] == "claimed"


@pytest.mark.spec("V1")
def test_a_list_that_was_never_worked_on_is_questioned_although_nothing_is_open(
    project: Path, environment: dict[str, str], hook: Hook
) -> None:
    with WireClient(project, environment) as client:
        write(client, hook)
        hook("prompt", prompt="Do it")
        write(client, hook, Everything="completed")
    assert "“Everything”" in hook("stop")["reason"]
    hook("tool", tool_name="Read", tool_input={"file_path": "a.py"})
    assert hook("stop") == {}


@pytest.mark.spec("V1")
def test_todos_of_a_plan_get_their_evidence_too(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    hook("prompt", prompt="Do both")
    with WireClient(project, environment) as client:
        made = client.call("create_todo", items=[{"title": "First"}, {"title": "Second"}])
        first, second = (item["id"] for item in made["structuredContent"]["created"])
        client.call("start_todo", todoId=first)
        hook("tool", tool_name="Bash", tool_input={"command": "deploy --token=ghp_" + "a" * 36})
        for id in (first, second):
            client.call("complete_todo", todoId=id, outcome="Done")
            hook("tool", tool_name="mcp__punchlist__complete_todo", tool_input={})
    assert marks(punchlist) == {"First": "evidenced", "Second": "claimed"}
    assert "ghp_" not in punchlist("todos", "--json").stdout
    assert "“Second”" in hook("stop")["reason"]
    assert hook("stop") == {}


@pytest.mark.spec("V1")
def test_nothing_is_questioned_where_calls_are_invisible(
    project: Path, environment: dict[str, str], hook: Hook
) -> None:
    hook("prompt", prompt="Do it")
    with WireClient(project, environment) as client:
        client.call("TodoWrite", todos=[{"content": "A", "activeForm": "A", "status": "completed"}])
    assert hook("stop") == {}


def test_a_journal_stays_small_and_skips_what_it_cannot_read(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path, "s1")
    journal.add_list("2026-01-01T00:00:00.000Z")
    for number in range(3_000):
        journal.add_call(ReportedCall(f"2026-01-02T00:00:00.{number:06}Z", "Bash", f"make {number}" + "x" * 100))
    (file,) = (tmp_path / "calls").iterdir()
    assert file.stat().st_size < MAX_SIZE + 1_000
    with file.open("ab") as out:
        out.write(b'{"at": 5}\n[1]\n{"claimed": 3}\nnot JSON\n\xff\n{"claimed": ["a", "b"]}\n{"questioned": ["b"]}\n')
    read = journal.read()
    assert read.calls[-1].summary.startswith("make 2999")
    assert (set(read.claimed), set(read.questioned)) == ({"a"}, {"b"})


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_journal_that_is_no_regular_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    journal = CallJournal(tmp_path, "s1")
    journal.add_list("now")
    (file,) = (tmp_path / "calls").iterdir()
    file.unlink()
    target = tmp_path / "other"
    target.write_text("precious")
    if kind == "link":
        file.symlink_to(target)
    else:
        file.mkdir()
    journal.add_list("now")
    assert journal.read().since == ""
    assert target.read_text() == "precious"


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ({"exit_code": 2}, True),
        ({"exitCode": 0}, False),
        ({"error": "no such file"}, True),
        ({"is_error": True}, True),
        ({"success": False}, True),
        ({"stdout": "ok"}, False),
        ("error", False),
        (None, False),
    ],
)
def test_a_failed_call_is_recognised(response: Any, failed: bool) -> None:
    assert has_failed(response) is failed


@pytest.mark.spec("C5", "X2")
def test_new_work_is_progress_and_repeated_calls_are_none(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    def edits(new: str) -> None:
        arguments = {"file_path": "a.py", "old_string": "x", "new_string": new}
        assert hook("tool", tool_name="Edit", tool_input=arguments) == {}

    hook("prompt", prompt="Do it.")
    with WireClient(project, environment) as client:
        client.call("create_todo", items=[{"title": "Long work"}])
    for number in range(6):
        edits(f"Version {number}")
        assert "“Long work”" in hook("stop")["reason"]
    for _ in range(2):
        edits("Version 5")
        assert hook("stop")["decision"] == "block"
    edits("Version 5")
    assert "Ended as stalled" in hook("stop")["systemMessage"]
    # What was done for an earlier request counts again for the next one.
    hook("prompt", prompt="Go on.")
    with WireClient(project, environment) as client:
        client.call("create_todo", items=[{"title": "More"}])
    for number in range(4):
        edits(f"Version {number}")
        assert "“More”" in hook("stop")["reason"]


@pytest.mark.spec("V1")
def test_one_call_proves_one_item_and_none_that_was_added_after_it(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    names = [f"W{number}" for number in range(4)]
    hook("prompt", prompt="Do all")
    with WireClient(project, environment) as client:
        hook("tool", tool_name="Read", tool_input={"file_path": "a.py"})
        write(client, hook, **dict.fromkeys(names, "pending"))
        hook("tool", tool_name="Bash", tool_input={"command": "ls"})
        hook("tool", tool_name="Bash", tool_input={"command": "ls"})
        hook("tool", tool_name="Bash", tool_input={"command": "make"})
        write(client, hook, **dict.fromkeys(names, "completed"))
    assert marks(punchlist) == {"W0": "evidenced", "W1": "evidenced", "W2": "claimed", "W3": "claimed"}
    asked = hook("stop")["reason"]
    assert "You marked “W2”, “W3” as completed" in asked
    assert hook("stop") == {}, "they are asked about once"
    assert marks(punchlist)["W2"] == "claimed"


@pytest.mark.spec("V1")
def test_a_call_from_before_a_todo_was_planned_is_no_evidence(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    punchlist("todos", "add", "Other")
    hook("prompt", prompt="Do it")
    hook("tool", tool_name="Bash", tool_input={"command": "ls"})
    with WireClient(project, environment) as client:
        (made,) = client.call("create_todo", items=[{"title": "Deploy"}])["structuredContent"]["created"]
        client.call("complete_todo", todoId=made["id"], outcome="Done")
        hook("tool", tool_name="mcp__punchlist__complete_todo", tool_input={})
        assert marks(punchlist)["Deploy"] == "claimed"
        client.call("create_todo", items=[{"title": "Next"}])
    assert "“Deploy”" in hook("stop")["reason"]
