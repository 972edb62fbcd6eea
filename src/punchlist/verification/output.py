"""Output of checks, for comparison: what differs between two runs with the same result is left out."""

from __future__ import annotations

import re
from typing import Final

from punchlist.verification.model import CheckOutcome, Verification

_VARYING: Final = re.compile(
    r"0x[0-9a-fA-F]+|/tmp/\S+|\d{4}-\d\d-\d\d[T ]?|\d+:\d\d(?::\d\d)?|"
    r"\d+(?:[.,]\d+)?\s*(?:ms|µs|us|ns|s|sec|secs|seconds?|m|min|minutes?)\b"
)
"""Times, addresses and temporary files."""


def stable_output(output: str) -> str:
    return _VARYING.sub("", output)


def failure_key(verification: Verification) -> str:
    """Identifies the failure of an item's last check; empty if it did not fail."""
    result = verification.result
    if result is None or result.outcome is not CheckOutcome.FAILED:
        return ""
    return stable_output(result.output) or "failed"
