"""PostgreSQL, 15 or newer: for many processes on many machines, by psycopg and its pool.

Every write locks its conversation's head row, so writers of one conversation queue and those of others do not. A
connection to another machine is encrypted and its server's certificate checked, unless the operator says otherwise.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.stores.sql import CommitUnknown, Cursor, Rows, T, Taken, Values, check_schema
from interlock.stores.sql_store import SqlStore

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise ImportError("interlock.stores.postgres needs `pip install interlock[postgres]`") from error

from interlock.stores.dsn import is_local, secured, shown

if TYPE_CHECKING:
    from psycopg import Connection

OLDEST_SERVER: Final = 150_000
ATTEMPTS: Final = 3
# Two operators who migrate at once meet at this number; it is any number that nobody else uses.
MIGRATING: Final = 0x696E7465726C6F63


class PostgresStore(SqlStore):
    """Implements :class:`interlock.ports.Store` in a PostgreSQL database."""

    def __init__(
        self,
        dsn: str,
        *,
        key: bytes = b"",
        durability: Literal["full", "process"] = "full",
        connections: int = 8,
        timeout: float = 10.0,
        plaintext: bool = False,
    ) -> None:
        """
        Args:
            dsn: where the database is, as libpq takes it; ``interlock store migrate`` has been there.
            key: secret for the MAC of the heads. Without one, whoever can write the tables can forge them.
            durability: ``full`` survives a loss of power; ``process`` may lose what was acknowledged last when the
                server stops.
            connections: at most so many at once, for all threads of this process.
            timeout: seconds to wait for a connection, and for another writer.
            plaintext: speak to another machine without TLS, or without looking at its certificate.

        Raises:
            Misconfigured: the dsn is none, the connection would be open to others, the server is older than 15 or does
                not flush to its disk, or the schema is not the one of this version.
            JournalUnavailable: the server can't be reached.
        """
        database = PostgresDatabase(dsn, durability, connections, timeout, plaintext)
        try:
            database.require_schema()
        except BaseException:
            database.close()
            raise
        super().__init__(database, key)

    @staticmethod
    def migrate(dsn: str, *, plaintext: bool = False) -> bool:
        """Bring the database to the schema of this version. An act of the operator; nothing does it implicitly.

        Returns:
            Whether anything had to be done.

        Raises:
            Misconfigured: see the constructor, or a later version was here.
            JournalUnavailable: the server can't be reached, or did not let us.
        """
        from sqlalchemy.exc import SQLAlchemyError  # loaded late: only migrations need it

        from interlock.stores.migrate import upgraded

        conninfo = secured(dsn, plaintext)
        begin = f"SELECT pg_advisory_xact_lock({MIGRATING})"
        try:
            return upgraded("postgresql+psycopg://", lambda: psycopg.connect(conninfo), begin, shown(conninfo))
        except (psycopg.Error, SQLAlchemyError) as problem:
            raise JournalUnavailable(f"{shown(conninfo)}: {_said(getattr(problem, 'orig', None) or problem)}") from None

    def __repr__(self) -> str:
        return f"<PostgresStore {self.database}>"


class PostgresDatabase:
    """Implements :class:`interlock.stores.sql.Database`."""

    lock = " FOR UPDATE"
    changes_and_inserts = True

    def __init__(
        self, dsn: str, durability: Literal["full", "process"], connections: int, timeout: float, plaintext: bool
    ) -> None:
        if durability not in ("full", "process"):
            raise Misconfigured(f"durability is 'full' or 'process', not {durability!r}")
        self._conninfo = secured(dsn, plaintext)
        self._shown = shown(self._conninfo)
        self._flushes = durability == "full"
        self._plaintext = plaintext
        self._connections = max(1, connections)
        self._timeout = timeout
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._inherited: list[object] = []
        self._pid = os.getpid()
        self._closed = False

    def require_schema(self) -> None:
        """Raises Misconfigured unless the server is one that we can rely on, with this version's schema."""
        self._look()
        try:
            found = self.rows("SELECT version_num FROM interlock_schema")
        except JournalUnavailable as error:
            if not isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                raise
            found = []
        check_schema(self._shown, [row[0] for row in found])

    def _look(self) -> None:
        """One connection outside the pool, whose errors say at once what is wrong."""
        try:
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                self._private(connection)
                version = connection.info.server_version
                flushes = connection.execute("SHOW fsync").fetchone()
        except psycopg.Error as error:
            raise JournalUnavailable(f"{self._shown}: {_said(error)}") from error
        if version < OLDEST_SERVER:
            raise Misconfigured(f"{self._shown}: PostgreSQL {version // 10000} is too old; 15 or newer is needed")
        if self._flushes and flushes != ("on",):
            raise Misconfigured(
                f"{self._shown}: the server runs with fsync off, so what it acknowledges may be lost;"
                " turn it on, or accept that with durability = 'process'"
            )

    def _private(self, connection: Connection[Any]) -> None:
        """Whatever a service file or a host name led to: not in the clear to another machine."""
        info = connection.info
        local = all(is_local(one) for one in (info.host, info.hostaddr))
        if not (local or self._plaintext or connection.pgconn.ssl_in_use):
            raise Misconfigured(f"{self._shown}: the connection to {info.host} is not encrypted; nothing was stored")

    def _configure(self, connection: Connection[Any]) -> None:
        """What durability and waiting depend on, set for each connection whatever the server's own settings are."""
        self._private(connection)
        milliseconds = str(max(1, int(self._timeout * 1000)))
        set_one = "SELECT set_config(%s, %s, false)"
        for name, value in (
            ("lock_timeout", milliseconds),
            # A process that stops in the middle of a transaction must not keep its row locked for ever.
            ("idle_in_transaction_session_timeout", "60000"),
            # Each statement sees what was committed before it: after a lock was waited for, that is the point.
            ("default_transaction_isolation", "read committed"),
        ):
            connection.execute(set_one, (name, value))
        if not self._flushes:
            connection.execute(set_one, ("synchronous_commit", "off"))
        else:  # `local` and stronger ones are the operator's choice; `off` is not
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )

    def rows(self, statement: str, values: Values = ()) -> Rows:
        """See :meth:`interlock.stores.sql.Database.rows`. Reading may be repeated: it is, if a connection was lost."""
        for left in reversed(range(ATTEMPTS)):
            with self._connected() as connection:
                try:
                    return _Cursor(connection).rows(statement, values)
                except psycopg.Error as error:
                    if not left or not _lost(connection):
                        raise JournalUnavailable(f"{self._shown}: {_said(error)}") from error
            self._sort_out()
        raise AssertionError  # the last attempt returned or raised

    def once(self, statement: str, values: Values) -> int:
        """See :meth:`interlock.stores.sql.Database.once`. Never tried again: it may have been committed."""
        with self._connected() as connection:
            try:
                return _Cursor(connection).run(statement, values)
            except psycopg.Error as error:
                if _in_doubt(connection, error):
                    raise CommitUnknown(
                        f"{self._shown}: the connection broke in a write; it may be on record, or not"
                    ) from error
                raise JournalUnavailable(f"{self._shown}: {_said(error)}") from error

    def transact(self, work: Callable[[Cursor], T]) -> T:
        """See :meth:`interlock.stores.sql.Database.transact`."""
        for left in reversed(range(ATTEMPTS)):
            with self._connected() as connection:
                committing = False
                try:
                    connection.execute("BEGIN")
                    done = work(_Cursor(connection))
                    committing = True
                    if connection.execute("COMMIT").statusmessage != "COMMIT":
                        raise JournalUnavailable(f"{self._shown}: the transaction was undone instead of committed")
                    return done
                except psycopg.Error as error:
                    lost = _lost(connection)
                    if committing and _in_doubt(connection, error):
                        raise CommitUnknown(
                            f"{self._shown}: the connection broke in a commit; it may be on record, or not"
                        ) from error
                    again = lost or isinstance(
                        error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure
                    )
                    if not left or not again:
                        raise JournalUnavailable(f"{self._shown}: {_said(error)}") from error
            if lost:
                self._sort_out()
        raise AssertionError  # the last attempt returned or raised

    def close(self) -> None:
        """See :meth:`interlock.stores.sql.Database.close`."""
        self._forked()
        self._closed = True
        if self._pool is not None:
            self._pool.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection[Any]]:
        """A connection of the pool; it goes back with its transaction undone, unless that was committed."""
        pool = self._opened()
        try:
            connection = pool.getconn()
        except (PoolTimeout, PoolClosed, psycopg.Error) as error:
            raise JournalUnavailable(f"{self._shown}: no connection ({type(error).__name__})") from error
        try:
            yield connection
        finally:
            self._undone(connection)
            pool.putconn(connection)

    def _undone(self, connection: Connection[Any]) -> None:
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()  # which undoes it too; the pool makes another one

    def _sort_out(self) -> None:
        """After a lost connection: the others of the pool may be dead as well."""
        try:
            self._opened().check()
        except (PoolTimeout, PoolClosed, psycopg.Error):
            return  # there is none to be had; the next attempt says so

    def _opened(self) -> ConnectionPool[Connection[Any]]:
        self._forked()
        with self._opening:
            if self._closed:
                raise JournalUnavailable(f"{self._shown}: the store is closed")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    min_size=1,
                    max_size=self._connections,
                    timeout=self._timeout,
                    reconnect_timeout=self._timeout,
                    kwargs={"autocommit": True},
                    configure=self._configure,
                    name="interlock",
                    open=True,
                )
            return self._pool

    def _forked(self) -> None:
        """A connection must not cross a fork; psycopg lets go of inherited ones without a word to the server."""
        if self._pid != os.getpid():
            self._inherited.append(self._pool)
            self._pool, self._opening, self._pid = None, threading.Lock(), os.getpid()

    def __str__(self) -> str:
        return self._shown


