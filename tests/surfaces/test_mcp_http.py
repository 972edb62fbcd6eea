"""`punchlist mcp --http` as a real process: who is let in, both protocol eras, sessions, streams, bad input (X1)."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from starlette.testclient import TestClient
from tests.conftest import Cli
from tests.surfaces.mcp_http import ACCEPT, STATELESS, HttpClient, HttpServer, events
from tests.surfaces.test_mcp_fuzz import _line as fuzzed

from punchlist.app import Services
from punchlist.config import load
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope
from punchlist.surfaces.http.limits import MAX_SESSIONS, SESSION_IDLE_SECONDS
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.http import McpEndpoint
from punchlist.surfaces.mcp.http_server import application

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ITEMS = [{"content": "A", "activeForm": "Doing A", "status": "pending"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for all tests that leave nothing behind."""
    folder = tmp_path_factory.mktemp("http")
    (folder / ".git").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PUNCHLIST_")}
    with HttpServer(folder, {**kept, "HOME": str(folder)}) as started:
        yield started


@pytest.fixture
def client(server: HttpServer) -> HttpClient:
    begun = server.client()
    begun.begin()
    return begun


# --- nobody in (TRUST 24 to 26) ----------------------------------------------------------------------

STRANGERS: list[tuple[int, dict[str, str | None]]] = [
    (400, {"Host": None}),
    (403, {"Host": ""}),
    (403, {"Host": "evil.example.com"}),
    (403, {"Host": "localhost.evil.example.com"}),
    (403, {"Host": "localhost@evil.example.com"}),
    (403, {"Host": "evil.example.com#localhost"}),
    (403, {"Host": "127.0.0.1:99999"}),
    (403, {"Host": "[::1"}),
    (403, {"Host": "0.0.0.0"}),
    (403, {"Host": "[::1].evil.example.com"}),
    (403, {"Host": "[::1]evil.example.com:80"}),
    (403, {"Host": "[::1]:80:80"}),
    (403, {"Host": "[::1]:"}),
    (403, {"Host": "[::1%eth0]"}),
    (403, {"Host": "::1"}),
    (403, {"Host": "localhost:80.evil.example.com"}),
    (403, {"Host": "localhost/.evil.example.com"}),
    (403, {"Host": "localhost?.evil.example.com"}),
    (403, {"Host": "localhost\\.evil.example.com"}),
    (403, {"Host": "localhost\t.evil.example.com"}),
    (403, {"Host": "localhost, evil.example.com"}),
    (403, {"Host": "//localhost"}),
    (403, {"Origin": "http://[::1].evil.example.com"}),
    (403, {"Origin": "http://localhost:80.evil.example.com"}),
    (403, {"Origin": "http:localhost"}),
    (403, {"Origin": "http:///localhost"}),
    (403, {"Origin": "http://localhost http://evil.example.com"}),
    (403, {"Origin": "null"}),
    (403, {"Origin": ""}),
    (403, {"Origin": "http://evil.example.com"}),
    (403, {"Origin": "http://localhost.evil.example.com"}),
    (403, {"Origin": "file://"}),
    (403, {"Origin": "chrome-extension://localhost"}),
    (403, {"Origin": "http://user@localhost"}),
    (403, {"Origin": "http://localhost/path"}),
    (401, {"Authorization": None}),
    (401, {"Authorization": ""}),
    (401, {"Authorization": "Bearer"}),
    (401, {"Authorization": "Bearer wrong"}),
    (401, {"Authorization": "Basic dXNlcjpwYXNz"}),
    (401, {"Authorization": "Bearer é"}),
]


@pytest.mark.spec("X1")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "PUT"])
def test_a_stranger_is_refused_whatever_it_asks(client: HttpClient, method: str) -> None:
    body = json.dumps(PING).encode() if method == "POST" else None
    for status, changes in STRANGERS:
        told = client.send(method, body, **changes)
        assert told[0] == status, changes
        assert b"punchlist" not in told[1].lower()
    # The session that they named is still there.
    assert client.ask("ping")["result"] == {}


