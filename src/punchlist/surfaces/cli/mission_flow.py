"""`punchlist mission flow`: cumulative flow, throughput, cycle times and spend of a mission."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext, plural
from punchlist.surfaces.cli.options import MissionArgument

if TYPE_CHECKING:
    from punchlist.views.series import MissionSeries

_DAY: Final = 24 * 60 * 60


def flow(
    cli: CliContext,
    slug: MissionArgument,
    days: Annotated[
        int, typer.Option("--days", "-d", min=1, max=366, metavar="N", help="The last days, today included.")
    ] = 30,
) -> None:
    """Show how the todos of a mission flow: by status and day, ended ones, cycle times, spend, ends of turns."""
    from punchlist.views.series import read_series

    series = read_series(cli.services().store, slug, days=days)
    cli.show(series.as_json(), _lines(series, days))


def _lines(series: MissionSeries, days: int) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import fit_line, line_width

    yield f"{plural(days, 'day')} since {series.since} ({visible(series.timezone)})"
    yield "\nTodos by status at the end of each day"
    yield from (fit_line(line, line_width()) for line in _flow_lines(series))
    yield "\nEnded todos"
    yield from _throughput_lines(series)
    times = series.cycle_times
    if times.median_seconds is not None and times.p85_seconds is not None:
        shown = f"median {_duration(times.median_seconds)}, 85% within {_duration(times.p85_seconds)}"
        yield f"\nCycle time from start to completion: {shown} ({plural(times.todos, 'todo')})"
    yield "\nSpend"
    yield from _spend_lines(series)
    yield from _turn_lines(series)


def _flow_lines(series: MissionSeries) -> Iterator[str]:
    from punchlist.surfaces.plot import sparkline

    for status in series.flow[-1].counts:
        counts = [each.counts[status] for each in series.flow]
        yield f"  {status.replace('_', ' '):<12} {counts[0]:>5} → {counts[-1]:<5} {sparkline(counts)}"


def _throughput_lines(series: MissionSeries) -> Iterator[str]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in series.throughput:
        totals[each.pillar][0] += each.completed
        totals[each.pillar][1] += each.cancelled
    for pillar, (completed, cancelled) in sorted(totals.items()):
        yield f"  {visible(pillar)}: {completed} completed, {cancelled} cancelled"
    if not totals:
        yield "  None."


def _spend_lines(series: MissionSeries) -> Iterator[str]:
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0, 0])
    for each in series.spend:
        used = each.requests, each.input_tokens, each.output_tokens, each.cost
        totals[each.pillar or "the Lead"] = [
            a + b for a, b in zip(totals[each.pillar or "the Lead"], used, strict=True)
        ]
    for pillar, (requests, tokens_in, tokens_out, cost) in sorted(totals.items()):
        price = f", ${cost:,.4f}" if cost else ""
        tokens = f"{tokens_in:,.0f} tokens in, {tokens_out:,.0f} out"
        yield f"  {visible(pillar)}: {plural(int(requests), 'request')}, {tokens}{price}"
    if not totals:
        yield "  Nothing."


def _turn_lines(series: MissionSeries) -> Iterator[str]:
    totals: dict[str, int] = defaultdict(int)
    for each in series.turns:
        totals[each.reason] += each.turns
    if totals:
        rate = f"; {series.finish_rate:.0%} of those that ended are completed" if series.finish_rate is not None else ""
        reasons = ", ".join(f"{visible(reason)} {number}" for reason, number in sorted(totals.items()))
        yield f"\nTurns: {reasons}{rate}"


def _duration(seconds: float) -> str:
    if seconds >= _DAY:
        return f"{seconds / _DAY:.1f} days"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"
