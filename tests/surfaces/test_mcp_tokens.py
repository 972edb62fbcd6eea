"""`punchlist token` and the server that accepts its tokens, as processes (X11, TRUST 24, 25, 26, 29)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.mcp_http import HttpClient, HttpServer

from punchlist.config import load
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
from punchlist.tokens.service import AccessTokens
from punchlist.trust import Trust

pytestmark = pytest.mark.spec("X11")

PLANNER = {"TodoWrite", "create_todo", "list_todo", "start_todo", "complete_todo", "wait_todo"}
CLAIMS = {"claim_todo", "renew_claim", "release_claim"}
LEAD = {
    *("mission_todo_create", "mission_todo_update", "mission_todo_complete", "mission_todo_list"),
    *("mission_read", "mission_control", "mission_recommendation_decide"),
}
LEAD_ONLY = {"mission_todo_complete", "mission_control", "mission_recommendation_decide"}
TOOLS = {
    "person": PLANNER | CLAIMS | LEAD,
    "supervisor": PLANNER | CLAIMS,
    "lead": PLANNER | CLAIMS | LEAD,
    "owner": PLANNER | CLAIMS | LEAD - LEAD_ONLY | {"mission_todo_report", "mission_recommend"},
    "worker": {"TodoWrite"},
    "viewer": {"list_todo", "mission_todo_list", "mission_read"},
}


def create(punchlist: Cli, name: str, role: str, *more: str) -> dict[str, Any]:
    done = punchlist("token", "create", name, "--role", role, "--json", *more)
    assert done.returncode == 0, done.stderr
    created: dict[str, Any] = json.loads(done.stdout)
    return created


def tool_names(client: HttpClient) -> set[str]:
    status, answer = client.stateless("tools/list")
    assert status == 200, answer
    return {tool["name"] for tool in answer["result"]["tools"]}


def test_each_token_has_the_tools_of_its_role_and_no_others(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    """TRUST 25."""
    tokens = {role: create(punchlist, f"the-{role}", role)["token"] for role in TOOLS}
    every_tool = set().union(*TOOLS.values())
    with HttpServer(project, environment) as server:
        assert server.token == "one of 6 (punchlist token list)"
        for role, token in tokens.items():
            client = server.client(token)
            assert tool_names(client) == TOOLS[role], role
            for tool in every_tool - TOOLS[role]:
                status, answer = client.stateless("tools/call", {"name": tool, "arguments": {}})
                assert (status, answer["result"]["isError"]) == (200, True)
                assert f"There is no tool '{tool}'" in answer["result"]["content"][0]["text"]


def test_a_viewer_reads_everything_and_changes_nothing(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    viewer, supervisor = (create(punchlist, role, role)["token"] for role in ("viewer", "supervisor"))
    with HttpServer(project, environment) as server:
        reader, writer = server.client(viewer), server.client(supervisor)
        reader.begin()
        writer.begin()
        before = Path(project / ".punchlist/punchlist.db").read_bytes()
        told = reader.call("list_todo")
        assert told["isError"]
        assert "no open turn" in told["content"][0]["text"]
        assert Path(project / ".punchlist/punchlist.db").read_bytes() == before
        assert not writer.call("create_todo", items=[{"title": "Build"}])["isError"]
        assert reader.call("list_todo")["structuredContent"]["summary"]["pending"] == 1
        uris = [one["uri"] for one in reader.ask("resources/list")["result"]["resources"]]
        assert uris == ["punchlist://checklist", "punchlist://plan"]
        assert reader.ask("prompts/list")["result"]["prompts"] == []
    log = punchlist("log", "--json").stdout
    assert "supervisor:supervisor" in log
    assert "viewer:" not in log


def test_a_revoked_token_ends_at_once_also_in_an_open_session(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    revoked, kept = create(punchlist, "laptop", "supervisor"), create(punchlist, "ci", "supervisor")
    with HttpServer(project, environment) as server:
        client, other = server.client(revoked["token"]), server.client(kept["token"])
        client.begin()
        other.begin()
        assert client.ask("ping")["result"] == {}
        # Another's session is refused (TRUST 26).
        assert other.post(other.request("ping"), Mcp_Session_Id=client.session)[0] == 404
        assert punchlist("token", "revoke", "laptop").returncode == 0
        assert client.post(client.request("ping"))[0] == 401
        assert client.stateless("tools/list")[0] == 401
        assert client.send("DELETE")[0] == 401
        assert other.ask("ping")["result"] == {}
        # A token that is created while the server runs works at once.
        assert tool_names(server.client(create(punchlist, "laptop", "worker")["token"])) == {"TodoWrite"}


def test_a_stream_ends_before_it_says_more_with_a_revoked_token(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    revoked, kept = create(punchlist, "laptop", "viewer"), create(punchlist, "ci", "supervisor")
    with HttpServer(project, environment) as server:
        client, writer = server.client(revoked["token"]), server.client(kept["token"])
        client.begin()
        writer.begin()
        client.ask("resources/subscribe", {"uri": "punchlist://checklist"})
        item = {"content": "A", "activeForm": "Doing A", "status": "pending"}
        with client.open("GET", None, client.headers(Accept="text/event-stream")) as response:
            assert response.status == 200
            assert punchlist("token", "revoke", "laptop").returncode == 0
            writer.call("TodoWrite", todos=[item])
            assert b"data:" not in response.read()


def test_an_expired_token_is_refused(punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
    """TRUST 24."""
    trust = Trust.of_user(environment)
    store = open_store(
        load(environment=environment, cwd=project).database, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    person = Scope("default", Actor(Role.PERSON, "ada"))
    expired = AccessTokens(store, trust.sign).create(person, "old", Role.SUPERVISOR, timedelta(days=1)).text
    store.close()
    assert [one["validity"] for one in json.loads(punchlist("token", "list", "--json").stdout)] == ["expired"]
    with HttpServer(project, environment) as server:
        assert server.client(expired).stateless("tools/list")[0] == 401
        assert server.client().stateless("tools/list")[0] == 200


def test_a_token_of_another_database_is_refused(
    punchlist: Cli, project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = {"PUNCHLIST_DATABASE_URL": str(tmp_path / "other.db")}
    done = punchlist("token", "create", "ci", "--role", "lead", env=elsewhere)
    with HttpServer(project, environment) as server:
        assert server.client(done.stdout.strip()).stateless("tools/list")[0] == 401


def test_the_command_line_shows_a_token_once_and_stores_only_its_hash(punchlist: Cli, project: Path) -> None:
    """TRUST 29."""
    done = punchlist("token", "create", "ci", "--role", "worker", "--expires", "30d")
    token = done.stdout.strip()
    assert token.startswith("punchlist_")
    assert "Token ci for the role worker, valid until " in done.stderr
    assert token not in done.stderr
    listed = punchlist("token", "list")
    assert listed.stdout.split()[:3] == ["ci", "worker", "valid"]
    everything = [listed.stdout, punchlist("log", "--json").stdout, punchlist("token", "--json").stdout]
    assert all(token.split("_", 2)[2] not in text for text in everything)
    for file in (project / ".punchlist").rglob("*"):
        assert not file.is_file() or token.split("_", 2)[2].encode() not in file.read_bytes()
    assert "Revoked ci" in punchlist("token", "revoke", "ci").stdout
    assert punchlist("token", "revoke", "ci").returncode == 1
    assert "no tokens" not in punchlist("token", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a b", "--role", "worker"], "name: must be 1 to 50"),
        (["ci", "--role", "system"], "is not one of"),
        (["ci"], "Missing option '--role'"),
        (["ci", "--role", "lead", "--expires", "soon"], "expires: must be a time such as"),
    ],
)
def test_a_wrong_token_command_changes_nothing(punchlist: Cli, arguments: list[str], problem: str) -> None:
    done = punchlist("token", "create", *arguments)
    assert done.returncode != 0
    assert problem in done.stderr
    assert "There are no tokens." in punchlist("token", "list").stdout


@pytest.mark.parametrize("line", [["create", "mine", "--role", "person"], ["revoke", "ci"]])
def test_an_agent_cannot_make_itself_a_token(punchlist: Cli, line: list[str]) -> None:
    """TRUST 37."""
    create(punchlist, "ci", "worker")
    done = punchlist("token", *line, env={"PUNCHLIST_CALL": "call-1"})
    assert done.returncode != 0
    assert f"`punchlist token {line[0]}` is for you, not for an agent" in done.stderr
    listed = json.loads(punchlist("token", "--json").stdout)
    assert [(one["name"], one["validity"]) for one in listed] == [("ci", "valid")]


def test_a_start_token_from_the_environment_works_beside_named_ones(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    named = create(punchlist, "ci", "worker")["token"]
    start = "0123456789abcdef-start"
    with HttpServer(project, {**environment, "PUNCHLIST_MCP_TOKEN": start}, "--role", "viewer") as server:
        assert server.token == "from PUNCHLIST_MCP_TOKEN"
        assert tool_names(server.client(start)) == TOOLS["viewer"]
        assert tool_names(server.client(named)) == TOOLS["worker"]
