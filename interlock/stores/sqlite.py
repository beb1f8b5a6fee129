"""SQLite: one file for all processes of a machine, by the standard library's driver.

Write-ahead log, so readers never wait; one writer at a time, who waits its turn. ``synchronous=FULL``: a commit is on
the disk when it returns. The file is made readable by its owner only; the log beside it takes the same mode.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.stores.sql import Cursor, Rows, T, Taken, Values, check_schema
from interlock.stores.sql_store import SqlStore

MAX_IDLE: Final = 8


class SqliteStore(SqlStore):
    """Implements :class:`interlock.ports.Store` in one file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes = b"",
        durability: Literal["full", "process"] = "full",
        timeout: float = 30.0,
    ) -> None:
        """
        Args:
            path: of a file that was made by ``interlock store migrate`` or :meth:`migrate`.
            key: secret for the MAC of the heads. Without one, whoever can write the file can forge them.
            durability: ``full`` survives a loss of power; ``process`` survives a crash of the process only, and may
                lose what was acknowledged last when the machine stops.
            timeout: seconds to wait for another writer.

        Raises:
            Misconfigured: there is no such file, others may read it, or its schema is not the one of this version.
            JournalUnavailable: it can't be read.
        """
        database = SqliteDatabase(Path(os.path.abspath(path)), durability, timeout)
        try:
            database.require_schema()
        except BaseException:
            database.close()
            raise
        super().__init__(database, key)
        self.path = database.path

    @property
    def files(self) -> tuple[Path, ...]:
        """Whoever can change these can change the record: the file, and what SQLite keeps beside it."""
        return tuple(self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))

    def settle(self) -> None:
        """See :meth:`interlock.stores.sql_store.SqlStore.settle`. The log is moved into the file and cut off."""
        self.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    @staticmethod
    def migrate(path: str | os.PathLike[str]) -> bool:
        """Make the file, or bring it to the schema of this version. An act of the operator; nothing does it implicitly.

        A folder that is missing is made, mode 0700; the file is made with mode 0600.

        Returns:
            Whether anything had to be done.

        Raises:
            Misconfigured: everybody may write to the folder, or a later version made the file.
            JournalUnavailable: it can't be written.
        """
        from interlock.stores.migrate import migrate_sqlite

        return migrate_sqlite(Path(os.path.abspath(path)))

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path.name}>"


