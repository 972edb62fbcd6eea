"""A todo that waits for a person's answer: where the client can ask, the person is asked at once (X1, C10)."""

from __future__ import annotations

import json
import queue
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitRequestParams, ElicitResult
from tests.conftest import Cli
from tests.surfaces.mcp_client import WireClient
from tests.surfaces.mcp_http import STATELESS, HttpServer, events

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.elicitation import MAX_PENDING
from punchlist.surfaces.mcp.protocol import ClientConnection

FORMS: dict[str, Any] = {"elicitation": {}}
QUESTION = "Which port?"


@pytest.fixture
def asker(project: Path, environment: dict[str, str]) -> Callable[..., WireClient]:
    """A client of the handshake generation that can ask, with one todo in its plan."""

    def connect(capabilities: dict[str, Any] = FORMS, version: str = "2025-11-25") -> WireClient:
        client = WireClient(project, environment)
        client.ask("initialize", {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {}})
        client.call("create_todo", items=[{"title": "Open the port"}])
        return client

    return connect


def todo_of(client: WireClient) -> dict[str, Any]:
    found: dict[str, Any] = client.call("list_todo")["structuredContent"]["items"][-1]
    return found


def wait(client: WireClient, request_id: Any = "w") -> None:
    """Call wait_todo without waiting for what comes of it."""
    arguments = {"todoId": todo_of(client)["id"], "for": {"person": QUESTION}}
    params = {"name": "wait_todo", "arguments": arguments}
    send(client, {"id": request_id, "method": "tools/call", "params": params})


def send(client: WireClient, message: dict[str, Any]) -> None:
    client.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@pytest.mark.spec("X1", "C10")
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_person_in_front_of_the_client_is_asked_and_the_todo_goes_on(
    project: Path, environment: dict[str, str], punchlist: Cli, mode: Any, over: str
) -> None:
    asked: list[str] = []

    async def person(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "8080"})

    async def talk(server: Any) -> None:
        async with Client(server, mode=mode, elicitation_callback=person) as client:
            created = await client.call_tool("create_todo", {"items": [{"title": "Open the port"}]})
            todo_id = (created.structured_content or {})["created"][0]["id"]
            waited = await client.call_tool("wait_todo", {"todoId": todo_id, "for": {"person": QUESTION}})
            told = waited.structured_content or {}
            assert (told["waitsFor"], told["answers"]) == ([], [{"question": QUESTION, "answer": "8080"}])
            assert told["next"] == "The person has answered. Continue with this item."
            await client.call_tool("start_todo", {"todoId": todo_id})

    async def over_http(server: HttpServer) -> None:
        async with create_mcp_http_client({"Authorization": f"Bearer {server.token}"}) as http:
            await talk(streamable_http_client(server.url, http_client=http))

    if over == "http":
        with HttpServer(project, environment) as started:
            anyio.run(over_http, started)
    else:
        command = ["-m", "punchlist", "mcp"]
        anyio.run(talk, StdioServerParameters(command=sys.executable, args=command, cwd=project, env=environment))
    assert asked == [f"“Open the port” waits for your answer:\n{QUESTION}"]
    assert punchlist("answer").stdout == "No question is open.\n"
    log = [json.loads(line) for line in punchlist("log", "--json").stdout.splitlines()]
    assert [one["actor"] for one in log if one["action"] == "resolve"] == ["person:mcp"]


NO_ANSWERS: list[dict[str, Any]] = [
    {"result": {"action": "decline"}},
    {"result": {"action": "cancel", "content": {"answer": "no"}}},
    {"result": {"action": "accept", "content": {"answer": "  "}}},
    {"result": {"action": "accept", "content": {"answer": 7}}},
    {"result": {"action": "accept"}},
    {"result": {"action": "shrug"}},
    {"result": None},
    {"result": [[]]},
    {"error": {"code": -1, "message": "no"}},
]


@pytest.mark.spec("X1", "C10")
def test_without_an_answer_the_todo_waits_as_if_nobody_had_been_asked(asker: Callable[..., WireClient]) -> None:
    with asker() as client:
        for reply in NO_ANSWERS:
            wait(client)
            asked = client.read()
            assert asked["method"] == "elicitation/create"
            send(client, {"id": "ask-77", **reply})  # Nobody was asked this.
            send(client, {"id": asked["id"], **reply})
            result = client.read()
            told = result["result"]["structuredContent"]
            assert (result["id"], set(told)) == ("w", {"id", "title", "status", "waitsFor"})
            assert told["waitsFor"] == todo_of(client)["waitsFor"] == [f"an answer to “{QUESTION}”"]


