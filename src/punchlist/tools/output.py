"""Output of any length: the beginning and the end in memory, all of it on disk, up to a limit.

Secrets are taken out on the way, line by line, before anything is shown, kept or written.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from punchlist.toolcalls.results import LONGEST, pieced
from punchlist.toolcalls.states import Result

LARGEST: Final = 50_000_000
"""Bytes. A program that prints more is not read by anybody; it is ended."""
_HALF: Final = LONGEST // 2
_LONGEST_LINE: Final = 100_000


class Output:
    def __init__(self, file: Path | None, show: Callable[[str], None], redact: Callable[[str], str] = str) -> None:
        self._path = file
        self._show = show
        self._redact = redact
        self._file: BinaryIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._line = ""
        self._head = ""
        self._tail = ""
        self._length = 0
        self._bytes = 0

    @property
    def too_much(self) -> bool:
        return self._bytes > LARGEST

    def add(self, data: bytes) -> bool:
        """Whether there is room for more."""
        self._bytes += len(data)
        text = self._line + self._decoder.decode(data)
        # The last line may end in the middle of a secret: it waits for its rest.
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if len(text) - end > _LONGEST_LINE:
            end = len(text)
        self._line = text[end:]
        self._take(text[:end])
        return not self.too_much

    def _take(self, text: str) -> None:
        if not text:
            return
        text = self._redact(text).replace("\x00", "\\x00")
        self._keep(text)
        self._length += len(text)
        room = _HALF - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-_HALF:]
        self._show(text)

    def _keep(self, text: str) -> None:
        """On disk, once it is too long to be told whole."""
        if self._path is None or (self._file is None and self._length + len(text) <= LONGEST):
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("wb")
                # Until now all of it was in memory.
                self._file.write((self._head + self._tail).encode("utf-8", "replace"))
            self._file.write(text.encode("utf-8", "replace"))
        except OSError:
            # A full disk costs the whole text, not the call.
            self.close()
            self._path = None

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def result(self) -> Result:
        self._take(self._line + self._decoder.decode(b"", final=True))
        self._line = ""
        self.close()
        left_out = self._length - len(self._head) - len(self._tail)
        return pieced(self._head, left_out, self._tail, self._path if left_out else None)