class SqliteDatabase:
    """Implements :class:`interlock.stores.sql.Database`."""

    lock = ""  # a transaction that began with BEGIN IMMEDIATE has the only right to write
    changes_and_inserts = False

    def __init__(self, path: Path, durability: Literal["full", "process"] = "full", timeout: float = 30.0) -> None:
        if durability not in ("full", "process"):
            raise Misconfigured(f"durability is 'full' or 'process', not {durability!r}")
        self.path = path
        self._synchronous = "FULL" if durability == "full" else "NORMAL"
        self._timeout = timeout
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._idle: list[sqlite3.Connection] = []
        self._file: tuple[int, int] | None = None
        self._inherited: list[sqlite3.Connection] = []
        # Threads of one process queue here; SQLite itself would let them poll.
        self._writing = threading.Lock()

    def require_schema(self) -> None:
        """Raises Misconfigured unless the file is there, its owner's own, and of this version's schema."""
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            raise Misconfigured(f"{self.path}: there is no store; `interlock store migrate` makes one") from None
        except OSError as error:
            raise JournalUnavailable(f"{self.path}: {error.strerror}") from error
        if os.name == "posix" and stat.S_IMODE(mode) & 0o007:
            raise Misconfigured(f"{self.path}: others may open it (mode {stat.S_IMODE(mode):04o}); chmod it to 0600")
        try:
            found = self.rows("SELECT version_num FROM interlock_schema")
        except JournalUnavailable as error:
            if "no such table" not in str(error):
                raise
            found = []
        check_schema(str(self.path), [row[0] for row in found])

    def rows(self, statement: str, values: Values = ()) -> Rows:
        """See :meth:`interlock.stores.sql.Database.rows`."""
        with self._connected() as connection:
            return connection.execute(statement, values).fetchall()

    def once(self, statement: str, values: Values) -> int:
        """See :meth:`interlock.stores.sql.Database.once`."""
        return self.transact(lambda cursor: cursor.run(statement, values))

    def transact(self, work: Callable[[Cursor], T]) -> T:
        """See :meth:`interlock.stores.sql.Database.transact`."""
        self._forked()
        with self._writing:
            return self._transacted(work)

    def _transacted(self, work: Callable[[Cursor], T]) -> T:
        file = self._same_file()
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            done = work(_Cursor(connection))
            connection.execute("COMMIT")
            if self._same_file() != file:
                raise JournalUnavailable(f"{self.path}: the file was replaced while it was written to")
            return done

    def close(self) -> None:
        """See :meth:`interlock.stores.sql.Database.close`."""
        self._forked()
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection; back in the pool if nothing is wrong with it, whatever happened to the transaction."""
        self._forked()
        if self._closed:
            raise JournalUnavailable(f"{self.path}: the store is closed")
        file = self._same_file()
        try:
            connection = self._idle_one() or self._connect()
        except sqlite3.Error as error:
            raise self._unavailable(error) from error
        whole = False
        try:
            yield connection
            whole = True
        except sqlite3.IntegrityError as error:
            raise Taken from error
        except sqlite3.Error as error:
            raise self._unavailable(error) from error
        finally:
            if whole or self._undone(connection):
                self._keep(connection, file)

    def _same_file(self) -> tuple[int, int]:
        """Which file stands there; if it is another one than before, what was open is let go of.

        A file that was put in the place of the open one is opened anew, and what it lacks is found. Written to the old
        one, or through its log to both, would be lost or would destroy either.
        """
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise JournalUnavailable(f"{self.path}: {error.strerror}") from error
        file = (found.st_dev, found.st_ino)
        if file != self._file:
            self._file = file
            while (old := self._idle_one()) is not None:
                old.close()
        return file

    def _idle_one(self) -> sqlite3.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:  # none, or another thread took the last one
            return None

    def _undone(self, connection: sqlite3.Connection) -> bool:
        """Roll back what was begun. A connection that can't even do that is closed, which undoes it too."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return False
        return True

    def _keep(self, connection: sqlite3.Connection, file: tuple[int, int]) -> None:
        if self._closed or file != self._file or len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def _forked(self) -> None:
        """A connection must not cross a fork: not even to be closed, which would let go of the parent's locks."""
        if self._pid != os.getpid():
            inherited = [*self._idle, *self._inherited]
            self._begin()
            self._inherited = inherited

    def _connect(self) -> sqlite3.Connection:
        return connect(self.path, self._synchronous, self._timeout)

    def _unavailable(self, error: sqlite3.Error) -> JournalUnavailable:
        return JournalUnavailable(f"{self.path}: {error}")


class _Cursor:
    """Implements :class:`interlock.stores.sql.Cursor`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values = ()) -> Rows:
        return self._connection.execute(statement, values).fetchall()

    def run(self, statement: str, values: Values = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def run_many(self, statement: str, values: Sequence[Values]) -> None:
        self._connection.executemany(statement, values)


def _with_log(connection: sqlite3.Connection, timeout: float) -> tuple[str]:
    """Switch to a write-ahead log. SQLite does not wait here for another connection that does the same: it says at once
    that the file is locked, whatever its time-out."""
    until = time.monotonic() + timeout
    while True:
        try:
            found: tuple[str] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return found


def connect(path: Path, synchronous: str = "FULL", timeout: float = 30.0) -> sqlite3.Connection:
    """A connection to a file that exists, with everything set that durability depends on.

    Raises:
        sqlite3.Error: there is none, or the file system can't have a write-ahead log.
    """
    uri = f"{path.as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True)
    try:
        (mode,) = _with_log(connection, timeout)
        if mode != "wal":
            raise sqlite3.OperationalError(f"the file system can't keep a write-ahead log (journal mode {mode})")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA fullfsync=ON")  # on macOS fsync alone does not reach the disk
        connection.execute("PRAGMA checkpoint_fullfsync=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA secure_delete=ON")  # erased content is overwritten
    except BaseException:
        connection.close()
        raise
    return connection
