"""Proves that the SQLite store is its owner's, is migrated explicitly, and survives threads, forks and strange files.

Mutations that it is shown to catch: the file made by the umask, the schema made on opening, a connection taken across a
fork, `synchronous=FULL` dropped.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.stores.sql import SCHEMA
from interlock.stores.sqlite import SqliteStore, _with_log
from interlock.testing.stores import FILES, WEB, admitted, begun, check_chain, fresh, labels


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "store.db"
    assert SqliteStore.migrate(path)
    return path


def test_files_are_their_owners(path: Path) -> None:
    store = SqliteStore(path)
    view = store.within(fresh())
    begun(view)
    assert mode(path.parent) == 0o700
    assert [mode(one) for one in store.files] == [0o600] * 3
    store.close()


def test_others_may_not_open_it(path: Path) -> None:
    path.chmod(0o604)
    with pytest.raises(Misconfigured, match="0604"):
        SqliteStore(path)


def test_a_folder_for_everybody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(Misconfigured, match="swap"):
        SqliteStore.migrate(tmp_path / "open" / "store.db")
    assert not (tmp_path / "open" / "store.db").exists()


def test_nothing_is_made_by_opening(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="interlock store migrate"):
        SqliteStore(tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch(0o600)
    with pytest.raises(Misconfigured, match="no schema yet"):
        SqliteStore(tmp_path / "empty.db")
    assert SqliteStore.migrate(tmp_path / "empty.db")
    assert not SqliteStore.migrate(tmp_path / "empty.db")


@pytest.mark.parametrize(("number", "says"), [("9999", "later version"), ("0000", "older")])
def test_another_schema_is_an_error(path: Path, number: str, says: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE interlock_schema SET version_num = ?", (number,))
    connection.close()
    with pytest.raises(Misconfigured, match=says):
        SqliteStore(path)
    if number > SCHEMA:
        with pytest.raises(Misconfigured, match="nothing was changed"):
            SqliteStore.migrate(path)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database at all, and long enough to be looked at" * 100)
    (tmp_path / "store.db").chmod(0o600)
    for act in (lambda: SqliteStore(tmp_path / "store.db"), lambda: SqliteStore.migrate(tmp_path / "store.db")):
        with pytest.raises(JournalUnavailable, match="not a database"):
            act()


def test_two_migrations_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def migrate(_: int) -> bool:
        together.wait()
        return SqliteStore.migrate(tmp_path / "store.db")

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(migrate, range(4))) == [False, False, False, True]
    SqliteStore(tmp_path / "store.db").close()


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("process", 1)])
def test_what_durability_means(path: Path, durability: str, synchronous: int) -> None:
    store = SqliteStore(path, durability=durability)  # type: ignore[arg-type]
    assert store.database.rows("PRAGMA synchronous") == [(synchronous,)]
    assert store.database.rows("PRAGMA journal_mode") == [("wal",)]
    store.close()
    with pytest.raises(Misconfigured, match="durability"):
        SqliteStore(path, durability="none")  # type: ignore[arg-type]


def test_a_writer_that_waits_too_long(path: Path) -> None:
    store = SqliteStore(path, timeout=0.05)
    view = store.within(fresh())
    name = begun(view)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match="locked"):
        view.append(name, [admitted(WEB)])
    assert view.state(name).version == 1, "readers do not wait"
    other.execute("ROLLBACK")
    other.close()
    assert labels(view.append(name, [admitted(WEB)])) == {WEB}
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_goes_on_with_connections_of_its_own(path: Path) -> None:
    store = SqliteStore(path)
    view = store.within(fresh())
    name = begun(view)
    holding = threading.Event()
    done = threading.Event()

    def hold() -> None:
        with store.database._writing:  # type: ignore[attr-defined]
            holding.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    # While a thread that the child does not have holds the lock for writing.
    child = multiprocessing.get_context("fork").Process(target=lambda: view.append(name, [admitted(WEB)]))
    child.start()
    child.join(30)
    done.set()
    thread.join()
    assert child.exitcode == 0
    assert labels(view.append(name, [admitted(FILES)])) == {WEB, FILES}
    check_chain(view, name)
    store.close()


def test_closing_is_for_good(path: Path) -> None:
    store = SqliteStore(path)
    view = store.within(fresh())
    name = begun(view)
    store.close()
    store.close()
    with pytest.raises(JournalUnavailable, match="closed"):
        view.append(name, [admitted(WEB)])


def test_importing_interlock_loads_no_database() -> None:
    code = (
        "import sys, interlock; print([m for m in ('sqlite3', 'psycopg', 'alembic', 'sqlalchemy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    code = "import sys; from interlock.stores.sqlite import SqliteStore; print('alembic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_log_that_another_connection_is_making_is_waited_for(tmp_path: Path) -> None:
    """SQLite answers at once there, without its time-out: two migrations at the same moment found the file locked."""
    answers = [_locked(), _locked(), ("wal",)]

    class Connection:
        def execute(self, _text: str) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, sqlite3.OperationalError):
                raise answer
            return SimpleNamespace(fetchone=lambda: answer)

    assert _with_log(Connection(), 5.0) == ("wal",)  # type: ignore[arg-type]
    answers[:] = [_locked()]
    with pytest.raises(sqlite3.OperationalError):
        _with_log(Connection(), 0.0)  # type: ignore[arg-type]
    answers[:] = [_locked(sqlite3.SQLITE_READONLY), ("wal",)]
    with pytest.raises(sqlite3.OperationalError):
        _with_log(Connection(), 5.0)  # type: ignore[arg-type]


def _locked(code: int = sqlite3.SQLITE_BUSY) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = code
    return error
