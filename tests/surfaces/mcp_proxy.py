"""Stands before `punchlist mcp --http` for clients that cannot be told what they should be: it puts the token into
each request, and can have another tool, prompt or resource stand in for the one that is asked for. Answers pass as they
are."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any

Params = dict[str, Any]
_REPLACED = re.compile(rb"(connection|content-length|mcp-name):", re.IGNORECASE)
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)


class Proxy:
    def __init__(self, port: int, token: str, stand_in: Callable[[Params], Params]) -> None:
        """`stand_in` makes the parameters of a request into those that are passed on."""
        self._behind = ("127.0.0.1", port)
        self._token = token
        self._stand_in = stand_in
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/mcp"

    def __enter__(self) -> Proxy:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        """One request: the server closes after its answer, so a client that wants another one connects again."""
        with client, suppress(OSError), socket.create_connection(self._behind) as server:
            begun = b""
            while b"\r\n\r\n" not in begun:
                begun += client.recv(65536) or b"\r\n\r\n"
            head, _, body = begun.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            while length and len(body) < int(length[1]):
                body += client.recv(65536) or b" "
            server.sendall(self._passed_on(head, body))
            Thread(target=_pump, args=(client, server), daemon=True).start()
            _pump(server, client)

    def _passed_on(self, head: bytes, body: bytes) -> bytes:
        lines = head.split(b"\r\n")
        replaced = [line for line in lines if _REPLACED.match(line)]
        kept = [line for line in lines if line not in replaced]
        added = [f"Authorization: Bearer {self._token}", "Connection: close"]
        name = next((line.partition(b":")[2].decode() for line in replaced if line[:8].lower() == b"mcp-name"), None)
        with suppress(ValueError, AttributeError):
            message = json.loads(body)
            before = message.get("params") or {}
            params = self._stand_in(before)
            if params is not before:
                body = json.dumps({**message, "params": params}).encode()
                name = name and params.get("name", params.get("uri", name))
        if name is not None:
            added.append(f"Mcp-Name: {name}")
        if body:
            added.append(f"Content-Length: {len(body)}")
        return b"\r\n".join([*kept, *(line.encode() for line in added), b"", body])


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
