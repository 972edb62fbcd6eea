"""Values as JSON objects with camelCase names."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any


@cache
def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def camel_json(value: Any, *names: str) -> dict[str, Any]:
    """The named fields of a named tuple or data class, in this order; without names, all of them."""
    chosen = names or getattr(value, "_fields", ()) or [field.name for field in fields(value)]
    return {camel_case(name): getattr(value, name) for name in chosen}
