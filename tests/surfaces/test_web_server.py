"""`punchlist serve` as a real process: the link, events across processes and restarts, MCP, exposure (X1, X12)."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from tests.conftest import Cli
from tests.surfaces.web_server import WebProcess

ALLOW_ALL = '[[policy.rules]]\ndecision = "allow"\ntool = "run_command"\n'


@pytest.fixture
def token(punchlist: Cli) -> str:
    return punchlist("token", "create", "robot", "--role", "person").stdout.strip()


@pytest.mark.spec("X12")
def test_an_event_of_another_process_is_on_a_stream_and_none_is_missed_over_a_restart(
    project: Path, environment: dict[str, str], punchlist: Cli, token: str
) -> None:
    punchlist("todos", "add", "Zero")
    with WebProcess(project, environment) as server, server.events(token) as stream:
        assert next(stream)["event"] == "position"
        punchlist("todos", "add", "One")
        first = next(stream)
    punchlist("todos", "add", "Two")
    with WebProcess(project, environment) as server, server.events(token, Last_Event_ID=first["id"]) as stream:
        assert next(stream)["id"] == first["id"]
        punchlist("todos", "add", "Three")
        # Also the events of the logins of both servers.
        last = newest_event(server, token)
        seen = [int(first["id"])]
        while seen[-1] < last:
            seen.append(int(next(stream)["id"]))
        assert seen == list(range(seen[0], last + 1))
        # The open stream does not hold it up, and nothing is reported.
        assert server.stop() == ""


@pytest.mark.spec("X12")
def test_a_stream_starts_again_at_the_newest_event_of_a_restored_database(
    project: Path, environment: dict[str, str], punchlist: Cli, token: str
) -> None:
    with WebProcess(project, environment) as server:
        last = newest_event(server, token)
        assert server.send("GET", "/activity?after=99999999", token)[1] == {"items": [], "last": last}
        with server.events(token) as open_stream, server.events(token, Last_Event_ID="99999999") as stream:
            next(open_stream)
            assert next(stream).items() >= {"id": str(last), "event": "reset", "last": last}.items()
            punchlist("todos", "add", "One")
            assert next(stream)["event"] == "change"
        # A number that exists is no reason, also if this process has just seen it for the first time.
        with server.events(token, Last_Event_ID=str(newest_event(server, token))) as stream:
            assert next(stream)["event"] == "position"


def newest_event(server: WebProcess, token: str) -> int:
    status, page = server.send("GET", "/activity?limit=500", token)
    assert status == 200
    last: int = page["last"]
    return last


@pytest.mark.spec("X12", "X11")
def test_a_stream_ends_when_its_token_is_revoked(
    project: Path, environment: dict[str, str], punchlist: Cli, token: str
) -> None:
    with WebProcess(project, environment) as server, server.events(token) as stream:
        next(stream)
        punchlist("token", "revoke", "robot")
        deadline = time.monotonic() + 10
        # The events of the revocation itself may still come; each change after a second finds the token invalid.
        while time.monotonic() < deadline:
            punchlist("todos", "add", "More")
            if next(stream, None) is None:
                break
        else:
            pytest.fail("the stream is still open")


@pytest.mark.spec("X12")
def test_a_response_does_not_wait_for_the_acknowledgement_of_its_head(
    project: Path, environment: dict[str, str], token: str
) -> None:
    """With Nagle's algorithm, every answer on a connection that stays open takes 40 ms more."""

    def seconds(connection: http.client.HTTPConnection) -> float:
        began = time.perf_counter()
        connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().read()
        return time.perf_counter() - began

    with (
        WebProcess(project, environment) as server,
        closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection,
    ):
        # The kernel acknowledges the first ones at once.
        assert min([seconds(connection) for _ in range(60)][30:]) < 0.035


