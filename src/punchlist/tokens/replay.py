"""Compares an access token with its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from punchlist.kernel.events import Event
from punchlist.storage.store import Transaction
from punchlist.tokens import repository
from punchlist.tokens.lifecycle import ENDINGS, TokenAction


def compare(tx: Transaction, id: str, events: Sequence[Event]) -> Iterator[str]:
    token = repository.find(tx, id)
    created = next((event.payload() for event in events if event.action == TokenAction.CREATE), None)
    revoked_at = next((event.at for event in events if event.action in ENDINGS), None)
    if token is None or (token.event_data(), token.revoked_at) != (created, revoked_at):
        yield f"token:{id}: it differs from its events"
