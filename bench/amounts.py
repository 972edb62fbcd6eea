"""Figures other than times: bytes, tokens, lost rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.figures import Figure


@dataclass(frozen=True)
class Amount(Figure):
    """An amount with a unit; limited by `maximum`, or by `limits.times` of the amount it is compared with."""

    unit: str = ""
    maximum: float | None = None

    @property
    def within(self) -> bool | None:
        met = [median(self.ours) <= self.maximum] if self.maximum is not None else []
        if self.times is not None and self.limits.times is not None:
            met.append(self.times <= self.limits.times)
        return all(met) if met else None

    def row(self) -> list[str]:
        return [
            self.name,
            self._format(self.ours),
            f"{min(self.ours):,.0f}",
            self._format(self.raw) if self.raw else "",
            f"{self.times:.2f}x" if self.times is not None else "",
            f"{self.maximum:,.0f} {self.unit}" if self.maximum is not None else str(self.limits),
            {True: "ok", False: "OVER", None: ""}[self.within],
        ]

    def _format(self, amounts: Sequence[float]) -> str:
        return f"{median(amounts):,.0f} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "unit": self.unit, "maximum": self.maximum}