@pytest.mark.spec("X1")
def test_a_header_that_is_there_twice_is_refused(client: HttpClient) -> None:
    for name, value in (("host", "localhost"), ("origin", "http://localhost"), ("authorization", "Bearer x")):
        headers = {**client.headers(Origin="http://localhost"), name: value}
        with client.open("POST", json.dumps(PING).encode(), headers) as response:
            assert response.status in (400, 401, 403)


@pytest.mark.spec("X1")
def test_our_own_names_are_let_in(client: HttpClient) -> None:
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:8421"):
        assert client.post(PING, Host=name, Origin=f"http://{name}")[0] == 200
    assert client.post(PING, Authorization=f"bearer   {client.token}")[0] == 200


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (415, {"Content_Type": "text/plain"}),
        (415, {"Content_Type": None}),
        (415, {"Content_Type": "application/x-www-form-urlencoded"}),
        (415, {"Content_Type": "application/json; charset=utf-16"}),
        (415, {"Content_Encoding": "gzip"}),
        (406, {"Accept": "application/json"}),
        (406, {"Accept": "text/event-stream"}),
        (406, {"Accept": None}),
        (400, {"MCP_Protocol_Version": "1999-01-01"}),
        (400, {"Mcp_Session_Id": None}),
        (404, {"Mcp_Session_Id": "guessed"}),
        (404, {"Mcp_Session_Id": ""}),
        (200, {"Accept": "*/*"}),
        (200, {"Content_Type": "application/json; charset=UTF-8"}),
        (200, {"MCP_Protocol_Version": "2025-06-18"}),
    ],
)
def test_a_request_says_what_it_is(client: HttpClient, status: int, changes: dict[str, str | None]) -> None:
    assert client.post(PING, **changes)[0] == status


@pytest.fixture
def two_roles(project: Path, environment: dict[str, str]) -> Iterator[Roles]:
    """One endpoint, two tokens: a supervisor's and a worker's; and a clock to turn."""
    desk = Services(load(environment=environment, cwd=project))
    clock = [0.0]
    tokens = {
        f"{role}-token-1234567890": Capabilities(desk, MissionScope("default", Actor(role, "mcp"), None, None))
        for role in (Role.SUPERVISOR, Role.WORKER)
    }
    app = application(McpEndpoint(tokens, clock=lambda: clock[0]))
    with TestClient(app, base_url="http://localhost") as http:
        yield Roles(http, clock)
    desk.store.close()


