"""Tool calls on a page: their arguments for reading, and what they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from punchlist.views.call_text import call_diff, call_summary

MAX_ARGUMENTS: Final = 20_000
_MAX_SUMMARY: Final = 200


def shown_arguments(tool: str, arguments: object) -> str:
    """The change that the call makes as a diff, a single text as it is, others as indented JSON."""
    if isinstance(arguments, Mapping):
        if diff := call_diff(tool, arguments):
            return diff[:MAX_ARGUMENTS]
        values = list(arguments.values())
        if len(values) == 1 and isinstance(values[0], str):
            return values[0][:MAX_ARGUMENTS]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, indent=2, ensure_ascii=False)
    return text[:MAX_ARGUMENTS]


def summary_of(arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return ""
    return " ".join(call_summary(arguments).split())[:_MAX_SUMMARY]
