"""Output of any length: the beginning and the end in memory, all of it on disk, up to a limit.

Secrets are taken out on the way, before anything is shown, kept or written. For that it is taken in
whole lines: a secret that came in two pieces is seen once both are there. A private key waits for
its last line, and a line that is too long to wait for is cut where no secret is.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.execution import MAX_RESULT_LENGTH, join_ends

MAX_OUTPUT_BYTES: Final = 50_000_000
"""Bytes. A program that prints more is not read by anybody; it is ended."""
_HALF: Final = (MAX_RESULT_LENGTH - 1_000) // 2
"""Characters from the beginning and from the end; what is said about them must have room too."""
_LONGEST_LINE: Final = 100_000
_LONGEST_SECRET: Final = 5_000


class BoundedOutput:
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
    def exceeded(self) -> bool:
        return self._bytes > MAX_OUTPUT_BYTES

    def add(self, data: bytes) -> bool:
        """Whether there is room for more."""
        self._bytes += len(data)
        text = self._line + self._decoder.decode(data)
        end = self._whole(text)
        self._line = text[end:]
        self._take(text[:end])
        return not self.exceeded

    def _whole(self, text: str) -> int:
        """How much of the text can be taken; the rest waits for what comes after it."""
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        key = text.rfind("-----BEGIN ", 0, end)
        if key >= 0 and "PRIVATE KEY-----" in text[key : key + 60] and text.find("-----END ", key, end) < 0:
            end = key
        if len(text) - end <= _LONGEST_LINE:
            return end
        last = len(text) - _LONGEST_SECRET
        blank = text.rfind(" ", last - _LONGEST_LINE // 2, last)
        cuts = [blank] * (blank > 0) + [last - turn * _LONGEST_SECRET for turn in range(4)]
        return next((cut for cut in cuts if not self._splits_a_secret(text, cut)), last)

    def _splits_a_secret(self, text: str, cut: int) -> bool:
        before, after = text[cut - _LONGEST_SECRET : cut], text[cut : cut + _LONGEST_SECRET]
        return self._redact(before) + self._redact(after) != self._redact(before + after)

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
        if self._path is None or (self._file is None and self._length + len(text) <= 2 * _HALF):
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("wb")
                # Until now all of it was in memory.
                self._file.write((self._head + self._tail).encode("utf-8", "replace"))
            self._file.write(text.encode("utf-8", "replace"))
        except OSError:
            self._close()
            self._path = None

    def _close(self) -> None:
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            # A full disk costs the whole text, not the call.
            self._path = None

    def finish(self) -> None:
        """Nothing comes after this."""
        self._take(self._line + self._decoder.decode(b"", final=True))
        self._line = ""
        self._close()

    def result(self) -> ToolResult:
        left_out = self._length - len(self._head) - len(self._tail)
        return join_ends(self._head, left_out, self._tail, self._path if left_out else None)
