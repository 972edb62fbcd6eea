"""`punchlist mcp` as a real process, spoken to by the official SDK's client in both protocol eras."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.conftest import ROOT, Cli
from tests.surfaces.mcp_client import WireClient

TOOLS = ["TodoWrite", "create_todo", "list_todo", "start_todo", "wait_todo", "complete_todo"]
TOOLS += ["claim_todo", "renew_claim", "release_claim"]
ITEMS = [
    {"content": "A", "activeForm": "Doing A", "status": "completed"},
    {"content": "B", "activeForm": "Doing B", "status": "in_progress"},
    {"content": "C", "activeForm": "Doing C", "status": "pending"},
]

Talk = Callable[[Client], Awaitable[None]]
Converse = Callable[[Talk], None]


@pytest.fixture(params=["legacy", "2026-07-28", "auto"])
def converse(request: pytest.FixtureRequest, project: Path, environment: dict[str, str]) -> Converse:
    """Let the SDK's client talk to the server; each test does so once in every era."""

    def run(talk: Talk) -> None:
        async def connected() -> None:
            server = StdioServerParameters(
                command=sys.executable, args=["-m", "punchlist", "mcp"], cwd=project, env=environment
            )
            async with Client(server, mode=request.param) as client:
                await talk(client)

        anyio.run(connected)

    return run


@pytest.fixture
def wire(project: Path, environment: dict[str, str]) -> Callable[..., WireClient]:
    return lambda *arguments: WireClient(project, environment, *arguments)


def _data(result: Any) -> Any:
    assert not result.is_error, result.content[0].text
    return result.structured_content


@pytest.mark.spec("W1", "W4")
def test_an_sdk_client_writes_and_reads_a_checklist(converse: Converse) -> None:
    async def talk(client: Client) -> None:
        result = await client.call_tool("TodoWrite", {"todos": ITEMS})
        assert result.content[0].text == "[x] A\n[>] B <- Doing B\n[ ] C\n\n(1/3 completed)"  # type: ignore[union-attr]
        data = _data(result)
        assert data["progress"] == {"completed": 1, "total": 3, "percent": 33}
        resource = await client.read_resource("punchlist://checklist")
        assert json.loads(resource.contents[0].text)["todos"] == data["todos"]  # type: ignore[union-attr]

    converse(talk)


@pytest.mark.spec("T2", "T3", "T4", "T5", "T7")
def test_an_sdk_client_drains_a_plan(converse: Converse) -> None:
    async def talk(client: Client) -> None:
        forged = {"turnId": "x", "conversationId": "y", "agentId": "z"}
        items = [{"title": "second"}, {"title": "first", "order": 1, **forged}]
        created = _data(await client.call_tool("create_todo", {"items": items, **forged}))
        assert created["totalPending"] == 2
        assert [item["order"] for item in created["created"]] == [2, 1]
        listed = _data(await client.call_tool("list_todo", {}))
        assert [item["title"] for item in listed["items"]] == ["first", "second"]
        for left, item in zip((1, 0), listed["items"], strict=True):
            started = _data(await client.call_tool("start_todo", {"todoId": item["id"]}))
            assert (started["status"], started["startedAt"] is not None) == ("in_progress", True)
            ended = _data(await client.call_tool("complete_todo", {"todoId": item["id"], "outcome": "done it"}))
            assert (ended["status"], ended["outcome"], ended["remaining"]) == ("completed", "done it", left)
        plan = json.loads((await client.read_resource("punchlist://plan")).contents[0].text)  # type: ignore[union-attr]
        assert plan["summary"] == {"total": 2, "pending": 0, "inProgress": 0, "completed": 2, "cancelled": 0}

    converse(talk)


