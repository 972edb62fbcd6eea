"""Short references to the items of a list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MIN_PART: Final = 4
"""Characters of an id that are enough to name an item, if no other id has them."""


def matching_ids(ids: Sequence[str], reference: str) -> list[str]:
    """The ids that a reference means: the id itself, else its number from 1, else the beginning or end of ids.

    `ids` are in the order of the list. More than one result means that the reference is ambiguous.
    """
    if reference in ids:
        return [reference]
    if position(reference) in range(1, len(ids) + 1):
        return [ids[position(reference) - 1]]
    return matching_parts(ids, reference)


def matching_parts(ids: Sequence[str], reference: str) -> list[str]:
    """The ids that begin or end with a reference of at least `MIN_PART` characters."""
    part = reference.casefold()
    if len(part) < MIN_PART:
        return []
    return [id for id in ids if id.casefold().startswith(part) or id.casefold().endswith(part)]


def position(reference: str) -> int:
    """The number that a reference is; 0 if it is none."""
    return int(reference) if reference.isascii() and reference.isdecimal() and len(reference) < 10 else 0
