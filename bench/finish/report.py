"""The results as a table, as figures with limits, and as a part of docs/does-it-help.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.amounts import Amount
from bench.figures import Figure, Limits
from bench.finish.plot import draw
from bench.finish.statistics import Summary

DOCUMENT: Final = Path("docs/does-it-help.md")
PICTURE: Final = Path("docs/does-it-help.svg")
BEGIN, END = "<!-- finish: begin -->", "<!-- finish: end -->"
FAULTS: Final = {
    "none": "no faults",
    "early": "early stop, p = 0.3 per reply",
    "mixed": "early stop 0.2, false done 0.1, HTTP 500 0.05",
    "all": "all kinds of faults, from the first reply",
}
_HEADER: Final = ("arm", "whole", "false done", "steps", "requests", "tokens", "per finished task", "ended as")


@dataclass(frozen=True)
class Count(Amount):
    """A mean of counts; shown with one digit."""

    def row(self) -> list[str]:
        maximum = f"{self.maximum:.2g} {self.unit}" if self.maximum is not None else ""
        shown = f"{median(self.ours):,.1f} {self.unit}"
        return [self.name, shown, "", "", "", maximum, {True: "ok", False: "OVER", None: ""}[self.within]]


Summaries = Mapping[tuple[str, str], Summary]


def figures(found: Summaries) -> Iterator[Figure]:
    """The figures that the benchmark is measured against, as far as their arms were run."""
    for arm in ("continue", "drive"):
        if summary := found.get(("early", arm)):
            share = summary.tasks / 30
            yield Count(f"tasks not finished, early stop, {arm}", [_lost(summary)], unit="tasks", maximum=1 * share)
    if summary := found.get(("mixed", "verify")):
        share = summary.tasks / 30
        yield Count("tasks not finished, mixed faults, verify", [_lost(summary)], unit="tasks", maximum=3 * share)
        yield Count("false done, mixed faults, verify", [summary.false_done.value], unit="tasks", maximum=1 * share)
    bare = found.get(("none", "bare"))
    for arm, times in (("verify", 3.0), ("drive", 1.2)):
        if bare and (summary := found.get(("none", arm))):
            limits = Limits(times=times)
            yield Amount(
                f"tokens without faults, {arm}", [summary.tokens.value], [bare.tokens.value], limits, unit="tokens"
            )


def _lost(summary: Summary) -> float:
    return summary.tasks - summary.whole.value


def lines(found: Summaries, titles: Mapping[str, str]) -> Iterator[str]:
    """A Markdown table for each set of faults."""
    for faults in dict.fromkeys(name for name, _ in found):
        rows = [summary for (name, _), summary in found.items() if name == faults]
        yield f"**{FAULTS.get(faults, faults)}** ({rows[0].tasks} tasks, {rows[0].all_steps} steps)"
        yield ""
        yield f"| {' | '.join(_HEADER)} |"
        yield f"|---{'|--:' * (len(_HEADER) - 2)}|---|"
        yield from (f"| {' | '.join(_cells(summary, titles))} |" for summary in rows)
        yield ""


def _cells(summary: Summary, titles: Mapping[str, str]) -> Sequence[str]:
    return (
        titles[summary.arm],
        summary.whole.text(1),
        summary.false_done.text(1),
        summary.steps.text(0),
        summary.requests.text(0),
        f"{summary.tokens.value / 1000:,.0f}k",
        "–" if summary.per_finished is None else f"{summary.per_finished / 1000:,.1f}k",
        ", ".join(f"{reason} {count:.1f}" for reason, count in summary.reasons.items()),
    )


def publish(root: Path, found: Summaries, titles: Mapping[str, str], facts: str) -> None:
    """Write the tables into the document, and the plot beside it."""
    document = root / DOCUMENT
    before, _, rest = document.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    written = "\n".join([BEGIN, "", facts, "", *lines(found, titles), END])
    document.write_text(f"{before}{written}{after}")
    (root / PICTURE).write_text(draw(found, titles, FAULTS))