@pytest.mark.spec("X1")
def test_a_client_that_shows_no_forms_is_not_asked(asker: Callable[..., WireClient]) -> None:
    unable: list[tuple[dict[str, Any], str]] = [
        ({}, "2025-11-25"),
        ({"elicitation": {"url": {}}}, "2025-11-25"),
        ({"elicitation": 1}, "2025-11-25"),
        (FORMS, "2025-03-26"),
    ]
    with asker() as client:
        for capabilities, version in unable:
            client.ask("initialize", {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {}})
            wait(client)
            assert client.read()["id"] == "w"


@pytest.mark.spec("X1")
def test_the_server_answers_everything_else_while_a_person_thinks(
    asker: Callable[..., WireClient], punchlist: Cli
) -> None:
    with asker({"elicitation": {"form": {}}}) as client:
        wait(client)
        asked = client.read()
        assert client.ask("ping")["result"] == {}
        assert client.call("create_todo", items=[{"title": "Meanwhile"}])["isError"] is False
        # Somebody answers at a terminal; theirs came first, and stands.
        waiting = json.loads(punchlist("answer", "--json").stdout)
        assert punchlist("answer", waiting[0]["id"], "from the terminal").returncode == 0
        send(client, {"id": asked["id"], "result": {"action": "accept", "content": {"answer": "too late"}}})
        told = client.read()["result"]["structuredContent"]
        assert told["answers"] == [{"question": QUESTION, "answer": "from the terminal"}]
        assert "answered already" in told["next"]


@pytest.mark.spec("X1")
def test_a_call_that_is_cancelled_takes_its_question_back(asker: Callable[..., WireClient]) -> None:
    with asker() as client:
        wait(client, request_id=7)
        asked = client.read()
        send(client, {"method": "notifications/cancelled", "params": {"requestId": "7"}})  # Another's id.
        send(client, {"id": "p", "method": "ping"})
        assert client.read()["id"] == "p"
        send(client, {"method": "notifications/cancelled", "params": {"requestId": 7}})
        taken_back = client.read()
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"] == {"requestId": asked["id"]}
        send(client, {"id": asked["id"], "result": {"action": "accept", "content": {"answer": "late"}}})
        assert "waitsFor" in todo_of(client)


@pytest.mark.spec("X1")
def test_a_client_that_never_answers_has_so_many_questions_and_no_more(asker: Callable[..., WireClient]) -> None:
    with asker() as client:
        todo_id = todo_of(client)["id"]
        for number in range(17):
            arguments = {"todoId": todo_id, "for": {"person": f"Question {number}?"}}
            send(
                client, {"id": number, "method": "tools/call", "params": {"name": "wait_todo", "arguments": arguments}}
            )
        came = [client.read() for _ in range(17)]
        assert [one.get("method") for one in came] == ["elicitation/create"] * 16 + [None]
        assert came[-1]["id"] == 16


@pytest.mark.spec("X1")
def test_when_a_persons_time_is_up_the_call_is_answered_and_the_todo_waits_on(
    project: Path, environment: dict[str, str]
) -> None:
    desk = Services(load(environment=environment, cwd=project))
    sent: queue.SimpleQueue[Any] = queue.SimpleQueue()
    capabilities = Capabilities(desk, Scope("default", Actor(Role.SUPERVISOR, "mcp")))
    connection = ClientConnection(capabilities, sent.put, answer_timeout=0.05)

    def ask(method: str, **params: Any) -> Any:
        return connection.answer({"jsonrpc": "2.0", "id": method, "method": method, "params": params})

    ask("initialize", protocolVersion="2025-11-25", capabilities=FORMS)
    created = ask("tools/call", name="create_todo", arguments={"items": [{"title": "Open the port"}]})
    todo_id = created["result"]["structuredContent"]["created"][0]["id"]
    arguments = {"todoId": todo_id, "for": {"person": QUESTION}}
    assert ask("tools/call", name="wait_todo", arguments=arguments) is None
    asked, taken_back, answer = (sent.get(timeout=10) for _ in range(3))
    assert taken_back["params"] == {"requestId": asked["id"]}
    assert answer["result"]["structuredContent"]["waitsFor"] == [f"an answer to “{QUESTION}”"]
    connection.answer({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"answer": "x"}}})
    assert len(desk.plans.open_conditions("default")) == 1
    desk.store.close()


@pytest.mark.spec("X1")
def test_in_a_batch_nobody_is_asked(asker: Callable[..., WireClient]) -> None:
    with asker() as client:
        params = {"name": "wait_todo", "arguments": {"todoId": todo_of(client)["id"], "for": {"person": QUESTION}}}
        batch = [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}]
        client.write(json.dumps(batch).encode() + b"\n")
        assert client.read()[0]["result"]["isError"] is False


# --- the stateless generation: the call is made again with the answer --------------------------------

ENVELOPE = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": FORMS}


def waited(client: WireClient, **more: Any) -> dict[str, Any]:
    arguments = {"todoId": todo_of(client)["id"], "for": {"person": QUESTION}}
    answer = client.ask("tools/call", {"name": "wait_todo", "arguments": arguments, "_meta": ENVELOPE, **more})
    result: dict[str, Any] = answer.get("result") or answer["error"]
    return result


