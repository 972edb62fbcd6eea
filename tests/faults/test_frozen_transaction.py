"""PostgreSQL: nobody waits for ever for a process that froze inside a transaction (trust test 2)."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from tests.faults.mission_worker import until
from tests.faults.processes import ROOT, module
from tests.faults.script import Script

from punchlist.audit.check import check
from punchlist.errors import StoreBusy
from punchlist.storage.open import open_store
from punchlist.storage.postgres import LIMITS
from punchlist.storage.schema_version import APPLICATION_ID, SCHEMA_VERSION
from punchlist.storage.store import ConnectionPool, Store

pytestmark = pytest.mark.spec("X7")
IDLE: Final = "idle_in_transaction_session_timeout"


def limited(url: str, **limits: str) -> str:
    """The address with other limits of time."""
    options = "%20".join(f"-c%20{name}%3D{value}" for name, value in limits.items())
    return f"{url}{'&' if '?' in url else '?'}options={options}"


@contextmanager
def opened(address: str) -> Iterator[Store]:
    store = open_store(address)
    yield store
    store.close()


def values(store: Store, *, long: bool = False) -> dict[str, str]:
    with store.read(long=long) as tx:
        return {name: tx.raw(f"SHOW {name}")[0][0] for name in LIMITS}


def test_others_go_on_after_a_process_froze_inside_a_transaction(postgres_url: str) -> None:
    script = Script(postgres_url)
    script.house.checklists.add(script.scope, "Before", reason="a test")
    frozen = subprocess.Popen(
        module("tests.faults.frozen_writer", limited(postgres_url, **{IDLE: "1s"})),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert frozen.stdout is not None
    with frozen.stdout as said:
        try:
            assert said.readline() == "locked\n"
            begun = time.monotonic()
            script.house.checklists.add(script.scope, "After", reason="a test")
            assert time.monotonic() - begun < 10, "the limit is a second"
            frozen.send_signal(signal.SIGCONT)
            told = said.readline()
        finally:
            frozen.kill()
            frozen.wait()
    assert told.startswith("StoreBusy: ")
    assert "ended a transaction in which this process did nothing for too long" in told
    assert told.endswith("Nothing was changed; try again.\n")
    assert [item.content for item in script.house.checklists.get("s").items] == ["Before", "After"]
    assert script.problems() == []
    script.close()


def test_every_connection_has_limits_and_the_address_can_set_others(prepared_postgres_url: str) -> None:
    with opened(prepared_postgres_url) as store:
        assert values(store) == {"statement_timeout": "1min", "lock_timeout": "30s", IDLE: "20s"}
        assert values(store, long=True) == {"statement_timeout": "0", "lock_timeout": "0", IDLE: "10min"}
        assert values(store)["statement_timeout"] == "1min", "of the transaction only"
        parameters = store.database.parameters  # type: ignore[attr-defined]
        assert {"connect_timeout", "keepalives", "tcp_user_timeout"} <= set(parameters)
    other = limited(prepared_postgres_url, statement_timeout="5min") + "&connect_timeout=3"
    with opened(other) as store:
        assert values(store) == {"statement_timeout": "5min", "lock_timeout": "30s", IDLE: "20s"}
        assert "connect_timeout" not in store.database.parameters  # type: ignore[attr-defined]


def test_a_statement_that_takes_too_long_is_stopped_and_says_so(prepared_postgres_url: str) -> None:
    with opened(limited(prepared_postgres_url, statement_timeout="300ms")) as store:
        with (
            pytest.raises(StoreBusy, match=r"stopped a statement .*Nothing was changed; try again"),
            store.read() as tx,
        ):
            tx.raw("SELECT pg_sleep(30)")
        with store.read(long=True) as tx:
            assert tx.raw("SELECT 1 FROM pg_sleep(0.6)") == [(1,)]


def test_a_lock_that_is_kept_too_long_is_reported(prepared_postgres_url: str) -> None:
    with (
        opened(limited(prepared_postgres_url, lock_timeout="300ms")) as store,
        psycopg.connect(prepared_postgres_url) as holder,
    ):
        holder.execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy, match="another process has kept a lock for too long"), store.read() as tx:
            tx.raw("SELECT count(*) FROM conversations")


def _create(url: str) -> None:
    open_store(url).close()


def _check(url: str) -> None:
    with opened(url) as store:
        assert check(store, SCHEMA_VERSION).healthy


@pytest.mark.parametrize(
    ("work", "lock"),
    [
        (_create, f"SELECT pg_advisory_lock({APPLICATION_ID})"),
        (_check, "LOCK TABLE events IN ACCESS EXCLUSIVE MODE"),
    ],
    ids=["upgrade", "check"],
)
def test_maintenance_is_not_cut_by_the_limits(postgres_url: str, work: Callable[[str], None], lock: str) -> None:
    if work is _check:
        _create(postgres_url)
    url = limited(postgres_url, statement_timeout="300ms", lock_timeout="300ms")
    with (
        psycopg.connect(postgres_url, autocommit=True) as observer,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(postgres_url) as holder,
    ):
        holder.execute(lock.encode())
        working = pool.submit(work, url)

        def waits_for_long() -> Any:
            long = "state = 'active' AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '600 ms'"
            found = observer.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {long}".encode()).fetchone()
            return working.done() or (found and found[0])

        until(waits_for_long, "the maintenance waits")
        holder.execute("SELECT pg_advisory_unlock_all()")
        holder.commit()
        working.result(30)


def test_a_pool_says_that_all_its_connections_are_in_use() -> None:
    pool = ConnectionPool(object, lambda _: True, size=1, seconds=0.01)
    taken = pool.acquire()
    with pytest.raises(StoreBusy, match=r"All 1 database connections of this process are in use.*pool_size"):
        pool.acquire()
    pool.release(taken)
    assert pool.acquire() is taken
