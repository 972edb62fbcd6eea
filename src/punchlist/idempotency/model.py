"""Values of idempotent requests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple


class StoredAnswer(NamedTuple):
    """A row of `answered_requests`."""

    client: str
    """The id of the access token."""
    request_key: str
    fingerprint: str
    status: int
    """0 while a request that runs outside a transaction has no answer."""
    headers: str
    """JSON."""
    body: str
    answered_at: str


class Answer(NamedTuple):
    """A response, as it is stored and repeated."""

    status: int
    headers: dict[str, str]
    body: str


def fingerprint(parts: Sequence[bytes]) -> str:
    """Identifies the content of a request, so that a key cannot be used for another one."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