@pytest.mark.spec("X1", "C10")
def test_a_stateless_client_is_told_what_to_ask_and_calls_again(asker: Callable[..., WireClient]) -> None:
    with asker() as client:
        first = waited(client)
        assert first["resultType"] == "input_required"
        ((question_id, request),) = first["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        # What it was not asked is ignored; what does not fit the form is asked for again.
        other = {"another": {"action": "accept", "content": {"answer": "x"}}}
        assert waited(client, inputResponses=other)["inputRequests"] == first["inputRequests"]
        misfit = {question_id: {"action": "accept", "content": {"answer": 1}}}
        assert waited(client, inputResponses=misfit)["inputRequests"] == first["inputRequests"]
        assert waited(client, inputResponses={question_id: 7})["code"] == -32602
        assert waited(client, inputResponses=None)["code"] == -32602
        declined = waited(client, inputResponses={question_id: {"action": "decline"}})
        assert declined["structuredContent"]["waitsFor"] == [f"an answer to “{QUESTION}”"]
        said = {question_id: {"action": "accept", "content": {"answer": "8080"}}, **other}
        answered = waited(client, inputResponses=said)
        assert (answered["resultType"], answered["structuredContent"]["waitsFor"]) == ("complete", [])
        # The same once more, as after an answer that was lost on the way: nothing is asked or changed again.
        assert waited(client, inputResponses=said)["structuredContent"] == answered["structuredContent"]


@pytest.mark.spec("X1")
def test_over_http_the_question_and_the_answer_are_one_stream(project: Path, environment: dict[str, str]) -> None:
    with HttpServer(project, environment) as server:
        client = server.client()
        client.begin(FORMS)
        todo_id = client.call("create_todo", items=[{"title": "Open the port"}])["structuredContent"]["created"][0][
            "id"
        ]
        arguments = {"todoId": todo_id, "for": {"person": QUESTION}}
        call = client.request("tools/call", {"name": "wait_todo", "arguments": arguments})
        with client.open("POST", json.dumps(call).encode(), client.headers()) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            stream = events(response)
            asked = next(stream)
            assert client.ask("ping")["result"] == {}
            # Another session, with the same token, is not whom the question was for.
            other = server.client()
            other.begin()
            said = {"jsonrpc": "2.0", "id": asked["id"]}
            result = {"action": "accept", "content": {"answer": "8080"}}
            assert other.post({**said, "result": {**result, "content": {"answer": "stolen"}}})[0] == 202
            assert client.post({**said, "result": result})[0] == 202
            answer = next(stream)
            assert answer["id"] == call["id"]
            assert answer["result"]["structuredContent"]["answers"][0]["answer"] == "8080"
            assert list(stream) == []


@pytest.mark.spec("X1", "C10")
def test_over_http_each_of_many_questions_at_once_has_its_own_answer(
    project: Path, environment: dict[str, str]
) -> None:
    titles = [f"Port {number}" for number in range(MAX_PENDING + 2)]
    asked_ids: list[str] = []

    def each_is_another() -> None:
        assert len(asked_ids) == len(set(asked_ids)) == MAX_PENDING

    all_are_open = Barrier(len(titles), each_is_another)
    with HttpServer(project, environment) as server:
        client = server.client()
        client.begin(FORMS)
        created = client.call("create_todo", items=[{"title": title} for title in titles])["structuredContent"]
        calls = [
            client.request(
                "tools/call", {"name": "wait_todo", "arguments": {"todoId": id, "for": {"person": QUESTION}}}
            )
            for id in (todo["id"] for todo in created["created"])
        ]

        def wait(call: dict[str, Any], title: str) -> bool:
            """Whether the person was asked; if so, it is their answer that the call has brought."""
            with client.open("POST", json.dumps(call).encode(), client.headers()) as response:
                streamed = response.headers["Content-Type"].startswith("text/event-stream")
                stream = events(response) if streamed else iter([json.loads(response.read())])
                asked = next(stream)
                if streamed:
                    asked_ids.append(asked["id"])
                all_are_open.wait(20)
                if not streamed:
                    assert (asked["id"], asked["result"]["isError"]) == (call["id"], False)
                    return False
                assert asked["params"]["message"].startswith(f"“{title}” waits")
                result = {"action": "accept", "content": {"answer": title}}
                assert client.post({"jsonrpc": "2.0", "id": asked["id"], "result": result})[0] == 202
                answer = next(stream)
                assert answer["id"] == call["id"]
                assert answer["result"]["structuredContent"]["answers"] == [{"question": QUESTION, "answer": title}]
                return True

        with ThreadPoolExecutor(len(titles)) as threads:
            assert sum(threads.map(wait, calls, titles)) == MAX_PENDING
