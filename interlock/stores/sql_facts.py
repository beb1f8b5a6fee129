"""Facts and summaries above SQL (T12): one logic for SQLite and PostgreSQL, with two ways to find words.

A fact's labels stand in rows of their own, one per revision, and nothing here deletes or changes one. A seal binds them
to the text: a row that is missing, exchanged or unreadable makes the fact one of every leg.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final

from interlock.errors import Conflict, JournalUnavailable, MemoryUnavailable, Refused
from interlock.model.canonical import pack, parse
from interlock.model.carried import LOST, Carried, decode, joined
from interlock.model.digests import Digest, content_digest
from interlock.model.facts import Fact, Selection, Vector, nearest, ranked, scaled, seal, words_in
from interlock.model.labels import label
from interlock.model.names import namespace_name
from interlock.model.summaries import StoredSummary
from interlock.stores.memory_facts import renewed
from interlock.stores.sql import Cursor, Database, Rows, Taken, Values
from interlock.stores.sql_store import SqlStore

# Of the facts that hold one of the words, so many of the newest are looked at; and so many vectors.
MAX_LOOKED_AT: Final = 1000
MAX_VECTORS: Final = 10_000

_FACT: Final = (
    "SELECT f.number, f.fact, f.revision, f.at, f.content, f.conversation, f.first, f.last, f.body, f.seal, f.vector"
    " FROM interlock_facts f"
)
_ONE: Final = f"{_FACT} WHERE f.namespace = ? AND f.fact = ?"
_ALL: Final = f"{_FACT} WHERE f.namespace = ? AND f.body IS NOT NULL AND f.number > ? ORDER BY f.number LIMIT ?"
_VECTORS: Final = f"{_FACT} WHERE f.namespace = ? AND f.vector IS NOT NULL ORDER BY f.number DESC LIMIT ?"
_LABELS: Final = "SELECT revision, labels FROM interlock_fact_labels WHERE namespace = ? AND fact = ? ORDER BY revision"
_COUNT: Final = "SELECT COUNT(*) FROM interlock_facts WHERE namespace = ? AND body IS NOT NULL"
_NEW: Final = (
    "INSERT INTO interlock_facts"
    " (revision, at, content, conversation, first, last, body, vector, seal, namespace, fact)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CHANGE: Final = (
    "UPDATE interlock_facts SET revision = ?, at = ?, content = ?, conversation = ?, first = ?, last = ?, body = ?,"
    " vector = ?, seal = ? WHERE namespace = ? AND fact = ? AND revision = ?"
)
_LABEL: Final = "INSERT INTO interlock_fact_labels (labels, namespace, fact, revision) VALUES (?, ?, ?, ?)"
_FORGET: Final = (
    "UPDATE interlock_facts SET body = NULL, vector = NULL"
    " WHERE namespace = ? AND fact = ? AND revision = ? AND body IS NOT NULL"
)
_SUMMARY: Final = "SELECT body FROM interlock_summaries WHERE namespace = ? AND conversation = ? AND content = ?"
_KEEP: Final = (
    "INSERT INTO interlock_summaries (body, namespace, conversation, content) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (namespace, conversation, content) DO UPDATE SET body = excluded.body"
)


class _Sqlite:
    """Words by FTS5. Its table holds a copy of the words, as we part them and not as it would: the same fact must be
    found in every store. What is deleted is merged away at once."""

    found = (
        f"{_FACT} JOIN interlock_fact_words w ON w.rowid = f.number"
        " WHERE interlock_fact_words MATCH CAST(? AS TEXT) AND f.namespace = ? ORDER BY f.number DESC LIMIT ?"
    )

    @staticmethod
    def near(*_: Any) -> Rows | None:
        """There is nothing here that finds vectors."""
        return None

    @staticmethod
    def embed(cursor: Cursor, number: int, vector: Vector | None) -> None:
        """They are compared one by one."""

    @staticmethod
    def query(words: Sequence[str]) -> bytes:
        # Quoted, so that no word is an operator; there are no quotes in a word.
        return " OR ".join(f'"{word}"' for word in words).encode()

    @staticmethod
    def index(cursor: Cursor, number: int, body: bytes | None) -> None:
        removed = cursor.run("DELETE FROM interlock_fact_words WHERE rowid = ?", (number,))
        if body is not None:
            plain = " ".join(sorted(words_in(body.decode()))).encode()
            cursor.run("INSERT INTO interlock_fact_words (rowid, body) VALUES (?, CAST(? AS TEXT))", (number, plain))
        if removed and body is None:
            cursor.run("INSERT INTO interlock_fact_words (interlock_fact_words) VALUES ('optimize')")


HAS_PGVECTOR: Final = (
    "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('interlock_facts') AND attname = 'embedding'"
    " AND NOT attisdropped"
)
_EMBED: Final = "UPDATE interlock_facts SET embedding = CAST(convert_from(?, 'UTF8') AS vector) WHERE number = ?"
_NEAREST: Final = (
    f"{_FACT} WHERE f.namespace = ? AND f.embedding IS NOT NULL AND vector_dims(f.embedding) = ?"
    " ORDER BY f.embedding <=> CAST(convert_from(?, 'UTF8') AS vector), f.number DESC LIMIT ?"
)


def _written(vector: Vector) -> bytes:
    # It keeps single precision, in which huge numbers would be infinite, and compares directions only.
    return f"[{','.join(map(repr, scaled(vector)))}]".encode()


class _Postgres:
    """Words by the server's text search, in a column beside the text. Punctuation is taken out first: the server would
    make one word of a whole address."""

    found = (
        f"{_FACT} WHERE f.words @@ to_tsquery('simple', convert_from(?, 'UTF8')) AND f.namespace = ?"
        " ORDER BY f.number DESC LIMIT ?"
    )

    @staticmethod
    def near(ask: Any, space: bytes, vector: Vector, limit: int) -> Rows | None:
        """Candidates by pgvector; None where the server has none. It rounds, so the order among them is made here."""
        if not ask(HAS_PGVECTOR, ()):
            return None
        return list(ask(_NEAREST, (space, len(vector), _written(vector), limit)))

    @staticmethod
    def embed(cursor: Cursor, number: int, vector: Vector | None) -> None:
        if cursor.rows(HAS_PGVECTOR):
            if vector is None:
                cursor.run("UPDATE interlock_facts SET embedding = NULL WHERE number = ?", (number,))
            else:
                cursor.run(_EMBED, (_written(vector), number))

    @staticmethod
    def query(words: Sequence[str]) -> bytes:
        return " | ".join(f"'{word}'" for word in words).encode()

    @staticmethod
    def index(cursor: Cursor, number: int, body: bytes | None) -> None:
        if body is None:
            cursor.run("UPDATE interlock_facts SET words = NULL WHERE number = ?", (number,))
        else:
            plain = " ".join(words_in(body.decode())).encode()
            cursor.run(
                "UPDATE interlock_facts SET words = to_tsvector('simple', convert_from(?, 'UTF8')) WHERE number = ?",
                (plain, number),
            )


class SqlMemory:
    """What the stores of facts, summaries and artifacts share: a database whose errors are those of memory."""

    def __init__(self, store: SqlStore) -> None:
        """``store``: an open one; closing it closes this."""
        self._database: Database = store.database

    @property
    def blocks(self) -> bool:
        """Calls wait for a disk or a server."""
        return True

    def _transact(self, work: Any) -> Any:
        try:
            return self._database.transact(work)
        except JournalUnavailable as error:
            raise MemoryUnavailable(str(error)) from error

    def _rows(self, statement: str, values: Values) -> Rows:
        try:
            return self._database.rows(statement, values)
        except JournalUnavailable as error:
            raise MemoryUnavailable(str(error)) from error


class SqlFacts(SqlMemory):
    """Implements :class:`interlock.ports.Facts` and :class:`interlock.ports.Summaries` in the database of a store."""

    def __init__(self, store: SqlStore) -> None:
        """``store``: an open :class:`~interlock.stores.sqlite.SqliteStore` or ``PostgresStore``."""
        super().__init__(store)
        self._words: type[_Sqlite] | type[_Postgres] = _Postgres if self._database.lock else _Sqlite

    def put(self, namespace: str, fact: Fact, *, expected: int, limit: int, vector: Vector | None = None) -> Fact:
        """See :meth:`interlock.ports.Facts.put`."""
        space, name = namespace_name(namespace).encode(), fact.id.encode()

        def work(cursor: Cursor) -> Fact:
            rows = cursor.rows(_ONE + self._database.lock, (space, name))
            revision = rows[0][2] if rows else 0
            if revision != expected:
                raise Conflict(f"fact {fact.id!r} is at revision {revision}, not {expected}")
            # What was forgotten has left its place to others, and needs one when it is written anew.
            grows = not rows or rows[0][8] is None
            if grows and cursor.rows(_COUNT, (space,))[0][0] >= limit:
                raise Refused(f"the namespace holds {limit} facts already; forget some")
            carried = fact.carried.join(self._read(cursor.rows, space, rows[0]).carried) if rows else fact.carried
            stored = renewed(fact, expected + 1, carried)
            assert stored.text is not None
            body = stored.text.encode()
            values = (
                *(stored.revision, stored.at.encode(), stored.content.encode(), stored.conversation.encode()),
                *(stored.first, stored.end, body, _packed(vector), seal(namespace, stored).encode(), space, name),
            )
            cursor.run(_LABEL, (carried.encode(), space, name, stored.revision))
            if rows:
                cursor.run(_CHANGE, (*values, expected))
            else:
                cursor.run(_NEW, values)
            number = cursor.rows(_ONE, (space, name))[0][0]
            self._words.index(cursor, number, body)
            self._words.embed(cursor, number, vector)
            return stored

        try:
            done: Fact = self._transact(work)
        except Taken:
            raise Conflict(f"fact {fact.id!r} was changed by somebody else") from None
        return done

    def fact(self, namespace: str, id: str) -> Fact | None:
        """See :meth:`interlock.ports.Facts.fact`."""
        space = namespace_name(namespace).encode()
        rows = self._rows(_ONE, (space, id.encode("utf-8", "surrogatepass")))
        return self._read(self._rows, space, rows[0]) if rows else None

    def search(self, namespace: str, words: Sequence[str], limit: int) -> tuple[Fact, ...]:
        """See :meth:`interlock.ports.Facts.search`."""
        space = namespace_name(namespace).encode()
        if not words:
            return ()
        rows = self._rows(self._words.found, (self._words.query(words), space, MAX_LOOKED_AT))
        by_name = {_text(row[1]): row for row in rows}
        best = ranked(map(_bare, rows), words, limit)
        # Labels are read for what is found only.
        return tuple(self._read(self._rows, space, by_name[fact.id]) for fact in best)

    def near(self, namespace: str, vector: Vector, limit: int) -> tuple[Fact, ...]:
        """See :meth:`interlock.ports.Facts.near`."""
        space = namespace_name(namespace).encode()
        found = self._words.near(self._rows, space, vector, 2 * limit)
        rows = self._rows(_VECTORS, (space, MAX_VECTORS)) if found is None else found
        # Labels are read for what is near only.
        close = nearest(((_bare(row), _unpacked(row[10])) for row in rows), vector, limit)
        by_name = {_text(row[1]): row for row in rows}
        return tuple(self._read(self._rows, space, by_name[fact.id]) for fact, _ in close)

    def forget(self, namespace: str, selection: Selection) -> int:
        """See :meth:`interlock.ports.Facts.forget`."""
        space = namespace_name(namespace).encode()
        forgotten, after = 0, 0
        while rows := self._rows(_ALL, (space, after, MAX_LOOKED_AT)):
            after = rows[-1][0]
            chosen = [row for row in rows if selection.takes(self._read(self._rows, space, row))]

            def work(cursor: Cursor, chosen: Rows = chosen) -> int:
                done = 0
                for row in chosen:
                    # Only the revision that was looked at: what was written since was not chosen.
                    if cursor.run(_FORGET, (space, row[1], row[2])):
                        self._words.index(cursor, row[0], None)
                        self._words.embed(cursor, row[0], None)
                        done += 1
                return done

            forgotten += self._transact(work) if chosen else 0
        return forgotten

    def _read(self, ask: Any, space: bytes, row: tuple[Any, ...]) -> Fact:
        """A stored fact with its labels; with every leg when they are not exactly those that were stored with it."""
        fact = _bare(row)
        labels = ask(_LABELS, (space, _bytes(row[1])))
        # A correction may have come between the two reads: this text was stored with the labels up to its revision.
        # Those that came since count all the same, but are no sign of damage.
        own = [one for one in labels if _number(one[0]) <= fact.revision]
        whole = len(own) == fact.revision and all(one[0] == place for place, one in enumerate(own, 1))
        carried = joined(decode(_bytes(one)) for _, one in own) if whole else LOST
        fact = renewed(fact, fact.revision, carried)
        everything = carried.join(joined(decode(_bytes(one)) for _, one in labels))
        right = fact.text is None or content_digest(fact.text) == fact.content
        if not right or row[9] != seal(space.decode(), fact).encode():
            return renewed(fact, fact.revision, LOST.join(everything))
        return renewed(fact, fact.revision, everything)

    # --- summaries --------------------------------------------------------------------------------------------------

    def keep(self, namespace: str, conversation: str, summary: StoredSummary) -> None:
        """See :meth:`interlock.ports.Summaries.keep`."""
        body = pack({"covered": summary.covered, "text": summary.text, "labels": summary.labels})
        values = (body, namespace_name(namespace).encode(), conversation.encode(), summary.content.encode())
        self._transact(lambda cursor: cursor.run(_KEEP, values))

    def summary(self, namespace: str, conversation: str, content: Digest) -> StoredSummary | None:
        """See :meth:`interlock.ports.Summaries.summary`."""
        rows = self._rows(_SUMMARY, (namespace_name(namespace).encode(), conversation.encode(), content.encode()))
        if not rows:
            return None
        try:
            value: Any = parse(_bytes(rows[0][0]))
            labels = tuple(label(one) for one in value["labels"])
            return StoredSummary(int(value["covered"]), str(value["text"]), labels)
        except (Refused, KeyError, TypeError, ValueError):
            return None  # a text that can't be read is lost; the transcript is still there


def _bare(row: tuple[Any, ...]) -> Fact:
    """A row without its labels. Whatever stands in it now: its seal tells whether it is what was written."""
    name, at, content, conversation = (_text(row[column]) for column in (1, 3, 4, 5))
    revision, first, last = (_number(row[column]) for column in (2, 6, 7))
    text = None if row[8] is None else _text(row[8])
    return Fact(name, revision, at, text, Digest(content), conversation, first, last, Carried())


def _bytes(value: object) -> bytes:
    """SQLite keeps any type in any column. What is none of ours is nothing: `bytes(10**12)` would be a terabyte."""
    return value if isinstance(value, bytes) else b""


def _text(value: object) -> str:
    return _bytes(value).decode("utf-8", "replace")


def _number(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _packed(vector: Vector | None) -> Any:
    return None if vector is None else array("d", vector).tobytes()


def _unpacked(body: Any) -> Vector:
    numbers = array("d")
    try:
        numbers.frombytes(_bytes(body))
    except ValueError:
        return ()
    return tuple(numbers)
