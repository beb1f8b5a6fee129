"""Drafts above SQL, so that a person may release them from another process.

What is stored holds the arguments of calls, as nothing in the journal does. It is emptied when the draft is over.
The row stays, since a service needs no right to delete anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from interlock.errors import InterlockError, OutboxUnavailable
from interlock.model.drafts import Draft
from interlock.model.names import namespace_name
from interlock.stores.sql import Cursor, Rows, Values, as_bytes, as_text
from interlock.stores.sql_store import SqlStore

T = TypeVar("T")
_DROP: Final = (
    "UPDATE interlock_drafts SET body = ? WHERE namespace = ? AND conversation = ? AND draft = ? AND length(body) > 0"
)
_KEEP: Final = (
    "INSERT INTO interlock_drafts (namespace, conversation, draft, at, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (namespace, conversation, draft) DO UPDATE SET at = excluded.at, body = excluded.body"
)
_ONE: Final = "SELECT body FROM interlock_drafts WHERE namespace = ? AND conversation = ? AND draft = ?"
_AT: Final = "SELECT at FROM interlock_drafts WHERE namespace = ? AND draft = ?"
_STORED: Final = (
    "SELECT at, conversation, draft FROM interlock_drafts WHERE namespace = ? AND length(body) > 0"
    " AND (at > ? OR (at = ? AND draft > ?)) ORDER BY at, draft LIMIT ?"
)


class SqlDrafts:
    """Implements :class:`interlock.ports.DraftStore` in the database of a store."""

    blocks = True

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def keep(self, draft: Draft) -> None:
        """See :meth:`interlock.ports.DraftStore.keep`."""
        key = _key(draft.question.namespace, draft.question.conversation, draft.id)

        def work(cursor: Cursor) -> None:
            cursor.run(_KEEP, (*key, draft.question.at.encode(), draft.encode()))

        self._done(lambda: self._database.transact(work))

    def draft(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """See :meth:`interlock.ports.DraftStore.draft`."""
        rows = self._rows(_ONE, _key(namespace, conversation, id))
        return (as_bytes(rows[0][0]) or None) if rows else None

    def stored(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str, str], ...]:
        """See :meth:`interlock.ports.DraftStore.stored`."""
        space = namespace_name(namespace).encode()
        at = b""
        if after:
            known = self._rows(_AT, (space, after.encode("utf-8", "surrogatepass")))
            at = as_bytes(known[0][0]) if known else b""
        rows = self._rows(_STORED, (space, at, at, after.encode("utf-8", "surrogatepass"), limit))
        return tuple((as_text(time), as_text(conversation), as_text(name)) for time, conversation, name in rows)

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """See :meth:`interlock.ports.DraftStore.drop`."""
        key = _key(namespace, conversation, id)
        self._done(lambda: self._database.transact(lambda cursor: cursor.run(_DROP, (b"", *key))))

    def _rows(self, statement: str, values: Values) -> Rows:
        return self._done(lambda: self._database.rows(statement, values))

    def _done(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except InterlockError as error:
            raise OutboxUnavailable(f"the drafts of the store: {error}") from error


def _key(namespace: str, conversation: str, name: str) -> tuple[bytes, bytes, bytes]:
    space = namespace_name(namespace).encode()
    return space, conversation.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")
