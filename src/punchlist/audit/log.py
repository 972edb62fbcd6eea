"""Checks the event log as a whole: signatures, numbers without gaps, and the anchor at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from punchlist.kernel.events import Anchor, Chain, Event, parse_signature
from punchlist.storage.event_log import is_anchored
from punchlist.storage.store import Transaction

_MAX_GAPS: Final = 5
_ADOPT: Final = "If you know where they come from, run `punchlist trust` to adopt the database."


class LogCheck:
    """Takes in all events, one stream after the other, and remembers one byte per event."""

    def __init__(self, chain: Chain | None, anchor: Anchor | None) -> None:
        self._chain = chain
        self._anchor = anchor
        self._stored = bytearray()
        self._seen = bytearray()
        """The numbers that later events name as the newest event that their writer saw."""
        self._plain_end = 0
        """The number after the last event without a signature."""
        self._unsigned: list[int] = []
        self._foreign: dict[str, list[int]] = {}
        self._moved: list[int] = []

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            _mark(self._stored, event.seq)
            signature = parse_signature(event.hash)
            if signature is None:
                self._plain_end = max(self._plain_end, event.seq + 1)
                if self._chain is not None and event.seq >= self._signed_from:
                    _widen(self._unsigned, event.seq)
                continue
            _mark(self._seen, signature.after)
            if signature.after >= event.seq:
                self._moved.append(event.seq)
            if self._chain is None or signature.key_id != self._chain.id:
                _widen(self._foreign.setdefault(signature.key_id, []), event.seq)

    @property
    def _signed_from(self) -> int:
        """From which number on events must be signed. Only a signed anchor can say that it is not the first."""
        anchor = self._anchor
        return anchor.signed_from if anchor and self._chain and self._chain.has_signed(anchor) else 1

    def problems(self, tx: Transaction, *, gapless: bool) -> Iterator[str]:
        """`gapless`: the database numbers events without gaps."""
        if self._unsigned:
            yield f"events: {_range(self._unsigned)} are not signed. {_ADOPT}"
        if self._chain is not None:
            for key_id, numbers in self._foreign.items():
                yield f"events: {_range(numbers)} were signed with another key ({key_id}). {_ADOPT}"
        yield from (f"events: number {seq} was moved" for seq in self._moved[:_MAX_GAPS])
        yield from (f"events: number {seq} is missing" for seq in self._gaps(gapless))
        yield from self._anchor_problems(tx)

    def warnings(self) -> Iterator[str]:
        if self._chain is None and self._foreign:
            yield f"Events are signed with the key {', '.join(self._foreign)}. Their signatures were not verified."

    def _gaps(self, gapless: bool) -> list[int]:
        """The first missing numbers: those that a later event names, and every one between unsigned events."""
        end = max(len(self._stored), len(self._seen))
        stored, expected = self._stored.ljust(end, b"\0"), self._seen.ljust(end, b"\0")
        if gapless:
            expected[: self._plain_end] = b"\1" * self._plain_end
        missing = (seq for seq in range(1, end) if expected[seq] and not stored[seq])
        return list(islice(missing, _MAX_GAPS))

    def _anchor_problems(self, tx: Transaction) -> Iterator[str]:
        anchor, chain = self._anchor, self._chain
        if anchor is None:
            yield "events: the anchor of the log is missing"
            return
        if not anchor.key_id:
            return
        if chain is not None and anchor.key_id != chain.id:
            if anchor.key_id not in self._foreign:
                yield f"events: the log was signed with another key ({anchor.key_id}). {_ADOPT}"
        elif chain is not None and not chain.has_signed(anchor):
            yield "events: the anchor of the log is not what was written"
            return
        if not is_anchored(tx, anchor):
            yield f"events: the log ended with number {anchor.seq} at least; events were removed from its end"


def _mark(numbers: bytearray, number: int) -> None:
    if number >= len(numbers):
        numbers.extend(bytes(number + 1 - len(numbers)))
    numbers[number] = 1


def _widen(numbers: list[int], number: int) -> None:
    """Keep the lowest and the highest number."""
    numbers[:] = [min([number, *numbers]), max([number, *numbers])]


def _range(numbers: Sequence[int]) -> str:
    first, last = numbers
    return f"numbers {first} to {last}"