class _Cursor:
    """Implements :class:`interlock.stores.sql.Cursor`."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values = ()) -> Rows:
        return self._connection.execute(_marked(statement), values, binary=True).fetchall()

    def run(self, statement: str, values: Values = ()) -> int:
        try:
            return self._connection.execute(_marked(statement), values).rowcount
        except psycopg.errors.UniqueViolation as error:
            raise Taken from error

    def run_many(self, statement: str, values: Sequence[Values]) -> None:
        if len(values) == 1:
            self.run(statement, values[0])
            return
        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(_marked(statement), values)
        except psycopg.errors.UniqueViolation as error:
            raise Taken from error


@lru_cache(maxsize=256)
def _marked(statement: str) -> Any:
    """Our statements hold neither ``%`` nor a question mark in quotes."""
    return statement.replace("?", "%s").encode()


def _lost(connection: Connection[Any]) -> bool:
    return bool(connection.closed or connection.broken)


def _in_doubt(connection: Connection[Any], error: psycopg.Error) -> bool:
    """May the server have committed before this error? Its last words can arrive before anybody sees that the
    connection is gone: shut down, killed, out of resources, or an error of the driver's that has no code."""
    return _lost(connection) or error.sqlstate in (None, "40003") or error.sqlstate[:2] in ("08", "57", "58", "XX")


def _said(error: BaseException) -> str:
    """The first line of what the server or the driver said; the rest may show values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
