"""Open questions above SQL, so that a person may answer from another process.

What is kept holds the arguments of calls, as nothing in the journal does. It is emptied when the question is closed.
The row stays, since a service needs no right to delete anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from interlock.errors import ApproverUnavailable, InterlockError
from interlock.model.names import namespace_name
from interlock.model.question import Question
from interlock.stores.sql import Cursor, Rows, Values, as_bytes, as_text
from interlock.stores.sql_store import SqlStore

T = TypeVar("T")
_DROP: Final = (
    "UPDATE interlock_questions SET body = ? WHERE namespace = ? AND conversation = ? AND question = ?"
    " AND length(body) > 0"
)
_KEEP: Final = (
    "INSERT INTO interlock_questions (namespace, conversation, question, at, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (namespace, conversation, question) DO UPDATE SET at = excluded.at, body = excluded.body"
)
_ONE: Final = "SELECT body FROM interlock_questions WHERE namespace = ? AND conversation = ? AND question = ?"
_AT: Final = "SELECT at FROM interlock_questions WHERE namespace = ? AND question = ?"
_WAITING: Final = (
    "SELECT conversation, question FROM interlock_questions WHERE namespace = ? AND length(body) > 0"
    " AND (at > ? OR (at = ? AND question > ?)) ORDER BY at, question LIMIT ?"
)


class SqlQuestions:
    """Implements :class:`interlock.ports.Questions` in the database of a store."""

    blocks = True

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def keep(self, question: Question) -> None:
        """See :meth:`interlock.ports.Questions.keep`."""
        key = _key(question.namespace, question.conversation, question.id)

        def work(cursor: Cursor) -> None:
            cursor.run(_KEEP, (*key, question.at.encode(), question.encode()))

        self._done(lambda: self._database.transact(work))

    def question(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """See :meth:`interlock.ports.Questions.question`."""
        rows = self._rows(_ONE, _key(namespace, conversation, id))
        return (as_bytes(rows[0][0]) or None) if rows else None

    def waiting(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str], ...]:
        """See :meth:`interlock.ports.Questions.waiting`."""
        space = namespace_name(namespace).encode()
        at = b""
        if after:
            known = self._rows(_AT, (space, after.encode("utf-8", "surrogatepass")))
            at = as_bytes(known[0][0]) if known else b""
        rows = self._rows(_WAITING, (space, at, at, after.encode("utf-8", "surrogatepass"), limit))
        return tuple((as_text(conversation), as_text(name)) for conversation, name in rows)

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """See :meth:`interlock.ports.Questions.drop`."""
        key = _key(namespace, conversation, id)
        self._done(lambda: self._database.transact(lambda cursor: cursor.run(_DROP, (b"", *key))))

    def _rows(self, statement: str, values: Values) -> Rows:
        return self._done(lambda: self._database.rows(statement, values))

    def _done(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except InterlockError as error:
            raise ApproverUnavailable(f"the questions of the store: {error}") from error


def _key(namespace: str, conversation: str, name: str) -> tuple[bytes, bytes, bytes]:
    space = namespace_name(namespace).encode()
    return space, conversation.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")
