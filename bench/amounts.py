"""Figures that are no times: bytes, tokens, things that were lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.measuring import Figure


@dataclass(frozen=True)
class Amount(Figure):
    """So much of something, at most `most` of it, or so many `limits.times` of what it is compared with."""

    unit: str = ""
    most: float | None = None

    @property
    def within(self) -> bool | None:
        kept = [median(self.ours) <= self.most] if self.most is not None else []
        if self.times is not None and self.limits.times is not None:
            kept.append(self.times <= self.limits.times)
        return all(kept) if kept else None

    def row(self) -> list[str]:
        return [
            self.name,
            self._shown(self.ours),
            f"{min(self.ours):,.0f}",
            self._shown(self.raw) if self.raw else "",
            f"{self.times:.2f}x" if self.times is not None else "",
            f"{self.most:,.0f} {self.unit}" if self.most is not None else str(self.limits),
            {True: "ok", False: "OVER", None: ""}[self.within],
        ]

    def _shown(self, amounts: Sequence[float]) -> str:
        return f"{median(amounts):,.0f} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "unit": self.unit, "most": self.most}
