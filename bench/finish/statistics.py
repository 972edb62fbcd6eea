"""Means over seeds with confidence intervals. Seeds are paired: each arm meets the same draws of faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any, Final

from bench.finish.run import Outcome

_T95: Final = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131)
"""Student's t for 95%, two-sided, with 1, 2, 3, … degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Mean:
    value: float
    margin: float | None = None
    """Half the width of the 95% interval; None for a single seed."""

    def __str__(self) -> str:
        return self.text(1)

    def text(self, digits: int) -> str:
        margin = f" ± {self.margin:,.{digits}f}" if self.margin else ""
        return f"{self.value:,.{digits}f}{margin}"

    def as_json(self) -> list[float | None]:
        return [self.value, self.margin]


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of one value per seed, with its t interval."""
    if len(values) < 2:
        return Mean(mean(values))
    t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else 1.96
    return Mean(mean(values), t * stdev(values) / sqrt(len(values)))


@dataclass(frozen=True, slots=True)
class Summary:
    """One arm under one set of faults. Counts are of one round over all tasks."""

    faults: str
    arm: str
    tasks: int
    all_steps: int
    whole: Mean
    false_done: Mean
    steps: Mean
    requests: Mean
    tokens: Mean
    per_finished: float | None
    """Tokens of all tasks, divided by the number of finished ones; None if none was finished."""
    reasons: dict[str, float]
    """How often each reason ended a task."""
    gain: Mean
    """Whole tasks more than the bare loop, seed by seed."""

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value.as_json() if isinstance(value, Mean) else value for name, value in values.items()}


def summarize(outcomes: Sequence[Outcome], faults: str, arm: str, base: str = "bare") -> Summary:
    mine, bare = _by_seed(outcomes, faults, arm), _by_seed(outcomes, faults, base)

    def per_seed(amount: Callable[[Outcome], float]) -> list[float]:
        return [sum(map(amount, round)) for round in mine.values()]

    whole = per_seed(lambda run: run.whole)
    base_whole = [sum(run.whole for run in bare[seed]) for seed in mine if seed in bare]
    rounds = list(mine.values())
    reasons = Counter(run.reason for round in rounds for run in round)
    tokens = per_seed(lambda run: run.tokens)
    return Summary(
        faults,
        arm,
        len(rounds[0]),
        sum(run.steps for run in rounds[0]),
        mean_of(whole),
        mean_of(per_seed(lambda run: run.false_done)),
        mean_of(per_seed(lambda run: run.passed)),
        mean_of(per_seed(lambda run: run.requests)),
        mean_of(tokens),
        sum(tokens) / sum(whole) if sum(whole) else None,
        {reason: count / len(rounds) for reason, count in reasons.most_common()},
        mean_of([ours - theirs for ours, theirs in zip(whole, base_whole, strict=True)]) if base_whole else Mean(0.0),
    )


def _by_seed(outcomes: Sequence[Outcome], faults: str, arm: str) -> dict[int, list[Outcome]]:
    found: dict[int, list[Outcome]] = {}
    for run in outcomes:
        if (run.faults, run.arm) == (faults, arm):
            found.setdefault(run.seed, []).append(run)
    return found