def test_results_fit_the_output_schemas_that_are_announced(converse: Converse) -> None:
    """The SDK's client checks structured content against the schema, and raises when it differs."""

    async def talk(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        await client.call_tool("TodoWrite", {"todos": ITEMS})
        created = _data(await client.call_tool("create_todo", {"items": [{"title": "x", "agentType": "coder"}]}))
        todo_id = created["created"][0]["id"]
        await client.call_tool("start_todo", {"todoId": todo_id})
        await client.call_tool("complete_todo", {"todoId": todo_id, "outcome": "o", "status": "failed"})
        await client.call_tool("wait_todo", {"todoId": todo_id, "for": {"person": "Which?"}})
        both = {"title": "X", "blockedBy": [todo_id], "resources": ["a.py"]}
        assert "conflicts" in _data(await client.call_tool("create_todo", {"items": [both, both]}))
        await client.call_tool("list_todo", {})
        await client.call_tool("complete_todo", {"todoId": todo_id, "outcome": "o", "status": "cancelled"})
        claimed = _data(await client.call_tool("claim_todo", {}))
        kept = {"todoId": claimed["todo"]["id"], "fence": claimed["fence"]}
        await client.call_tool("renew_claim", kept)
        assert "claimedBy" in str(_data(await client.call_tool("list_todo", {})))
        await client.call_tool("release_claim", kept)
        await client.call_tool("list_todo", {"status": "all"})

    converse(talk)


@pytest.mark.spec("W1", "W2", "T4")
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("TodoWrite", {"todos": "A"}, "todos: must be an array"),
        ("TodoWrite", {"todos": [ITEMS[1], ITEMS[1]]}, "Only one task can be in_progress at a time"),
        ("TodoWrite", {"todos": [{**ITEMS[0], "status": "wat"}]}, "todos[0].status: must be one of"),
        ("TodoWrite", {"todos": [{**ITEMS[0], "content": "\x1b[31m"}]}, "todos[0].content: must not contain control"),
        ("TodoWrite", {"todos": ITEMS * 7}, "at most 20"),
        ("create_todo", {}, "items: must be an array"),
        ("create_todo", {"items": [{"title": 1}]}, "items[0].title: must be text, got a number"),
        ("list_todo", {"status": "open"}, "status: must be one of pending"),
        ("start_todo", {"todoId": "nope"}, "There is no todo 'nope'"),
        ("complete_todo", {"todoId": "nope"}, "outcome: is required"),
        ("complete_todos", {}, "Did you mean complete_todo?"),
    ],
)
def test_a_bad_call_is_an_error_that_a_model_can_act_on(
    wire: Callable[..., WireClient], tool: str, arguments: dict[str, Any], message: str
) -> None:
    with wire() as client:
        before = client.ask("resources/read", {"uri": "punchlist://checklist"})
        result = client.call(tool, **arguments)
        assert result["isError"]
        assert message in result["content"][0]["text"]
        assert client.ask("resources/read", {"uri": "punchlist://checklist"})["result"] == before["result"]


@pytest.mark.spec("X3")
def test_two_clients_never_hold_the_same_todo_and_a_killed_ones_comes_back(wire: Callable[..., WireClient]) -> None:
    with wire() as one, wire() as two:
        one.call("create_todo", items=[{"title": "A"}, {"title": "B"}])
        first = one.call("claim_todo")["structuredContent"]
        second = two.call("claim_todo")["structuredContent"]
        assert [first["todo"]["title"], second["todo"]["title"]] == ["A", "B"]
        theirs = {"todoId": second["todo"]["id"], "fence": second["fence"]}
        assert "Only its holder" in one.call("release_claim", **theirs)["content"][0]["text"]
        assert (
            "is claimed by supervisor:mcp"
            in one.call("complete_todo", **theirs | {"fence": None}, outcome="mine")["content"][0]["text"]
        )
        one.call("renew_claim", todoId=first["todo"]["id"], fence=1, seconds=1)
        os.kill(one.process.pid, signal.SIGKILL)

        def again() -> Any:
            return two.call("claim_todo")["structuredContent"]

        taken = again()
        until = time.monotonic() + 30
        while taken["todo"] is None:
            assert "No todo is free now: 2 claimed" in taken["next"]
            assert time.monotonic() < until
            taken = again()
        assert (taken["todo"]["title"], taken["fence"]) == ("A", 2)
        late = {"todoId": first["todo"]["id"], "fence": first["fence"], "outcome": "late"}
        assert "Fence 1 is outdated" in two.call("complete_todo", **late)["content"][0]["text"]
        assert not two.call("complete_todo", **late | {"fence": 2})["isError"]
        assert not two.call("complete_todo", **theirs, outcome="done")["isError"]
        assert again() == {"todo": None, "next": "No todo is left to claim."}


