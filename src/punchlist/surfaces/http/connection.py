"""One HTTP connection with a deadline for its request, and a log that cannot be flooded.

uvicorn has no limit for a connection that sends no complete request. Anyone can open such connections, without a
token, until the process has no file descriptors left. Here each has `HEADER_SECONDS`, and when the server is full, the
one that has waited longest is closed in favour of the new one. A connection whose request is being answered is never
closed for another.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from punchlist.surfaces.http.limits import HEADER_SECONDS, LOG_RECORDS, LOG_SECONDS, MAX_CONNECTIONS

_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedConnection(H11Protocol):
    def __init__(self, *args: Any, limit: int = MAX_CONNECTIONS, **named: Any) -> None:
        super().__init__(*args, **named)
        self._limit = limit
        self._opened_at = self.loop.time()
        self._header_timer: asyncio.TimerHandle | None = None

    @property
    def is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._send_at_once(transport)
        self._start_header_timer()
        if len(self.connections) <= self._limit:
            return
        open_connections = [one for one in self.connections if isinstance(one, BoundedConnection)]
        waiting = [one for one in open_connections if one is not self and not one.is_answering]
        if waiting:
            min(waiting, key=lambda one: one._opened_at).drop()
        else:
            transport.write(_FULL)
            self.drop(at_once=False)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.is_answering:
            self._stop_header_timer()
        elif self._header_timer is None and self.timeout_keep_alive_task is None:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        super().connection_lost(exc)

    def drop(self, *, at_once: bool = True) -> None:
        self._stop_header_timer()
        # No longer counted, although its socket is closed a moment later.
        self.connections.discard(self)
        if at_once:
            self.transport.abort()
        else:
            self.transport.close()

    @staticmethod
    def _send_at_once(transport: asyncio.Transport) -> None:
        """Without Nagle's algorithm: head and body of a response are two writes, and the second would wait for the
        client's acknowledgement of the first, 40 ms. asyncio does it only for sockets with the protocol number of TCP.
        """
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self.drop)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class LogRateLimit(logging.Filter):
    """Passes at most `records` in `seconds`; the next one that passes says how many were left out."""

    def __init__(
        self,
        records: int = LOG_RECORDS,
        seconds: float = LOG_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._records = records
        self._seconds = seconds
        self._clock = clock
        self._since = clock()
        self._passed = 0
        self._omitted = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if now - self._since >= self._seconds:
            self._since, self._passed = now, 0
        if self._passed >= self._records:
            self._omitted += 1
            return False
        self._passed += 1
        if self._omitted:
            record.msg = f"{record.msg} ({self._omitted} earlier log records were left out)"
            self._omitted = 0
        return True
