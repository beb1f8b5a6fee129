"""Labels of artifacts above SQL (T12): a chain of rows that are only ever added, under a head.

The record can vouch for what is missing in it only when it is whole: begun by the operator before any agent wrote, and
with nothing taken out since. Otherwise whatever is read is every leg.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final

from interlock.errors import MemoryUnavailable, Tampered
from interlock.model.artifacts import above, below, is_lost
from interlock.model.canonical import pack
from interlock.model.carried import CLEAN, LOST, Carried, decode, joined
from interlock.model.digests import digest
from interlock.model.names import namespace_name
from interlock.stores.memory_artifacts import foreign
from interlock.stores.sql import Cursor, Rows, Taken, Values, as_bytes, as_int
from interlock.stores.sql_facts import SqlMemory
from interlock.stores.sql_store import SqlStore

PAGE: Final = 5000
_GENESIS: Final = b""
_HEAD: Final = "SELECT sequence, digest, whole FROM interlock_artifact_head WHERE one = 1"
_BEGIN: Final = "INSERT INTO interlock_artifact_head (one, sequence, digest, whole) VALUES (1, 0, ?, ?)"
_LOSE: Final = "UPDATE interlock_artifact_head SET digest = ?, whole = ? WHERE one = 1"
_ADVANCE: Final = "UPDATE interlock_artifact_head SET sequence = ?, digest = ? WHERE one = 1 AND sequence = ?"
_ROW: Final = "INSERT INTO interlock_artifacts (sequence, artifact, namespace, labels, digest) VALUES (?, ?, ?, ?, ?)"
_COLUMNS: Final = "SELECT sequence, artifact, namespace, labels, digest FROM interlock_artifacts"
_COUNT: Final = (
    "SELECT (SELECT COUNT(*) FROM interlock_artifacts), (SELECT COALESCE(MAX(sequence), 0) FROM interlock_artifacts),"
    " (SELECT sequence FROM interlock_artifact_head WHERE one = 1)"
)
_OWN: Final = f"{_COLUMNS} WHERE artifact = ? AND namespace = ?"
_IN_ORDER: Final = f"{_COLUMNS} WHERE sequence > ? ORDER BY sequence LIMIT ?"


class SqlArtifacts(SqlMemory):
    """Implements :class:`interlock.ports.Artifacts` in the database of a store."""

    def __init__(self, store: SqlStore) -> None:
        """``store``: an open one. Its record of artifacts is verified once, when it is first asked for."""
        super().__init__(store)
        self._key = store.key
        self._found: str | None = None

    @property
    def damage(self) -> str:
        """Why the record can't vouch for what is missing in it; empty when it can.

        Raises:
            MemoryUnavailable: it can't be read.
        """
        if self._found is None:
            self._found = self._verified()
        return self._found

    @classmethod
    def begin(cls, store: SqlStore) -> SqlArtifacts:
        """Begin the record, with your word that no agent has written an artifact yet. An act of the operator.

        A record that is begun already stays as it is; one into which something was written before it was begun stays
        one that can vouch for nothing.
        """
        self = cls(store)

        def work(cursor: Cursor) -> None:
            if not cursor.rows(_HEAD):
                cursor.run(_BEGIN, (self._marked(0, _GENESIS, b"whole"), b"whole"))

        try:
            self._transact(work)
        except Taken:
            pass  # somebody else began it at the same moment
        self._found = None
        return self

    @classmethod
    def lost(cls, store: SqlStore) -> SqlArtifacts:
        """Say that rows are missing, such as those since a backup that was put back: from now on it can vouch for
        nothing, and never will again. An act of the operator. Processes that have it open must be started anew."""
        self = cls(store)

        def work(cursor: Cursor) -> None:
            head = cursor.rows(_HEAD + self._database.lock)
            if not head:
                cursor.run(_BEGIN, (self._marked(0, _GENESIS, b"lost"), b"lost"))
                return
            try:
                sequence, last, _ = self._read_head(head[0])
                said = self._marked(sequence, last, b"lost")
            except Tampered:
                said = b""  # nobody could vouch with it before, and nobody can now
            cursor.run(_LOSE, (said, b"lost"))

        try:
            self._transact(work)
        except Taken:  # somebody else began it at the same moment
            self._transact(work)
        return self

    def carried(self, keys: Sequence[str], *, namespace: str) -> Carried:
        """See :meth:`interlock.ports.Artifacts.carried`."""
        space = namespace_name(namespace).encode()
        if self.damage or any(map(is_lost, keys)) or not self._complete():
            return LOST
        found = CLEAN
        for one in keys:
            for row in self._concerning(one):
                found = found.join(foreign(decode(_bytes(row[3])), _bytes(row[2]) == space))
        return found

    def _complete(self) -> bool:
        """Have rows been taken out since the record was verified? Edited ones show when it is verified again."""
        ((rows, last, head),) = self._rows(_COUNT, ())
        return bool(rows == last == head)

    def label(self, keys: Sequence[str], carried: Carried, *, namespace: str) -> None:
        """See :meth:`interlock.ports.Artifacts.label`."""
        space = namespace_name(namespace).encode()

        def work(cursor: Cursor) -> None:
            head = cursor.rows(_HEAD + self._database.lock)
            if not head:
                # Not whole: nobody said that nothing was written before.
                cursor.run(_BEGIN, (self._marked(0, _GENESIS, b""), b""))
                head = cursor.rows(_HEAD + self._database.lock)
            try:
                before, last, whole = self._read_head(head[0])
            except Tampered as problem:
                raise MemoryUnavailable(f"the head of the record of artifacts: {problem.problem}") from problem
            sequence = before
            for one in keys:
                name = one.encode("utf-8", "surrogatepass")
                known = joined(decode(_bytes(row[3])) for row in cursor.rows(_OWN, (name, space)))
                if known.join(carried) == known:
                    continue  # nothing new: a row for each write would make the record as long as the work
                body, sequence = carried.encode(), sequence + 1
                last = _link(sequence, last, name, space, body)
                cursor.run(_ROW, (sequence, name, space, body, last))
            if sequence != before:
                cursor.run(_ADVANCE, (sequence, self._marked(sequence, last, whole), before))

        try:
            self._transact(work)
        except Taken:  # somebody else began the record at the same moment: now it is there
            self._transact(work)

    def _concerning(self, key: str) -> Rows:
        names = [one.encode("utf-8", "surrogatepass") for one in above(key)]
        marks = ", ".join("?" * len(names))
        inside = below(key).encode("utf-8", "surrogatepass")
        where, values = f"artifact IN ({marks})", list[bytes | int](names)
        if inside:
            where = f"({where} OR (artifact >= ? AND artifact < ?))"
            values += [inside, inside + b"\xff"]  # no UTF-8 holds this byte
        return self._rows(f"{_COLUMNS} WHERE {where}", _values(values))

    def _verified(self) -> str:
        head = self._rows(_HEAD, ())
        if not head:
            return "the record of artifacts was never begun"
        try:
            until, named, whole = self._read_head(head[0])
        except Tampered as problem:
            return f"the head of the record of artifacts: {problem.problem}"
        if whole == b"lost":
            return "the operator said that a part of the record of artifacts is lost"
        if whole != b"whole":
            return "artifacts were written before their record was begun"
        after, last, found = 0, _GENESIS, _GENESIS
        while rows := self._rows(_IN_ORDER, (after, PAGE)):
            for sequence, name, space, body, link in rows:
                last = _link(after + 1, last, _bytes(name), _bytes(space), _bytes(body))
                if sequence != after + 1 or last != link:
                    return f"row {after + 1} of the record of artifacts is missing or was changed"
                after, found = sequence, last if sequence == until else found
        if after < until:
            return f"row {after + 1} of the record of artifacts is missing"
        if found != named:
            return f"row {until} of the record of artifacts is not the one that its head names"
        return ""

    def _marked(self, sequence: int, last: bytes, whole: bytes) -> bytes:
        """What a head says of the last row; with a key, only who has it can make one."""
        if not self._key:
            return last
        text = b"interlock/artifacts/v1\0%d\0%b\0%b" % (sequence, last, whole)
        return last + b" " + hmac.new(self._key, text, hashlib.sha256).hexdigest().encode()

    def _read_head(self, row: tuple[Any, ...]) -> tuple[int, bytes, bytes]:
        """Raises Tampered when it is none, or was not made with this key."""
        sequence, said, whole = as_int(row[0]), as_bytes(row[1]), as_bytes(row[2])
        last = said.partition(b" ")[0]
        if not hmac.compare_digest(said, self._marked(sequence, last, whole)):
            raise Tampered(sequence, "it was not made with this key")
        return sequence, last, whole


def _link(sequence: int, last: bytes, name: bytes, space: bytes, body: bytes) -> bytes:
    parts = [sequence, last.decode("utf-8", "replace"), name.hex(), space.hex(), body.decode("utf-8", "replace")]
    return digest("artifact", pack(parts)).encode()


def _bytes(value: object) -> bytes:
    """SQLite keeps any type in any column; what is none of ours is nothing, and so no record."""
    return value if isinstance(value, bytes) else b""


def _values(values: list[bytes | int]) -> Values:
    return values
