"""What SQLite and PostgreSQL have in common, as the SQL store sees it: statements, and transactions that are whole.

Names and bodies go in as bytes and are compared as bytes (BLOB, BYTEA): no case, no NUL, no Unicode normal form and no
collation can make two names one. Statements write ``?`` for a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from interlock.errors import JournalUnavailable, Misconfigured, Tampered

T = TypeVar("T")
Values: TypeAlias = Sequence[bytes | int]
Rows: TypeAlias = list[tuple[Any, ...]]

# The revision of the schema that this version reads and writes; `interlock store migrate` brings a database there.
SCHEMA: Final = "0005"


class Taken(Exception):
    """A row of this key exists already. Never leaves the stores."""


class CommitUnknown(JournalUnavailable):
    """The connection broke while a transaction was committed: it may be on record, or not."""


def check_schema(where: str, found: Sequence[object]) -> None:
    """Raises Misconfigured unless the schema is the one of this version."""
    if list(found) == [SCHEMA]:
        return
    if not found:
        raise Misconfigured(f"{where}: the store has no schema yet; run `interlock store migrate`")
    number = str(found[0])
    if number > SCHEMA:
        raise Misconfigured(f"{where}: schema {number} was made by a later version; this one knows up to {SCHEMA}")
    raise Misconfigured(f"{where}: schema {number} is older than {SCHEMA}; run `interlock store migrate`")


class Cursor(Protocol):
    """Statements of one transaction."""

    def rows(self, statement: str, values: Values = ()) -> Rows:
        """Every row that a statement gives."""

    def run(self, statement: str, values: Values = ()) -> int:
        """The number of rows that a statement changed. Raises :class:`Taken`."""

    def run_many(self, statement: str, values: Sequence[Values]) -> None:
        """The same statement for many rows. Raises :class:`Taken`."""


class Database(Protocol):
    """One database, for all threads of this process. Every foreign exception is translated here."""

    @property
    def lock(self) -> str:
        """What a SELECT ends with when its row is to be kept from other writers until the transaction ends."""

    @property
    def changes_and_inserts(self) -> bool:
        """Can one statement change a row and insert others if it did? Then :meth:`once` spares the round trips."""

    def once(self, statement: str, values: Values) -> int:
        """One statement that is a transaction of its own, durable when this returns; how many rows it wrote.

        Raises:
            Taken, CommitUnknown, JournalUnavailable: see :meth:`transact`.
        """

    def rows(self, statement: str, values: Values = ()) -> Rows:
        """What one statement reads, in one snapshot.

        Raises:
            JournalUnavailable: the database did not answer.
        """

    def transact(self, work: Callable[[Cursor], T]) -> T:
        """Run ``work`` in one transaction: all of it is durable when this returns, or nothing happened.

        ``work`` may be run again if the connection was lost before anything was committed. Whatever it raises undoes
        the transaction and comes out as it is.

        Raises:
            Taken: a row of this key exists already.
            CommitUnknown: the connection broke in the commit.
            JournalUnavailable: nothing was written.
        """

    def close(self) -> None:
        """Let go of all connections."""


def as_bytes(value: object) -> bytes:
    """A value of a BLOB or BYTEA column.

    Raises:
        Tampered: SQLite keeps any type in any column, and this is not the one that was written.
    """
    if isinstance(value, bytes):
        return value
    raise Tampered(0, f"bytes were written where {type(value).__name__} stands now")


def as_text(value: object) -> str:
    """A name or a digest, which went in as bytes. Raises Tampered."""
    try:
        return as_bytes(value).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise Tampered(0, "a text was written where other bytes stand now") from None


def as_int(value: object) -> int:
    """A number, none of which is negative or near the end of what a column holds. Raises Tampered."""
    if type(value) is int and 0 <= value < 1 << 62:
        return value
    raise Tampered(0, f"a number of ours was written where {type(value).__name__} stands now")
