"""Proves that a store whose n-th statement fails refuses what it could not write, and forgets nothing (T2, T4, T16).

For every n, before the statement and after it: a disk that is full, once and from then on; for PostgreSQL also a server
that ends the connection. Afterwards the same store goes on.

Mutations that it is shown to catch: what was written is remembered before the commit returned, a failed transaction is
not undone, a lost commit is taken for a written one.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.conversations import Conversations
from interlock.errors import Conflict, JournalUnavailable
from interlock.ports import Store
from interlock.stores.sqlite import SqliteStore
from tests.faults import turns_that_die
from tests.faults.test_store_crashes import TYPED, judge
from tests.faults.turns_that_die import NAMESPACE, Boundaries
from tests.servers import Server


def full() -> None:
    raise sqlite3.OperationalError("database or disk is full")


def attempt(store: Store, boundaries: Boundaries, at: int, act: Callable[[], None], persistent: bool) -> int:
    """One turn with a fault; returns the number of places that it passed."""
    boundaries.at = 0
    stored = Conversations(store, NAMESPACE).new(TYPED)
    told: list[str] = []
    boundaries.count, boundaries.at, boundaries.act, boundaries.persistent = 0, at, act, persistent
    try:
        turns_that_die.turn(store, stored.id, told.append)
    except (JournalUnavailable, Conflict):
        told.append("refused")
    passed = boundaries.count
    boundaries.at = 0
    judge(store, stored.id, told)
    # The same store goes on as if nothing had happened.
    after: list[str] = []
    turns_that_die.turn(store, stored.id, after.append)
    assert any(line.startswith("turn ") for line in after)
    judge(store, stored.id, [*told, *after])
    return passed


@pytest.mark.parametrize("persistent", [False, True], ids=["once", "from then on"])
def test_disk_full_at_every_statement_sqlite(tmp_path: Path, persistent: bool) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    boundaries = Boundaries(0, full)
    store = turns_that_die.opened("sqlite", str(tmp_path / "store.db"), boundaries, durability="process")
    places = attempt(store, boundaries, 0, full, persistent)
    assert places > 40, "the boundaries are not counted"
    for at in range(1, places + 1):
        attempt(store, boundaries, at, full, persistent)
    store.close()


@pytest.mark.postgres
@pytest.mark.parametrize("fault", ["full", "full from then on", "connection lost"])
def test_every_statement_postgres(postgres_server: Server, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    import psycopg

    from interlock.stores.postgres import PostgresStore

    name = secrets.token_hex(8)
    dsn = f"{postgres_server.fresh()} application_name={name}"
    boundaries = Boundaries(0, full)
    for owner, method in ((psycopg.Connection, "execute"), (psycopg.Cursor, "executemany")):
        monkeypatch.setattr(owner, method, boundaries.around(getattr(owner, method)))
    other = psycopg.connect(postgres_server.dsn, autocommit=True)
    ending = psycopg.Cursor(other)  # its statements are not counted

    def disk_full() -> None:
        raise psycopg.errors.DiskFull("could not extend file")

    def connection_lost() -> None:
        ending.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s", (name,)
        )

    act = connection_lost if fault == "connection lost" else disk_full
    store = PostgresStore(dsn, plaintext=True, connections=1, durability="process", timeout=0.5)
    places = attempt(store, boundaries, 0, act, False)
    assert places > 40, "the boundaries are not counted"
    # Waiting for a new connection takes long: some places, the commits among them.
    for at in range(1, places + 1, 1 if fault == "full" else 5):
        attempt(store, boundaries, at, act, fault == "full from then on")
    store.close()
    other.close()
