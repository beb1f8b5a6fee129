"""The store in memory: for tests and demos, and the plainest telling of what every store does.

Nothing outlives the process, and nothing is shared with another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock.errors import Conflict, JournalUnavailable, UnknownConversation
from interlock.locks import LEAF
from interlock.model.chain import Head, Sealed, head, seal
from interlock.model.digests import Digest
from interlock.model.entries import Entry, Erased, Trimmed, encode
from interlock.model.names import conversation_name, namespace_name
from interlock.model.records import Change, StoredMessage, read_body
from interlock.model.retention import BARE, Base, trimmed
from interlock.model.state import State, apply
from interlock.stores.folds import Link
from interlock.stores.trimming import cut
from interlock.stores.turns import Plan, bodies_of, first_of, later, planned


@dataclass(slots=True)
class _Stored:
    entry: int
    body: bytes
    retired: int = 0


@dataclass(slots=True)
class _Record:
    state: State = field(default_factory=State)
    entries: list[Sealed] = field(default_factory=list)
    messages: list[_Stored] = field(default_factory=list)
    base: Base = BARE
    kept: list[Sealed] = field(default_factory=list)
    used: str = ""

    @property
    def place(self) -> int:
        """Of the last entry."""
        return self.base.sequence + len(self.entries)

    @property
    def last(self) -> Digest:
        """Digest of the last entry."""
        return self.entries[-1].digest if self.entries else self.base.digest


class MemoryStore:
    """Implements :class:`interlock.ports.Store` in this process only."""

    def __init__(self, *, key: bytes = b"") -> None:
        """``key``: secret for the heads' MAC; without one the heads are plain."""
        self.key = key
        self.records: dict[tuple[str, str], _Record] = {}
        self.closed = False

    def again(self) -> MemoryStore:
        """Another opening of the same store, which is closed for itself."""
        other = MemoryStore(key=self.key)
        other.records = self.records
        return other

    def within(self, namespace: str) -> MemoryNamespace:
        """See :meth:`interlock.ports.Store.within`."""
        return MemoryNamespace(self, namespace_name(namespace))

    def close(self) -> None:
        """See :meth:`interlock.ports.Store.close`."""
        self.closed = True