@pytest.mark.spec("W6", "T7")
def test_what_was_answered_survives_kill_9(wire: Callable[..., WireClient]) -> None:
    with wire() as client:
        client.call("TodoWrite", todos=ITEMS)
        created = client.call("create_todo", items=[{"title": "go on"}])["structuredContent"]["created"]
        os.kill(client.process.pid, signal.SIGKILL)
    with wire() as client:
        listed = client.call("list_todo")["structuredContent"]["items"]
        assert [item["id"] for item in listed] == [created[0]["id"]]
        todos = json.loads(
            client.ask("resources/read", {"uri": "punchlist://checklist"})["result"]["contents"][0]["text"]
        )["todos"]
        assert [item["content"] for item in todos] == ["A", "B", "C"]


@pytest.mark.spec("T7")
def test_a_turn_ended_by_a_person_is_followed_by_a_new_one(wire: Callable[..., WireClient], punchlist: Cli) -> None:
    with wire() as client:
        client.call("create_todo", items=[{"title": "old"}])
        assert punchlist("sessions", "end").returncode == 0
        assert client.call("list_todo", status="all")["structuredContent"]["summary"]["total"] == 0


def test_sessions_are_apart(wire: Callable[..., WireClient]) -> None:
    with wire("--session", "one") as one, wire("--session", "two") as two:
        one.call("TodoWrite", todos=ITEMS)
        two.call("TodoWrite", todos=ITEMS[2:])
        assert (
            json.loads(one.ask("resources/read", {"uri": "punchlist://checklist"})["result"]["contents"][0]["text"])[
                "progress"
            ]["total"]
            == 3
        )


def test_a_worker_is_offered_no_plan(wire: Callable[..., WireClient]) -> None:
    with wire("--role", "worker") as client:
        assert [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]] == ["TodoWrite"]
        assert "There is no tool" in client.call("create_todo", items=[{"title": "x"}])["content"][0]["text"]
        assert [r["name"] for r in client.ask("resources/list")["result"]["resources"]] == ["checklist"]


def test_a_change_by_another_process_is_announced_to_subscribers(
    wire: Callable[..., WireClient], punchlist: Cli
) -> None:
    with wire() as client:
        client.ask("resources/subscribe", {"uri": "punchlist://checklist"})
        client.ask("ping")
        punchlist("todos", "add", "from outside")
        message = client.read()
        assert message == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "punchlist://checklist"},
        }


def test_a_stateless_client_listens_for_changes(wire: Callable[..., WireClient], punchlist: Cli) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"resourceSubscriptions": ["punchlist://checklist"]}
    with wire() as client:
        request = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen"}
        client.write(json.dumps({**request, "params": {"notifications": wanted, "_meta": meta}}).encode() + b"\n")
        acknowledged = client.read()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == wanted
        punchlist("todos", "add", "from outside")
        update = client.read()
        assert update["params"]["uri"] == "punchlist://checklist"
        assert update["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}


def test_a_database_that_cannot_be_opened_is_told_to_the_model(project: Path, environment: dict[str, str]) -> None:
    (project / ".punchlist").mkdir()
    (project / ".punchlist" / "punchlist.db").write_text("this is no database" * 100)
    with WireClient(project, environment) as client:
        assert len(client.ask("tools/list")["result"]["tools"]) == len(TOOLS)
        result = client.call("TodoWrite", todos=ITEMS)
        assert result["isError"]
        assert "is damaged" in result["content"][0]["text"]


@pytest.mark.spec("W8", "X1")
def test_the_tools_say_when_to_use_them_and_are_cheap_to_read(wire: Callable[..., WireClient]) -> None:
    with wire() as client:
        tools = client.ask("tools/list")["result"]["tools"]
    description = tools[0]["description"]
    assert "three or more steps" in description
    assert "several tasks" in description
    assert "Do not use it for" in description
    # The promise is under 4,000 tokens. An estimate, since tokenizers fetch their tables: counted by hand in November
    # 2026, cl100k, o200k and the old public one for Claude found 2,714 to 2,817 tokens where this says 3,129.
    assert len(json.dumps(tools)) / 4 < 4_000


def test_the_tools_are_as_documented(wire: Callable[..., WireClient]) -> None:
    page = (ROOT / "docs" / "tools.md").read_text()
    with wire() as client:
        for tool in client.ask("tools/list")["result"]["tools"]:
            assert f"## {tool['name']}" in page
            assert json.dumps(tool["inputSchema"], indent=2) in page


def test_only_the_protocol_is_on_stdout_and_the_server_ends_with_its_client(wire: Callable[..., WireClient]) -> None:
    with wire() as client:
        client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
        out, err = client.close()
        assert (out, err, client.process.returncode) == ([], b"", 0)
