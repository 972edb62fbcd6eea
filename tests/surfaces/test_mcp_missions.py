"""A Lead and an owner over MCP, each with a server of its own on stdio, spoken to by the SDK's client."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.conftest import Cli
from tests.contract.missions import BUILD, SLUG, mission_file
from tests.surfaces.mcp_client import WireClient

MISSION = {"missionSlug": SLUG}


@pytest.fixture
def mission(punchlist: Cli, project_database: str) -> None:
    del project_database
    applied = punchlist("mission", "apply", "-", "--yes", input=json.dumps(mission_file()))
    assert applied.returncode == 0, applied.stderr


@pytest.fixture
def server(project: Path, environment: dict[str, str]) -> Callable[..., StdioServerParameters]:
    def parameters(*arguments: str) -> StdioServerParameters:
        command = ["-m", "punchlist", "mcp", "--mission", SLUG, *arguments]
        return StdioServerParameters(command=sys.executable, args=command, cwd=project, env=environment)

    return parameters


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, {**MISSION, **arguments})
    assert not result.is_error, result.content[0].text  # type: ignore[union-attr]
    assert result.structured_content is not None
    content: dict[str, Any] = result.structured_content
    return content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, {**MISSION, **arguments})
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.spec("M8", "M11", "M18", "X1")
@pytest.mark.usefixtures("mission")
def test_an_owner_works_on_what_a_lead_starts_gets_feedback_continues_and_the_lead_completes(
    server: Callable[..., StdioServerParameters],
) -> None:
    async def work() -> None:
        lead_server, owner_server = server("--role", "lead"), server("--role", "owner", "--pillar", BUILD)
        async with Client(lead_server) as lead, Client(owner_server) as owner:
            (mine,) = (await call(owner, "mission_read", what="missions"))["items"]
            assert (mine["slug"], mine["myPillar"], mine["activeTodoLimit"]) == (SLUG, BUILD, 10)
            made = await call(owner, "mission_todo_create", pillarSlug=BUILD, title="Profile", labels=["perf"])
            todo = {"todoId": made["id"]}
            await call(lead, "mission_todo_update", **todo, action="comment", text="Look at the cache first.")
            started = await call(lead, "mission_todo_update", **todo, action="start", reason="It got slower.")

            (found,) = (await call(owner, "mission_todo_list", status="in_progress"))["items"]
            assert found["id"] == made["id"]
            read = await call(owner, "mission_read", what="todo", **todo)
            assert [each["content"] for each in read["comments"]] == ["Look at the cache first."]
            claimed = await call(owner, "claim_todo", list="mission", **todo)
            fence = {"fence": claimed["fence"]}
            await call(owner, "mission_todo_report", **todo, **fence, result="I looked.")
            words = await refusal(owner, "mission_todo_update", **todo, action="feedback", text="Good.")
            assert "may not give feedback" in words

            (report,) = (await call(lead, "mission_read", what="feedback"))["items"]
            assert (report["kind"], report["text"]) == ("report", "I looked.")
            await call(lead, "mission_todo_update", **todo, action="feedback", text="Name the three slowest.")
            *_, last = (await call(owner, "mission_read", what="feedback"))["items"]
            assert (last["kind"], last["todoId"], last["text"]) == ("feedback", made["id"], "Name the three slowest.")
            assert (report["author"].split(":")[0], last["author"].split(":")[0]) == ("owner", "lead")
            await call(owner, "mission_todo_report", **todo, **fence, result="a, b and c.")
            words = await refusal(owner, "mission_todo_complete", **todo, outcome="mine")
            assert "There is no tool 'mission_todo_complete'" in words

            (run,) = (await call(lead, "mission_read", what="runs"))["items"]
            assert (run["id"], run["todoId"]) == (started["runId"], made["id"])
            control = {"runId": run["id"], "reason": "done by hand"}
            assert (await call(lead, "mission_control", action="pause", **control))["wish"] == "pause"
            assert (await call(lead, "mission_control", action="resume", **control))["wish"] is None
            assert (await call(lead, "mission_control", action="stop", **control))["status"] == "stopped"
            done = await call(lead, "mission_todo_complete", **todo, outcome="Three known.")
            assert (done["status"], done["mark"]) == ("completed", "accepted")

    anyio.run(work)


@pytest.mark.spec("M10", "M17", "X1")
@pytest.mark.usefixtures("mission")
def test_members_read_chats_metrics_questions_recommendations_and_directives(
    server: Callable[..., StdioServerParameters], punchlist: Cli
) -> None:
    assert punchlist("mission", "directive", "add", SLUG, "Builds come first").returncode == 0

    async def read() -> None:
        lead_server, owner_server = server("--role", "lead"), server("--role", "owner", "--pillar", BUILD)
        async with Client(lead_server) as lead, Client(owner_server) as owner:
            made = await call(lead, "mission_todo_create", pillarSlug=BUILD, title="A")
            edit = {"todoId": made["id"], "action": "edit", "title": "B", "reason": "clearer"}
            assert "recommendation (number 1)" in await refusal(owner, "mission_todo_update", **edit)
            (open_one,) = (await call(lead, "mission_read", what="recommendations"))["items"]
            assert (open_one["number"], open_one["arguments"]) == (1, {"title": "B"})
            decision = {"number": 1, "decision": "accept", "reason": "yes"}
            await call(lead, "mission_recommendation_decide", **decision)
            assert (await call(owner, "mission_read", what="todo", todoId=made["id"]))["title"] == "B"
            (directive,) = (await call(owner, "mission_read", what="directives"))["items"]
            assert directive["content"] == "Builds come first"
            metrics = (await call(owner, "mission_read", what="metrics"))["items"]
            assert [each["slug"] for each in metrics] == ["local-build-time", "cache-hit-rate"]
            chat = await call(owner, "mission_read", what="chat", limit=1)
            assert "recommends to edit" in chat["items"][0]["content"]
            assert (await call(lead, "mission_read", what="questions"))["items"] == []
            strategy = {"pillarSlug": BUILD, "text": "Cache modules", "reason": "hits are low"}
            await call(lead, "mission_control", action="add_strategy", **strategy)
            strategies = (await call(owner, "mission_read", what="strategies"))["items"]
            assert [each["description"] for each in strategies] == ["Replace slow loaders", "Cache modules"]
            for view in ("feedback", "metrics", "recommendations", f"todos/{made['id']}"):
                resource = await owner.read_resource(f"punchlist://missions/{SLUG}/{view}")
                assert isinstance(json.loads(resource.contents[0].text), dict)  # type: ignore[union-attr]
            words = await refusal(owner, "mission_read", what="metrics", missionSlug="another")
            assert "You act in mission" in words

    anyio.run(read)


@pytest.mark.spec("X1")
@pytest.mark.usefixtures("mission")
@pytest.mark.parametrize("role", ["lead", "owner", "viewer"])
def test_the_tools_of_every_role_are_cheap_to_read(project: Path, environment: dict[str, str], role: str) -> None:
    with WireClient(project, environment, "--role", role) as client:
        tools = client.ask("tools/list")["result"]["tools"]
    names = {tool["name"] for tool in tools}
    assert "mission_read" in names
    assert ("mission_control" in names) == (role == "lead")
    # The estimate of tests/surfaces/test_mcp.py.
    assert len(json.dumps(tools)) / 4 < 4_000