class MemoryNamespace:
    """Implements :class:`interlock.ports.Namespace`."""

    blocks = False

    def __init__(self, store: MemoryStore, name: str) -> None:
        """Use :meth:`MemoryStore.within`."""
        self._store = store
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, MemoryNamespace) and other._store.records is self._store.records
        return same and isinstance(other, MemoryNamespace) and other._name == self._name

    def __hash__(self) -> int:
        return hash((id(self._store.records), self._name))

    def open(self, entries: Sequence[Entry]) -> State:
        """See :meth:`interlock.ports.Journal.open`."""
        first = first_of(entries, self._name)
        later(entries[1:])
        key = (self._name, conversation_name(first.conversation))
        with LEAF:
            if self._store.closed:
                raise JournalUnavailable("the store is closed")
            if key in self._store.records:
                raise Conflict(f"conversation {first.conversation!r} exists already")
            record = _Record()
            self._write(record, Plan(tuple(entries)))
            self._store.records[key] = record
            return record.state

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        return self._record(conversation).state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`."""
        later(entries)
        with LEAF:
            record = self._record(conversation)
            if expected is not None and record.state.version != expected:
                raise Conflict(f"the labels are at version {record.state.version}, not {expected}")
            return self._write(record, Plan(tuple(entries)))

    def record(
        self, conversation: str, changes: Sequence[Change], entries: Sequence[Entry] = (), *, at: str, turn: int
    ) -> State:
        """See :meth:`interlock.ports.Namespace.record`."""
        later(entries)
        bodies = bodies_of(changes)
        with LEAF:
            record = self._record(conversation)
            plan = planned(record.state, changes, bodies, entries, at, turn)
            state = self._write(record, plan)
        if plan.conflict is not None:
            raise plan.conflict
        return state

    def entries(self, conversation: str, *, after: int = 0, limit: int | None = None) -> tuple[Sealed, ...]:
        """See :meth:`interlock.ports.Namespace.entries`."""
        with LEAF:
            record = self._record(conversation)
            found = record.entries[max(0, after - record.base.sequence) :]
        return tuple(found if limit is None else found[:limit])

    def base(self, conversation: str) -> Base:
        """See :meth:`interlock.ports.Namespace.base`."""
        return self._record(conversation).base

    def kept(self, conversation: str, *, after: int = 0, limit: int) -> tuple[Sealed, ...]:
        """See :meth:`interlock.ports.Namespace.kept`."""
        return tuple(one for one in self._record(conversation).kept if one.sequence > after)[:limit]

    def trim(self, conversation: str, *, through: int, at: str) -> State:
        """See :meth:`interlock.ports.Namespace.trim`."""
        with LEAF:
            record = self._record(conversation)
            if through <= record.base.sequence:
                return record.state
            links = [Link(one.sequence, one.body, one.digest) for one in record.entries]
            made = cut(record.base, links, through)
            entries = record.entries[through - record.base.sequence :]
            record.kept += made.kept
            record.base, record.entries = made.base, entries
            return self._write(record, Plan((trimmed(at, made.base),)))

    def head(self, conversation: str) -> Head:
        """See :meth:`interlock.ports.Namespace.head`."""
        with LEAF:
            record = self._record(conversation)
            return head(record.place, record.last, tuple(record.state.exposure), self._store.key)

    def conversations(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """See :meth:`interlock.ports.Namespace.conversations`."""
        names = (conversation for namespace, conversation in list(self._store.records) if namespace == self._name)
        later_ones = (one for one in names if one.encode() > after.encode("utf-8", "surrogatepass"))
        return tuple(sorted(later_ones, key=str.encode)[:limit])

    def active_since(self, at: str) -> int:
        """How many conversations have an entry that is not older than a time."""
        stored = [record for (namespace, _), record in list(self._store.records.items()) if namespace == self._name]
        return sum(one.used >= at for one in stored)

    def messages(
        self, conversation: str, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> tuple[StoredMessage, ...]:
        """See :meth:`interlock.ports.Namespace.messages`."""
        with LEAF:
            stored = list(enumerate(self._record(conversation).messages, 1))
        found = [
            (place, one)
            for place, one in stored
            if not one.retired and place > after and (before is None or place < before)
        ]
        if limit is not None:
            found = found[max(0, len(found) - limit) :]
        return tuple(_shown(place, one) for place, one in found)

    def messages_ever(self, conversation: str, *, after: int = 0, limit: int) -> tuple[StoredMessage, ...]:
        """See :meth:`interlock.ports.Namespace.messages_ever`."""
        with LEAF:
            stored = list(enumerate(self._record(conversation).messages, 1))
        return tuple(_shown(place, one) for place, one in stored[max(0, after) :][:limit])

    def erase(self, conversation: str, *, at: str) -> State:
        """See :meth:`interlock.ports.Namespace.erase`."""
        with LEAF:
            record = self._record(conversation)
            gone = [one for one in record.messages if one.body]
            state = self._write(record, Plan((Erased(at, len(gone)),) if gone else ()))
            for one in gone:
                one.body = b""
            return state

    def _record(self, conversation: str) -> _Record:
        if self._store.closed:
            raise JournalUnavailable("the store is closed")
        record = self._store.records.get((self._name, conversation))
        if record is None:
            raise UnknownConversation(f"no conversation {conversation!r} in this store")
        return record

    def _write(self, record: _Record, plan: Plan) -> State:
        state, previous = record.state, record.last
        sealed: list[Sealed] = []
        for place, entry in enumerate(plan.entries, record.place + 1):
            state = apply(state, entry)
            sealed.append(seal(place, previous, encode(entry)))
            previous = sealed[-1].digest
        # All or nothing: everything that could fail has happened by now.
        first = record.place + 1
        cuts = list(plan.cuts)
        for number in range(len(plan.rows) + 1):
            while cuts and cuts[0].row == number:
                cut = cuts.pop(0)
                for one in [one for one in record.messages if not one.retired][-cut.drop :]:
                    one.retired = first + cut.entry
            if number < len(plan.rows):
                row = plan.rows[number]
                record.messages.append(_Stored(first + row.entry, row.body))
        record.entries.extend(sealed)
        record.state = state
        # Who shortens a journal has not used the conversation: it is as old as it was.
        record.used = next((one.at for one in reversed(plan.entries) if not isinstance(one, Trimmed)), record.used)
        return state


def _shown(place: int, one: _Stored) -> StoredMessage:
    message, cover = read_body(one.body, place) if one.body else (None, None)
    return StoredMessage(place, one.entry, message, cover, one.retired)
