"""Proves that every store does what `interlock.testing.stores` asks of it (T2, T8, T10, T11, T16).

Mutations that it is shown to catch: names compared without case or normal form, a namespace left out of one query, the
version check dropped, the turn check dropped, the loser's labels dropped, a message's retirement forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from interlock.ports import Store, Summaries
from interlock.stores.memory_facts import MemorySummaries
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sql_store import SqlStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing import stores
from interlock.testing.backlog import check_backlog
from interlock.testing.stores import Factory
from tests.servers import Server, cluster

# Every turn of the acceptance where it counts; a look elsewhere.
TURNS = 200 if os.environ.get("INTERLOCK_CI") or os.environ.get("INTERLOCK_PROFILE") == "deep" else 10

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
SHARED = KINDS[1:]


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "store.db"
    assert SqliteStore.migrate(path)
    return path


@pytest.fixture(scope="module")
def postgres_dsn(postgres_server: Server) -> str:
    return postgres_server.fresh()


@pytest.fixture
def factory(request: pytest.FixtureRequest) -> Factory:
    match request.param:
        case "memory":
            return MemoryStore().again
        case "sqlite":
            return partial(SqliteStore, request.getfixturevalue("sqlite_file"))
        case _:
            from interlock.stores.postgres import PostgresStore

            dsn = request.getfixturevalue("postgres_dsn")
            return partial(PostgresStore, dsn, connections=4, timeout=60, plaintext=True)


@pytest.mark.parametrize("factory", KINDS, indirect=True)
@pytest.mark.parametrize("check", stores.CHECKS, ids=lambda one: one.__name__)
def test_store(check: object, factory: Factory) -> None:
    check(factory)  # type: ignore[operator]


@pytest.mark.parametrize("factory", SHARED, indirect=True)
@pytest.mark.parametrize("check", stores.PROCESS_CHECKS, ids=lambda one: one.__name__)
def test_processes(check: object, factory: Factory) -> None:
    check(factory)  # type: ignore[operator]


@pytest.mark.parametrize("factory", SHARED, indirect=True)
def test_eight_processes(factory: Factory) -> None:
    stores.check_eight_processes(factory, turns=TURNS)


@pytest.mark.parametrize("factory", KINDS, indirect=True)
def test_a_backlog_after_an_outage_of_the_summariser(factory: Factory) -> None:
    in_memory = MemorySummaries()

    def summaries(store: Store) -> Summaries:
        return SqlFacts(store) if isinstance(store, SqlStore) else in_memory

    check_backlog(factory, summaries)


def test_one_call_runs_all(tmp_path: Path) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    stores.check_store(partial(SqliteStore, tmp_path / "store.db"), turns=1)


def test_disk_full_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that may not grow, by SQLite's own limit: its error is that of a full disk."""
    SqliteStore.migrate(tmp_path / "store.db")
    opened: list[SqliteStore] = []

    def factory() -> SqliteStore:
        opened.append(SqliteStore(tmp_path / "store.db"))
        return opened[-1]

    @contextmanager
    def outage() -> Iterator[None]:
        connections = opened[0].database._idle  # type: ignore[attr-defined]
        for connection in connections:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        yield
        for connection in connections:
            connection.execute("PRAGMA max_page_count = 1073741823")

    stores.check_outage(factory, outage, reads=True)


@pytest.mark.postgres
def test_server_killed_and_restarted() -> None:
    """The server dies as in a loss of power, and comes back; the store that was open goes on."""
    from interlock.stores.postgres import PostgresStore

    with cluster() as running:
        PostgresStore.migrate(running.dsn)

        @contextmanager
        def outage() -> Iterator[None]:
            running.kill()
            yield
            running.start()

        stores.check_outage(partial(PostgresStore, running.dsn, timeout=2), outage)
