"""Answers a request once. The change and its answer are stored in one transaction, so that a request that is repeated
after a lost response, a crash or at the same moment changes nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from punchlist.errors import Conflict, InvalidInput
from punchlist.idempotency import repository
from punchlist.idempotency.model import Answer, StoredAnswer
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import excerpt, line_problem
from punchlist.storage.store import Store, Transaction

MAX_KEY_LENGTH: Final = 200
KEPT: Final = timedelta(days=7)


class KeyReused(Conflict):
    """An idempotency key was used for another request before."""

    code = "key_reused"


class IdempotentRequests:
    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, client: str, key: str, fingerprint: str) -> Answer | None:
        """What was answered before."""
        if problem := line_problem(key, max_length=MAX_KEY_LENGTH):
            raise InvalidInput(f"Idempotency-Key: {problem}")
        with self._store.read() as tx:
            found = repository.find(tx, client, key)
        return _repeat(found, fingerprint) if found is not None else None

    def answer(self, client: str, key: str, fingerprint: str, work: Callable[[], Answer]) -> tuple[Answer, bool]:
        """The answer, and whether it was given before. `work` must not wait for anything but the database."""
        with self._store.join() as tx:
            row = StoredAnswer(client, key, fingerprint, 0, "{}", "", tx.now())
            if not tx.run(repository.RESERVE, **row._asdict()):
                found = repository.find(tx, client, key)
                assert found is not None
                return _repeat(found, fingerprint), True
            given = work()
            _store(tx, client, key, given)
            return given, False

    def answer_alone(self, client: str, key: str, fingerprint: str, work: Callable[[], Answer]) -> tuple[Answer, bool]:
        """As `answer`, for work that waits for a process, so that it cannot be part of a transaction.

        It is done at most once: if this process ends before the answer is stored, a repeated request is refused.
        """
        with self._store.write() as tx:
            row = StoredAnswer(client, key, fingerprint, 0, "{}", "", tx.now())
            if not tx.run(repository.RESERVE, **row._asdict()):
                found = repository.find(tx, client, key)
                assert found is not None
                return _repeat(found, fingerprint), True
        try:
            given = work()
        except BaseException:
            with self._store.write() as tx:
                tx.run(repository.RELEASE, client=client, request_key=key)
            raise
        with self._store.write() as tx:
            _store(tx, client, key, given)
        return given, False

    def forget_old(self) -> None:
        before = timestamp(self._store.clock() - KEPT)
        with self._store.write() as tx:
            tx.run(repository.FORGET, before=before)


def _store(tx: Transaction, client: str, key: str, given: Answer) -> None:
    tx.run(
        repository.STORE,
        client=client,
        request_key=key,
        status=given.status,
        headers=json.dumps(given.headers),
        body=given.body,
    )


def _repeat(found: StoredAnswer, fingerprint: str) -> Answer:
    if found.fingerprint != fingerprint:
        raise KeyReused(f"The key {excerpt(found.request_key)!r} was used for another request before. Use a new one.")
    if not found.status:
        raise Conflict(
            "This request was received before and has no answer yet. Look at what it changed before you send it again."
        )
    return Answer(found.status, json.loads(found.headers), found.body)
