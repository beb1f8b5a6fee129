"""The journal in memory: for tests, demos and hosts that accept the loss at exit.

It keeps what every journal keeps: the chain of sealed entries, what a head is made of, and the folded state, so that a
decision costs the same after 10 calls and after 10,000 (T18).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock.errors import Conflict, JournalUnavailable
from interlock.locks import LOCK
from interlock.model.chain import GENESIS, Head, Sealed, head, seal
from interlock.model.entries import Entry, Opened, encode
from interlock.model.state import State, apply
from interlock.stores.journal_file import write_journal


@dataclass(slots=True)
class _Record:
    state: State
    entries: list[Sealed] = field(default_factory=list)


class MemoryJournal:
    """Implements :class:`interlock.ports.Journal` in this process only."""

    def __init__(self, *, key: bytes = b"") -> None:
        """``key``: secret for the heads' MAC; without one the heads are plain."""
        self._key = key
        self._records: dict[str, _Record] = {}

    def open(self, entries: Sequence[Entry]) -> State:
        """See :meth:`interlock.ports.Journal.open`."""
        first = entries[0] if entries else None
        if not isinstance(first, Opened):
            raise JournalUnavailable("a conversation begins with an `opened` entry")
        with LOCK:
            if first.conversation in self._records:
                raise Conflict(f"conversation {first.conversation} exists already")
            self._records[first.conversation] = _Record(State())
            try:
                return self.append(first.conversation, entries)
            except BaseException:
                del self._records[first.conversation]  # nothing was written, so nothing was opened
                raise

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        record = self._records.get(conversation)
        if record is None:
            raise JournalUnavailable(f"no conversation {conversation!r} in this journal")
        return record.state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`."""
        bodies = [encode(entry) for entry in entries]
        with LOCK:
            record = self._records.get(conversation)
            if record is None:
                raise JournalUnavailable(f"no conversation {conversation!r} in this journal")
            if expected is not None and record.state.version != expected:
                raise Conflict(f"the labels are at version {record.state.version}, not {expected}")
            state, sealed = record.state, []
            place = len(record.entries)
            previous = record.entries[-1].digest if record.entries else GENESIS
            for entry, body in zip(entries, bodies, strict=True):
                state = apply(state, entry)
                place += 1
                sealed.append(seal(place, previous, body))
                previous = sealed[-1].digest
            # All or nothing: everything that could fail has happened by now.
            record.entries.extend(sealed)
            record.state = state
            return state

    def entries(self, conversation: str) -> tuple[Sealed, ...]:
        """The whole chain, oldest first."""
        self.state(conversation)
        return tuple(self._records[conversation].entries)

    def head(self, conversation: str) -> Head:
        """The head: what :func:`interlock.model.chain.verify` holds the chain against."""
        with LOCK:
            state, entries = self.state(conversation), self.entries(conversation)
        last = entries[-1].digest if entries else GENESIS
        return head(len(entries), last, tuple(state.taint), self._key)

    def save(self, conversation: str, path: str | os.PathLike[str]) -> None:
        """Export one conversation's journal and its head, for ``interlock explain --journal`` and for keeping.

        Raises:
            JournalUnavailable: no such conversation, or the files could not be written.
        """
        with LOCK:
            entries, held = self.entries(conversation), self.head(conversation)
        write_journal(path, entries, held)
