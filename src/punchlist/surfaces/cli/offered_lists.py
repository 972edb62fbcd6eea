"""The choice of lists on the command line. Kept apart so that `--help` loads nothing else."""

from __future__ import annotations

from enum import StrEnum


class OfferedLists(StrEnum):
    PLAN = "plan"
    CHECKLIST = "checklist"
    BOTH = "both"
