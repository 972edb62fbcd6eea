"""Writes lines from a thread, so that a reader that does not read cannot block the program.

A write to a full pipe blocks. In the thread of the event loop, it would also block the handling of Ctrl-C.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO


class LineWriter:
    def __init__(self, out: TextIO, on_failure: Callable[[OSError], None]) -> None:
        """`on_failure` is called from the thread, once. Nothing is written afterwards."""
        self._out = out
        self._on_failure = on_failure
        self._lines: deque[str] = deque()
        self._changed = threading.Condition()
        self._started = self._writing = self._failed = False

    @property
    def pending(self) -> int:
        """Lines that the reader has not taken."""
        return len(self._lines)

    def put(self, line: str) -> None:
        with self._changed:
            if self._failed:
                return
            self._lines.append(line)
            self._changed.notify_all()
        if not self._started:
            self._started = True
            # A daemon thread does not delay the exit of the program.
            threading.Thread(target=self._run, name="line-writer", daemon=True).start()

    def drain(self, timeout: float | None = None) -> None:
        """Wait until every line is written."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed or not (self._lines or self._writing), timeout)

    def _run(self) -> None:
        while not self._failed:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._lines))
                line, self._writing = self._lines.popleft(), True
            try:
                print(line, file=self._out, flush=True)
            except OSError as error:
                self._fail(error)
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _fail(self, error: OSError) -> None:
        with self._changed:
            self._failed = True
            self._lines.clear()
        # What is still buffered would raise again when the process exits.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._out.fileno())
        os.close(null)
        self._on_failure(error)
