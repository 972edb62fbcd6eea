"""Reviews of cycles that wait for a person, so that later cycles go on without one.

Each cycle sweeps deadlines, collects metrics and plans the pillars. Its review by the Lead can wait for an approval or
be paused. Up to `MAX_RESTING` reviews wait at a time; a cycle beyond that leaves its review out and says so, so that
unanswered questions do not add up. The first cycle after an answer is reviewed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.kernel.text import excerpt, visible
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RESTING
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Transaction

MAX_RESTING: Final = 3
"""Reviews of one mission, and planning runs of one pillar, that wait for a person."""
_MAX_REPORT_LENGTH: Final = 1_000


def waiting_reviews(tx: Transaction, mission_id: str) -> list[Run]:
    """The cycles whose review waits for a person or is paused, oldest first. A cycle has a turn since its review."""
    cycles = run_repository.open_of_kind(tx, mission_id, RunKind.CYCLE.value)
    return sorted(
        (cycle for cycle in cycles if cycle.status in RESTING and cycle.turn_id is not None),
        key=lambda cycle: (cycle.created_at, cycle.id),
    )


def skipped_review_text(waiting: Sequence[Run], reports: Sequence[tuple[str, str]]) -> str:
    """The report of a cycle without a review. `reports` are the owners' by pillar slug."""
    lines = [f"- Cycle {run.id} is {run.status} since {run.changed_at}: {visible(run.why)}" for run in waiting]
    planned = [f"{pillar}: {excerpt(text, _MAX_REPORT_LENGTH)}" for pillar, text in reports]
    return "\n".join(
        [
            f"The review was left out: {len(waiting)} earlier reviews of this mission wait for a person.",
            *lines,
            "`punchlist inbox` lists what they wait for. Deadlines were handled, metrics collected, pillars planned:",
            *planned,
        ]
    )
