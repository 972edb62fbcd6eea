"""Arguments of a call as a person edits them: JSON. Pure."""

from __future__ import annotations

import json
from typing import Any


def parse_arguments(text: str) -> tuple[dict[str, Any] | None, str]:
    """The arguments, or None and what is wrong with them."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"This is not JSON ({error})."
    if not isinstance(found, dict):
        return None, "The arguments must be a JSON object."
    return found, ""