class Roles:
    def __init__(self, http: TestClient, clock: list[float]) -> None:
        self.http = http
        self.clock = clock

    def post(self, role: str, message: Any, **headers: str) -> Any:
        given = {"Authorization": f"Bearer {role}-token-1234567890", "Accept": ACCEPT}
        return self.http.post("/mcp", json=message, headers={**given, **headers})

    def begin(self, role: str) -> str:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        begun = self.post(role, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        session: str = begun.headers["mcp-session-id"]
        return session


@pytest.mark.spec("X1")
def test_a_token_opens_its_own_role_and_its_own_sessions_only(two_roles: Roles) -> None:
    supervisors, workers = two_roles.begin("supervisor"), two_roles.begin("worker")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = two_roles.post("worker", listing, **{"Mcp-Session-Id": workers}).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["TodoWrite"]
    # Another's session is not there, to read, to listen to or to end.
    assert two_roles.post("worker", listing, **{"Mcp-Session-Id": supervisors}).status_code == 404
    stranger = {"Authorization": "Bearer worker-token-1234567890", "Accept": ACCEPT, "Mcp-Session-Id": supervisors}
    assert two_roles.http.get("/mcp", headers=stranger).status_code == 404
    assert two_roles.http.delete("/mcp", headers=stranger).status_code == 404
    assert two_roles.post("supervisor", listing, **{"Mcp-Session-Id": supervisors}).status_code == 200


@pytest.mark.spec("X1")
def test_a_session_that_was_not_used_for_long_is_gone(two_roles: Roles) -> None:
    used, idle = two_roles.begin("supervisor"), two_roles.begin("supervisor")
    two_roles.clock[0] = SESSION_IDLE_SECONDS - 1
    assert two_roles.post("supervisor", PING, **{"Mcp-Session-Id": used}).status_code == 200
    two_roles.clock[0] = SESSION_IDLE_SECONDS + 1
    assert two_roles.post("supervisor", PING, **{"Mcp-Session-Id": idle}).status_code == 404
    assert two_roles.post("supervisor", PING, **{"Mcp-Session-Id": used}).status_code == 200
    for _ in range(MAX_SESSIONS):
        two_roles.begin("supervisor")
    assert two_roles.post("supervisor", PING, **{"Mcp-Session-Id": used}).status_code == 404


# --- both eras ---------------------------------------------------------------------------------------


@pytest.mark.spec("X1")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_an_sdk_client_works_over_http(server: HttpServer, mode: Any) -> None:
    async def talk() -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with create_mcp_http_client(headers) as http:
            transport = streamable_http_client(server.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                result = await client.call_tool("TodoWrite", {"todos": ITEMS})
                assert result.content[0].text.startswith("[ ] A")  # type: ignore[union-attr]
                resource = await client.read_resource("punchlist://checklist")
                assert json.loads(resource.contents[0].text)["progress"]["total"] == 1  # type: ignore[union-attr]
                assert "> [ ] A" in (await client.get_prompt("continue")).messages[0].content.text  # type: ignore[union-attr]
                assert len((await client.list_tools()).tools) == 9

    anyio.run(talk)


@pytest.mark.spec("X1")
def test_a_stateless_request_says_the_same_in_headers_and_body(server: HttpServer) -> None:
    client = server.client()
    assert client.stateless("server/discover")[1]["result"]["supportedVersions"] == ["2026-07-28"]
    call = {"name": "list_todo", "arguments": {}}
    assert client.stateless("tools/call", call)[0] == 200
    assert client.stateless("tools/call", call, Mcp_Name="=?base64?bGlzdF90b2Rv?=")[0] == 200
    wrong: list[dict[str, str | None]] = [
        {"MCP_Protocol_Version": None},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"Mcp_Method": None},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": None},
        {"Mcp_Name": "TodoWrite"},
        {"Mcp_Name": "=?base64?!?="},
    ]
    for changes in wrong:
        status, answer = client.stateless("tools/call", call, **changes)
        assert (status, answer["error"]["code"]) == (400, -32020), changes
    for method in ("initialize", "ping", "resources/subscribe", "nothing"):
        status, answer = client.stateless(method)
        assert (status, answer["error"]["code"]) == (404, -32601)
    for method in ("GET", "DELETE"):
        assert client.send(method, MCP_Protocol_Version="2026-07-28")[0] == 405
    unknown = {**STATELESS, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    status, answer = client.stateless("tools/list", {"_meta": unknown}, MCP_Protocol_Version="2030-01-01")
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert client.stateless("tools/list", {"_meta": {}})[1]["error"]["code"] == -32602


@pytest.mark.spec("X1")
def test_two_sessions_never_hold_the_same_todo(project: Path, environment: dict[str, str], punchlist: Cli) -> None:
    with HttpServer(project, environment) as server:
        one, two = server.client(), server.client()
        one.begin()
        two.begin()
        one.call("create_todo", items=[{"title": "A"}, {"title": "B"}])
        first, second = (each.call("claim_todo")["structuredContent"] for each in (one, two))
        assert [first["todo"]["title"], second["todo"]["title"]] == ["A", "B"]
        theirs = {"todoId": second["todo"]["id"], "fence": second["fence"]}
        assert "Only its holder" in one.call("release_claim", **theirs)["content"][0]["text"]
        assert str(one.session) not in str(one.call("list_todo"))
        # What another process changes is told on the stream of whoever has subscribed.
        one.ask("resources/subscribe", {"uri": "punchlist://plan"})
        with one.open("GET", None, one.headers()) as response:
            assert one.send("GET")[0] == 409
            punchlist("todos", "add", "from outside")
            assert next(events(response))["params"] == {"uri": "punchlist://plan"}
        meta = {"notifications": {"resourceSubscriptions": ["punchlist://plan", "x"]}, "_meta": STATELESS}
        listen = json.dumps(two.request("subscriptions/listen", meta)).encode()
        told = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "subscriptions/listen", "Mcp_Session_Id": None}
        with two.open("POST", listen, two.headers(**told)) as response:
            stream = events(response)
            assert next(stream)["params"]["notifications"] == {"resourceSubscriptions": ["punchlist://plan"]}
            punchlist("todos", "add", "once more")
            assert next(stream)["method"] == "notifications/resources/updated"
        # A session that is ended is gone, and its stream with it.
        with two.open("GET", None, two.headers()) as response:
            assert two.send("DELETE")[0] == 204
            assert list(events(response)) == []
        assert two.post(PING)[0] == 404
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.communicate(timeout=20) == ("", "")


# --- how it is started -------------------------------------------------------------------------------


@pytest.mark.spec("X1")
def test_a_token_given_by_the_environment_is_taken_and_never_shown(project: Path, environment: dict[str, str]) -> None:
    token = "the-token-of-the-environment"
    with HttpServer(project, {**environment, "PUNCHLIST_MCP_TOKEN": token}) as server:
        assert server.token == "from PUNCHLIST_MCP_TOKEN"
        assert server.client(token).stateless("tools/list")[0] == 200
        assert server.client().stateless("tools/list")[0] == 401
        server.process.send_signal(signal.SIGINT)
        assert server.process.communicate(timeout=20) == ("", "")
        assert server.process.returncode == 130


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (["--host", "0.0.0.0"], {}, "must be one address"),
        (["--host", "::"], {}, "must be one address"),
        (["--host", "192.0.2.1"], {}, "Cannot listen on 192.0.2.1"),
        ([], {"PUNCHLIST_MCP_TOKEN": "short"}, "PUNCHLIST_MCP_TOKEN: must be 16 to 512"),
        ([], {"PUNCHLIST_MCP_TOKEN": "with blanks in between them"}, "PUNCHLIST_MCP_TOKEN: must be 16 to 512"),
        (["--for", "codex"], {}, "is for a server that the agent starts for itself"),
    ],
)
def test_what_cannot_be_served_is_said(
    punchlist: Cli, arguments: list[str], variables: dict[str, str], message: str
) -> None:
    done = punchlist("mcp", "--http", "--port", "0", *arguments, env=variables)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert variables.get("PUNCHLIST_MCP_TOKEN", "no token") not in done.stderr


