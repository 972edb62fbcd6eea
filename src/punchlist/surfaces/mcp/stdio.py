"""`punchlist mcp`: one client on standard input and output, a JSON message a line.

Requests are answered one after the other; a list's transaction takes less time than handing it to
a thread would, and a call that has a person asked is left open meanwhile. The database is opened in
the background once the client has been greeted.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, BinaryIO

from punchlist.conversations.model import Scope
from punchlist.errors import PunchlistError
from punchlist.surfaces.mcp import messages, protocol
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.messages import LONGEST_MESSAGE, PARSE_ERROR, ProtocolError
from punchlist.surfaces.services import Services


def serve(desk: Services, scope: Scope) -> None:
    """Answer until the client closes its end. Standard output carries nothing but the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="punchlist: %(message)s")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library may print goes where people look for such things.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError):
        _StdioServer(Capabilities(desk, scope), sys.stdin.buffer, output).run()


class _StdioServer:
    def __init__(self, offer: Capabilities, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._offer = offer
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = Lock()
        self._connection = protocol.ClientConnection(offer, self._send)
        self._greeted = False

    def run(self) -> None:
        for line in self._lines():
            self._handle(line)

    def _lines(self) -> Iterator[bytes | None]:
        """The client's lines; None for one that is too long to be taken in."""
        while line := self._incoming.readline(LONGEST_MESSAGE):
            if line.endswith(b"\n") or len(line) < LONGEST_MESSAGE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = self._incoming.readline(LONGEST_MESSAGE)
            yield None

    def _handle(self, line: bytes | None) -> None:
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                raise ProtocolError(PARSE_ERROR, f"A message must be shorter than {LONGEST_MESSAGE:,} bytes.")
            message = messages.decode(line)
        except ProtocolError as error:
            self._send(messages.failure(None, error))
            return
        answer = self._connection.answer(message)
        if answer is not None:
            self._send(answer)
        if not self._greeted:
            self._greeted = True
            Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        # If it cannot be opened, the first call runs into that too, and tells the client.
        with suppress(PunchlistError):
            self._offer.warm_up()

    def _send(self, message: Any) -> None:
        if message is None:
            return
        data = messages.encode(message) + b"\n"
        with self._writing:
            self._outgoing.write(data)
            self._outgoing.flush()
