"""The terminal's input with pastes that stay whole.

Textual's parser looks for escape sequences also inside a bracketed paste: one that contains an escape character ends
early, and the rest of it is taken for keys, with every line break as Enter. Here everything up to the end marker is the
paste, whatever it contains.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import Final

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

PASTE_START: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
CTRL_C: Final = "\x03"
READ_BYTES: Final = 65_536
SELECT_SECONDS: Final = 0.1
"""How soon the thread notices that the application ends, and that an escape character was the key."""


class PasteParser(XTermParser):
    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._recent = ""
        """The last characters that were keys: the start marker may arrive in several reads."""
        self._pasted: str | None = None
        """What has arrived of a paste; None outside of one."""

    def feed(self, data: str) -> Iterable[Message]:
        if not data:
            yield from super().feed(data)
        while data:
            if self._pasted is None:
                data = yield from self._keys(data)
            else:
                data = yield from self._paste(data)

    def _keys(self, data: str) -> Generator[Message, None, str]:
        """Take keys up to the start of a paste; returns the rest."""
        seen = self._recent + data
        at = seen.find(PASTE_START)
        if at < 0:
            self._recent = seen[-len(PASTE_START) + 1 :]
            yield from super().feed(data)
            return ""
        end = at + len(PASTE_START) - len(self._recent)
        self._recent, self._pasted = "", ""
        yield from super().feed(data[:end])
        return data[end:]

    def _paste(self, data: str) -> Generator[Message, None, str]:
        """Take a paste up to its end; returns the rest. Ctrl+C alone ends one whose end got lost."""
        assert self._pasted is not None
        text, found, rest = (self._pasted + data).partition(PASTE_END)
        if data == CTRL_C:
            text, found, rest = self._pasted, PASTE_END, ""
        if not found:
            self._pasted = text
            return ""
        self._pasted = None
        # The parser has seen the markers only, so its own event is empty.
        yield from (event for event in super().feed(PASTE_END) if not isinstance(event, events.Paste))
        yield events.Paste(text.replace("\x00", ""))
        return rest


class TerminalDriver(LinuxDriver):
    def run_input_thread(self) -> None:
        parser = PasteParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(SELECT_SECONDS) and (data := decode(os.read(self.fileno, READ_BYTES))):
                    self._process(parser.feed(data))
                self._process(parser.tick())
        with suppress(EOFError, ParseError):
            self._process(parser.feed(""))

    def _process(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)