# --- bad input ---------------------------------------------------------------------------------------


@pytest.mark.spec("X1")
def test_random_bodies_neither_crash_nor_hang_the_server(client: HttpClient) -> None:
    rng = random.Random(20261116)
    for number in range(300):
        stateless = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "x"}
        # Whoever listens is answered with a stream that has no end.
        body = fuzzed(rng).replace(b"subscriptions/listen", b"subscriptions")
        status, _ = client.send("POST", body, **(stateless if number % 3 == 0 else {}))
        assert status in (200, 202, 400, 404), body[:200]
    assert client.ask("ping")["result"] == {}


@pytest.mark.spec("X1")
@pytest.mark.parametrize("length", ["Content-Length: 20000000", "Transfer-Encoding: chunked"])
def test_a_body_that_is_too_long_is_refused_before_it_has_arrived(client: HttpClient, length: str) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as wire:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.headers().items())
        wire.sendall(f"POST /mcp HTTP/1.1\r\n{head}{length}\r\n\r\n".encode())
        try:
            for _ in range(17 if "chunked" in length else 0):
                wire.sendall(b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20)))
            told = wire.recv(1000)
        except ConnectionError:
            # It has hung up on us, which says the same.
            told = b"HTTP/1.1 413"
        assert told.startswith(b"HTTP/1.1 413")
    assert client.ask("ping")["result"] == {}


@pytest.mark.spec("X1")
def test_half_requests_and_lost_clients_block_nobody(client: HttpClient) -> None:
    wires = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(20)]
    for number, wire in enumerate(wires):
        wire.sendall(b"POST /mcp HTTP/1.1\r\n"[: number + 2] if number % 2 else b"\x00\xff\r\n\r\n")
    assert client.ask("ping")["result"] == {}
    for wire in wires:
        wire.close()
    assert client.ask("ping")["result"] == {}


def test_only_standard_streams_need_no_http(project: Path, environment: dict[str, str]) -> None:
    """What HTTP needs is not loaded for the server that an agent waits for (adr/0004)."""
    loaded = (
        "import sys, punchlist.surfaces.mcp.stdio; print([m for m in ('starlette', 'uvicorn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"
