"""`punchlist mcp --lists`: one kind of list, or both (T13)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.conftest import Hook
from tests.surfaces.mcp_client import WireClient

LISTS = ("plan", "checklist", "both")
CHECK = "grep -q yes fixed.txt"


@pytest.mark.spec("T13", "X1")
@pytest.mark.parametrize(
    ("lists", "offered", "missing"),
    [
        ("plan", {"create_todo", "wait_todo", "claim_todo"}, {"TodoWrite"}),
        ("checklist", {"TodoWrite"}, {"create_todo", "list_todo", "complete_todo", "wait_todo", "claim_todo"}),
        ("both", {"TodoWrite", "create_todo"}, set()),
    ],
)
def test_a_server_offers_the_tools_of_its_lists(
    punchlist: Cli, lists: str, offered: set[str], missing: set[str]
) -> None:
    told, names = greeting(punchlist, "--lists", lists)
    assert offered <= names
    assert not missing & names
    assert not [name for name in missing if name in told]


@pytest.mark.spec("X1", "X11")
@pytest.mark.parametrize("role", ["supervisor", "lead", "owner", "worker", "viewer"])
def test_the_instructions_name_only_tools_that_the_role_has(punchlist: Cli, role: str) -> None:
    told, names = greeting(punchlist, "--role", role)
    named = set(re.findall(r"\b(?:TodoWrite|[a-z]+_todo(?:_[a-z]+)?|mission_[a-z]+)\b", told))
    assert named
    assert named <= names


def greeting(punchlist: Cli, *arguments: str) -> tuple[str, set[str]]:
    """The instructions and the names of the tools."""
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    sent = "\n".join(map(json.dumps, requests)) + "\n"
    served = punchlist("mcp", *arguments, input=sent)
    greeted, listed = map(json.loads, served.stdout.splitlines())
    return greeted["result"]["instructions"], {tool["name"] for tool in listed["result"]["tools"]}


def offered(client: WireClient) -> set[str]:
    return {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}


def end(client: WireClient, reason: str, title: str) -> dict[str, Any]:
    """Do what the stop hook says, with a tool that is offered."""
    if "complete_todo" in reason:
        assert {"complete_todo", "wait_todo"} <= offered(client)
        found = re.search(rf"“{title}” \(id (\w[\w-]*)\)", reason)
        assert found is not None
        return client.call("complete_todo", todoId=found[1], outcome="Fixed")
    assert "mark it completed with TodoWrite" in reason
    assert "TodoWrite" in offered(client)
    return client.call("TodoWrite", todos=[{"content": title, "status": "completed", "activeForm": title}])


@pytest.mark.spec("T13", "X2", "V2")
@pytest.mark.parametrize("lists", LISTS)
@pytest.mark.parametrize("order", ["before all", "after the prompt", "while the server runs", "after a first list"])
def test_an_agent_can_end_what_a_person_added_at_any_time_and_its_check_is_run(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli, lists: str, order: str
) -> None:
    def add() -> None:
        assert punchlist("todos", "add", "Fix it", "--check", CHECK).returncode == 0

    if order == "before all":
        add()
    hook("prompt", prompt="Do it.")
    if order == "after the prompt":
        add()
        assert "“Fix it”" in hook("stop")["reason"]
    with WireClient(project, environment, "--lists", lists) as client:
        offered(client)
        if order == "after a first list":
            write_list(client, lists)
        if order.startswith(("while", "after a")):
            add()
        reason = hook("stop")["reason"]
        refused = end(client, reason, "Fix it")
        assert "grep -q yes" in refused["content"][0]["text"]
        assert "“Fix it”" in hook("stop")["reason"]
        (project / "fixed.txt").write_text("yes")
        assert not end(client, hook("stop")["reason"], "Fix it").get("isError")
    assert hook("stop") == {}
    (shown,) = [one for one in json.loads(punchlist("todos", "--json").stdout)["items"] if one["title"] == "Fix it"]
    assert (shown["status"], shown["mark"]) == ("completed", "checked")


def write_list(client: WireClient, lists: str) -> None:
    """A list of the agent with nothing open."""
    if lists == "checklist":
        client.call("TodoWrite", todos=[{"content": "Own", "status": "completed", "activeForm": "Own"}])
        return
    made = client.call("create_todo", items=[{"title": "Own"}])["structuredContent"]["created"]
    client.call("complete_todo", todoId=made[0]["id"], outcome="Done")


@pytest.mark.spec("T13")
@pytest.mark.parametrize(("lists", "expected"), [("plan", "plan"), ("checklist", "checklist"), ("both", "checklist")])
def test_what_a_person_adds_while_the_server_runs_is_on_the_list_that_it_serves(
    project: Path, environment: dict[str, str], punchlist: Cli, lists: str, expected: str
) -> None:
    with WireClient(project, environment, "--lists", lists) as client:
        offered(client)
        punchlist("todos", "add", "Fix it")
        (added,) = json.loads(punchlist("todos", "--json").stdout)["items"]
        assert added["list"] == expected
    # The server has ended: nothing is known about the next one.
    punchlist("todos", "done", "1")
    punchlist("sessions", "end")
    punchlist("todos", "add", "Another")
    assert json.loads(punchlist("todos", "--json").stdout)["items"][-1]["list"] == "checklist"


@pytest.mark.spec("T13", "X1")
def test_a_client_is_told_when_the_other_list_is_offered_and_when_no_longer(
    project: Path, environment: dict[str, str], punchlist: Cli
) -> None:
    def told(act: Callable[[WireClient], object]) -> bool:
        client._id += 1
        act(client)
        return bool(client.read()["method"] == "notifications/tools/list_changed")

    with WireClient(project, environment, "--lists", "plan") as client:
        greeted = client.ask("initialize", {"protocolVersion": "2025-06-18"})["result"]
        assert greeted["capabilities"]["tools"] == {"listChanged": True}
        assert "TodoWrite" not in offered(client)
        # Another agent of the same session keeps a checklist.
        with WireClient(project, environment, "--lists", "checklist") as other:
            other.call("TodoWrite", todos=[{"content": "A", "status": "pending", "activeForm": "A"}])
        request = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": "list_todo", "arguments": {}}}
        assert told(lambda _: client.write(json.dumps(request).encode() + b"\n"))
        assert "TodoWrite" in offered(client)
        client.call("TodoWrite", todos=[{"content": "A", "status": "completed", "activeForm": "A"}])
        assert "TodoWrite" not in offered(client)
        assert "There is no tool 'TodoWrite'" in client.call("TodoWrite", todos=[])["content"][0]["text"]


@pytest.mark.spec("X2", "V2")
@pytest.mark.parametrize(
    ("agent", "tool", "arguments", "named"),
    [
        (
            "codex",
            "update_plan",
            lambda title, status: {"plan": [{"step": title, "status": status}, {"step": "Own", "status": "pending"}]},
            "mark it completed with update_plan",
        ),
        (
            "claude-code",
            "TodoWrite",
            lambda title, status: {
                "todos": [
                    {"content": text, "status": state, "activeForm": text}
                    for text, state in ((title, status), ("Own", "pending"))
                ]
            },
            "mark it completed with TodoWrite",
        ),
    ],
)
def test_what_a_person_added_is_completed_by_the_same_text_in_the_agents_own_list(
    project: Path, hook: Hook, punchlist: Cli, agent: str, tool: str, arguments: Any, named: str
) -> None:
    punchlist("todos", "add", "Fix it", "--check", CHECK)
    hook("prompt", "--for", agent, prompt="Do it.")
    hook("tool", "--for", agent, tool_name=tool, tool_input=arguments("Fix it", "in_progress"))
    assert named in hook("stop", "--for", agent)["reason"]
    hook("tool", "--for", agent, tool_name=tool, tool_input=arguments("Fix it", "completed"))
    assert "The check of “Fix it” failed" in hook("stop", "--for", agent)["reason"]
    (project / "fixed.txt").write_text("yes")
    hook("tool", "--for", agent, tool_name="Edit", tool_input={"file_path": "fixed.txt"})
    hook("tool", "--for", agent, tool_name=tool, tool_input=arguments("Fix it", "completed"))
    assert "1 item is still open. The next item is: “Own”" in hook("stop", "--for", agent)["reason"]