@pytest.mark.spec("X1")
def test_mcp_is_on_the_same_server_with_the_role_of_the_token(
    project: Path, environment: dict[str, str], punchlist: Cli
) -> None:
    viewer = punchlist("token", "create", "eyes", "--role", "viewer").stdout.strip()
    lead = punchlist("token", "create", "boss", "--role", "lead").stdout.strip()

    async def tools(url: str, text: str) -> set[str]:
        headers = {"Authorization": f"Bearer {text}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return {tool.name for tool in (await client.list_tools()).tools}

    with WebProcess(project, environment) as server:
        assert "mission_todo_complete" in anyio.run(tools, f"{server.url}/mcp", lead)
        assert "mission_todo_complete" not in anyio.run(tools, f"{server.url}/mcp", viewer)
        # A login is no token.
        with server.open("POST", "/mcp", server.code, {}, Accept="*/*") as response:
            assert response.status == 401


@pytest.mark.spec("X12")
def test_the_server_is_not_exposed_by_mistake_and_not_started_by_agents(
    project: Path, environment: dict[str, str]
) -> None:
    def refused(*arguments: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "punchlist", "serve", *arguments],
            cwd=project,
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stdout
        return done.stderr

    assert "--remote" in refused("--host", "192.0.2.1")
    assert "unencrypted" in refused("--host", "192.0.2.1", "--remote")
    assert "wildcard" in refused("--host", "0.0.0.0", "--remote")
    assert "https" in refused("--proxy", "http://example.com")
    assert "for you, not for an agent" in refused(CLAUDECODE="1")
    assert "for you, not for an agent" in refused("--login", CLAUDECODE="1")


@pytest.mark.spec("X12", "S4")
def test_the_server_starts_turns_in_a_looser_mode_and_its_agents_do_not(
    project: Path, environment: dict[str, str], punchlist: Cli, token: str
) -> None:
    """A command of a turn can be a child of the server, too: only the server signs the start of a turn."""
    program = f"{sys.executable} -m punchlist run --mode yolo --model rehearsal:none.yaml nested >>refused.txt 2>&1"
    # In a script: on the line itself, a person would be asked about it.
    (project / "nested.sh").write_text(f"{program}\nPUNCHLIST_TURN_START=abc {program}\ntouch made\n")
    (project / "punchlist.toml").write_text(ALLOW_ALL)
    punchlist("trust", "--yes")
    (project / "loose.yaml").write_text("- calls: [{tool: run_command, arguments: {command: sh nested.sh}}]\n- Done.\n")
    with WebProcess(project, environment) as server:
        body = {"goal": "Go.", "model": "rehearsal:loose.yaml", "mode": "auto-edit"}
        status, started = server.send("POST", "/conversations", token, body)
        assert status == 202, started
        until = time.monotonic() + 60
        while not (project / "made").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
    assert (project / "refused.txt").read_text().count("for you, not for an agent") == 2


@pytest.mark.spec("X12")
def test_with_a_certificate_the_server_speaks_tls_and_prints_a_code_for_phones(
    project: Path, environment: dict[str, str]
) -> None:
    certificate, key = self_signed(project)
    arguments = ("--remote", "--no-worker", "--tls-cert", str(certificate), "--tls-key", str(key), "--port", "0")
    server = subprocess.Popen(
        [sys.executable, "-m", "punchlist", "serve", *arguments],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        server.stdout.readline()
        link = server.stdout.readline().strip()
        assert "█" in server.stdout.readline()
        trusted = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(link, timeout=20, context=trusted) as answer:
            assert "; Secure" in answer.headers["Set-Cookie"]
            assert answer.headers["Strict-Transport-Security"]
    finally:
        server.terminate()
        server.communicate(timeout=20)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, as files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    pem = serialization.Encoding.PEM
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.add_extension(address, False).sign(key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return files


@pytest.mark.spec("X12")
def test_a_new_link_for_a_running_server_logs_in(project: Path, environment: dict[str, str], punchlist: Cli) -> None:
    with WebProcess(project, environment) as server:
        link = punchlist("serve", "--login", "--port", str(server.port)).stdout.strip()
        assert link.startswith(f"{server.url}/login?code=")
        with server.open("GET", link.removeprefix(server.url), "none") as response:
            assert response.status == 200
            assert response.headers["Set-Cookie"].startswith(f"punchlist-{server.port}=punchlist_")
        os.kill(server.process.pid, signal.SIGTERM)
        assert server.process.wait(timeout=20) == 0
