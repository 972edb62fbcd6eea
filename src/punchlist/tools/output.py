"""Collects the output of a program: beginning and end in memory, the full text on disk, up to a limit.

Secrets are redacted before anything is shown or stored. Text is processed in whole lines, so that a secret
that arrives in two chunks is recognized; a private key is held back until its last line, and a line that is
too long to hold back is split where no secret is.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.execution import MAX_RESULT_LENGTH, join_ends

MAX_OUTPUT_BYTES: Final = 50_000_000
"""A program that prints more is ended."""
_HALF: Final = (MAX_RESULT_LENGTH - 1_000) // 2
"""Characters kept from the beginning and from the end; the rest is for the note about the omitted part."""
_MAX_LINE_LENGTH: Final = 100_000
_MAX_SECRET_LENGTH: Final = 5_000


class BoundedOutput:
    def __init__(self, file: Path | None, on_text: Callable[[str], None], redact: Callable[[str], str] = str) -> None:
        self._path = file
        self._on_text = on_text
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
        """Add a chunk. False when the limit is exceeded."""
        self._bytes += len(data)
        text = self._line + self._decoder.decode(data)
        end = self._complete_length(text)
        self._line = text[end:]
        self._take(text[:end])
        return not self.exceeded

    def _complete_length(self, text: str) -> int:
        """How much of the text can be processed now; the rest needs the next chunk."""
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        key = text.rfind("-----BEGIN ", 0, end)
        if key >= 0 and "PRIVATE KEY-----" in text[key : key + 60] and text.find("-----END ", key, end) < 0:
            end = key
        if len(text) - end <= _MAX_LINE_LENGTH:
            return end
        last = len(text) - _MAX_SECRET_LENGTH
        blank = text.rfind(" ", last - _MAX_LINE_LENGTH // 2, last)
        cuts = [blank] * (blank > 0) + [last - step * _MAX_SECRET_LENGTH for step in range(4)]
        return next((cut for cut in cuts if not self._splits_a_secret(text, cut)), last)

    def _splits_a_secret(self, text: str, cut: int) -> bool:
        before, after = text[cut - _MAX_SECRET_LENGTH : cut], text[cut : cut + _MAX_SECRET_LENGTH]
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
        self._on_text(text)

    def _keep(self, text: str) -> None:
        """Write to disk, once the text is too long for the model."""
        if self._path is None or (self._file is None and self._length + len(text) <= 2 * _HALF):
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("wb")
                # Up to here the full text is in memory.
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
            # The disk is full: the full text is lost, the call succeeds.
            self._path = None

    def finish(self) -> None:
        """Process the rest; no more chunks follow."""
        self._take(self._line + self._decoder.decode(b"", final=True))
        self._line = ""
        self._close()

    def result(self) -> ToolResult:
        omitted = self._length - len(self._head) - len(self._tail)
        return join_ends(self._head, omitted, self._tail, self._path if omitted else None)
