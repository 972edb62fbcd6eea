"""JSON in the texts of models, tools and the database, which need not be valid."""

from __future__ import annotations

import json
from typing import Any


def json_or_text(text: str) -> Any:
    """The value of a JSON text; a text that is not JSON stays a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def json_object(text: str) -> dict[str, Any]:
    """The object of a JSON text; empty if it has none."""
    found = json_or_text(text)
    return found if isinstance(found, dict) else {}
