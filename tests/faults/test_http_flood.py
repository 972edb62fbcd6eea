"""Connections that send no complete request, from clients without a token (TRUST 38)."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.surfaces.mcp_http import HttpServer

from punchlist.surfaces.http import limits
from punchlist.surfaces.http.connection import LogRateLimit

SECONDS = 2.0
HALF_REQUESTS = (
    b"",
    b"P",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"a" * 5_000,
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    b"\x00\xff\r\n\r\n",
)


def _open(port: int, sent: bytes) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", port), timeout=20)
    wire.sendall(sent)
    return wire


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    ("number", "max_open_files"),
    [
        (400, 128),
        (400, 1024),
        pytest.param(1_000, 128, marks=pytest.mark.soak),
        pytest.param(1_000, 1024, marks=pytest.mark.soak),
    ],
)
def test_half_open_connections_do_not_keep_a_client_waiting(
    project: Path, environment: dict[str, str], number: int, max_open_files: int
) -> None:
    """TRUST 38. Without limits the server runs out of file descriptors, and logs every failed accept."""
    with HttpServer(project, environment, max_open_files=max_open_files) as server, ExitStack() as wires:
        served = server.client()
        served.begin()
        for index in range(number):
            wires.enter_context(_open(server.port, HALF_REQUESTS[index % len(HALF_REQUESTS)]))
            if index % 100 == 99:
                began = time.monotonic()
                assert served.ask("ping")["result"] == {}
                assert time.monotonic() - began < SECONDS
        log = server.stop()
    assert len(log.splitlines()) <= 2 * limits.LOG_RECORDS, log[:2_000]


@pytest.mark.spec("X1")
def test_a_connection_without_a_complete_request_is_closed(project: Path, environment: dict[str, str]) -> None:
    with HttpServer(project, environment) as server, ExitStack() as wires:
        began = time.monotonic()
        opened = [wires.enter_context(_open(server.port, sent)) for sent in HALF_REQUESTS]
        # The second request of a connection has the same deadline.
        again = wires.enter_context(_open(server.port, b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        assert again.recv(1_000).startswith(b"HTTP/1.1 401")
        again.sendall(b"GET /mcp HTTP/1.1\r\nHost: local")
        for wire in (*opened, again):
            wire.settimeout(limits.HEADER_SECONDS + 10)
            while _receive(wire):
                pass
        assert time.monotonic() - began < 2 * limits.HEADER_SECONDS + 5
        assert server.client().stateless("tools/list")[0] == 200


def _receive(wire: socket.socket) -> bytes:
    try:
        return wire.recv(1_000)
    except ConnectionError:
        return b""


def test_the_log_says_what_it_left_out() -> None:
    clock = [0.0]
    limit = LogRateLimit(records=2, seconds=60, clock=lambda: clock[0])

    def passes() -> str | None:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid request.", (), None)
        return record.getMessage() if limit.filter(record) else None

    assert [passes() for _ in range(5)] == ["Invalid request.", "Invalid request.", None, None, None]
    clock[0] = 61
    assert passes() == "Invalid request. (3 earlier log records were left out)"
    assert passes() == "Invalid request."


@pytest.mark.parametrize("files", [64, 256, 1024, 10**6])
def test_the_limits_leave_file_descriptors_for_the_rest(files: int) -> None:
    bounds = limits.connection_limits(files)
    assert bounds.connections + 3 * bounds.accepted_at_once < files
    assert bounds.connections >= 16
