"""Seeded faults of the scripted model. The draws depend on seed and task only, so all arms meet the same ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Fault(StrEnum):
    EARLY_STOP = "early stop"
    """Says what it will do next, and calls nothing."""
    FALSE_DONE = "false done"
    """Marks the item, or answers, without having done the work."""
    DROPPED_ITEM = "dropped item"
    """Forgets a step when it plans; without a list, when it works."""
    REPEATED_CALL = "repeated call"
    MALFORMED = "malformed arguments"
    RATE_LIMIT = "HTTP 429"
    SERVER_ERROR = "HTTP 500"
    TRUNCATED = "truncation"
    WRONG_DATA = "wrong data"
    """A tool returns a wrong number. Drawn for each file that is read, not for each reply."""


_NOT_PER_REPLY: Final = (Fault.WRONG_DATA, Fault.DROPPED_ITEM)


@dataclass(frozen=True, slots=True)
class FaultSet:
    name: str
    rates: Mapping[Fault, float]
    first_reply: bool = False
    """Whether the first reply can be faulty too: before it, no list exists."""


SETS: Final = {
    each.name: each
    for each in (
        FaultSet("none", {}),
        FaultSet("early", {Fault.EARLY_STOP: 0.3}),
        FaultSet("mixed", {Fault.EARLY_STOP: 0.2, Fault.FALSE_DONE: 0.1, Fault.SERVER_ERROR: 0.05}),
        FaultSet(
            "all",
            {
                Fault.EARLY_STOP: 0.1,
                Fault.FALSE_DONE: 0.05,
                Fault.DROPPED_ITEM: 0.01,
                Fault.REPEATED_CALL: 0.03,
                Fault.MALFORMED: 0.03,
                Fault.RATE_LIMIT: 0.03,
                Fault.SERVER_ERROR: 0.03,
                Fault.TRUNCATED: 0.01,
                Fault.WRONG_DATA: 0.03,
            },
            first_reply=True,
        ),
    )
}


class FaultDraws:
    """The faults of one run of one task."""

    def __init__(self, faults: FaultSet, seed: int, task: str) -> None:
        self._faults = faults
        self._replies = random.Random(f"{seed}/{task}/replies")
        self._tools = random.Random(f"{seed}/{task}/tools")
        self._steps = random.Random(f"{seed}/{task}/steps")
        self._requests = 0

    def for_reply(self) -> Fault | None:
        """The fault of the next reply, if any. At most one fault hits a reply."""
        self._requests += 1
        drawn = self._replies.random()
        if self._requests == 1 and not self._faults.first_reply:
            return None
        for fault, rate in self._faults.rates.items():
            if fault in _NOT_PER_REPLY:
                continue
            if drawn < rate:
                return fault
            drawn -= rate
        return None

    def choice(self) -> float:
        """A number from 0 to 1, for variants of a fault."""
        return self._replies.random()

    def wrong_data(self) -> bool:
        return self._tools.random() < self._faults.rates.get(Fault.WRONG_DATA, 0.0)

    def forgotten(self, steps: int) -> frozenset[int]:
        """The indexes of the steps that the model forgets."""
        rate = self._faults.rates.get(Fault.DROPPED_ITEM, 0.0)
        return frozenset(index for index in range(steps) if self._steps.random() < rate)
