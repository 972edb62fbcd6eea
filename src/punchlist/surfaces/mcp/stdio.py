"""`punchlist mcp`: serves one client on standard input and output, one JSON message per line.

Requests are answered one after the other, because a list's transaction is shorter than a switch of threads; a call
that asks the person stays open meanwhile. The database is opened in the background after the first message.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, BinaryIO

from punchlist.app import Services
from punchlist.conversations.model import Scope
from punchlist.errors import PunchlistError
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import MAX_MESSAGE_SIZE, PARSE_ERROR, ProtocolError
from punchlist.surfaces.mcp.protocol import ClientConnection
from punchlist.surfaces.role_tools import BOTH


def serve(services: Services, scope: Scope, lists: str = BOTH) -> None:
    """Serve until the client closes its end. Standard output carries only the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="punchlist: %(message)s")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Output of libraries goes to standard error.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError):
        _StdioServer(Capabilities(services, scope, lists=lists), sys.stdin.buffer, output).run()


class _StdioServer:
    def __init__(self, capabilities: Capabilities, input: BinaryIO, output: BinaryIO) -> None:
        self._capabilities = capabilities
        self._input = input
        self._output = output
        self._write_lock = Lock()
        self._connection = ClientConnection(capabilities, self._send)
        self._warmed_up = False

    def run(self) -> None:
        for line in self._lines():
            self._handle(line)

    def _lines(self) -> Iterator[bytes | None]:
        """The client's lines; None for a line that is too long."""
        while line := self._input.readline(MAX_MESSAGE_SIZE):
            if line.endswith(b"\n") or len(line) < MAX_MESSAGE_SIZE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = self._input.readline(MAX_MESSAGE_SIZE)
            yield None

    def _handle(self, line: bytes | None) -> None:
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                raise ProtocolError(PARSE_ERROR, f"A message must be shorter than {MAX_MESSAGE_SIZE:,} bytes.")
            message = jsonrpc.decode(line)
        except ProtocolError as error:
            self._send(jsonrpc.error_response(None, error))
            return
        self._send(self._connection.answer(message))
        if not self._warmed_up:
            self._warmed_up = True
            Thread(target=self._warm_up, daemon=True).start()

    def _warm_up(self) -> None:
        # The first call meets the same error and reports it.
        with suppress(PunchlistError):
            self._capabilities.warm_up()

    def _send(self, message: Any) -> None:
        if message is None:
            return
        data = jsonrpc.encode(message) + b"\n"
        with self._write_lock:
            self._output.write(data)
            self._output.flush()
