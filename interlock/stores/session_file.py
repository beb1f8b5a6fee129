"""A conversation as one file: its journal and its transcript, append-only (T2, T10, T16).

One line is one write: a record with its place, the digest of the line before it and its own. Beside the file stand
``<name>.head``, which the chain is held against, and ``<name>.lock``, which keeps a second writer out.

Order of a write, and what a crash after each step leaves behind:

1. the line is written and made durable: the head does not name it yet, so loading cuts it off and keeps only its
   labels. Nobody saw it acknowledged: no call ran because of it, no content was shown;
2. the head is written in the place of the head before the last, and made durable: acknowledged.

So at most one line, the last, may stand after the head. Everything else that differs is damage, and damage is answered
with every leg: the damaged files are kept beside, and a new chain begins under every label.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interlock.errors import Conflict, JournalUnavailable, Refused, Tampered
from interlock.model.chain import GENESIS, Head, Sealed, head, seal, verify
from interlock.model.digests import Digest
from interlock.model.entries import Entry, Opened, Resumed, Rewritten
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Message, Role
from interlock.model.records import Change, Record, body_of, labels_in, last_that_fit, line_of, read_line, salvaged
from interlock.model.state import State, apply, bounded
from interlock.model.transcript import Cover, Everything, Transcript, answers, common, grew, unpaired
from interlock.stores.durable import (
    DISK,
    Claim,
    Disk,
    claim,
    hold,
    let_go,
    open_regular,
    place_file,
    read_regular,
    same_file,
)
from interlock.stores.head_file import SLOT, head_of, read_slots, slot_bytes, slot_of

HEADER: Final = b'{"interlock_session":1}\n'


class SessionFile:
    """Implements :class:`interlock.ports.Journal` for one conversation, and keeps its transcript.

    Open for one writer: this object, in this process. Safe to share between threads.
    """

    def __init__(self, path: Path, key: bytes, disk: Disk) -> None:
        if type(key) is not bytes:
            raise Refused(f"the key of a session is bytes, not {type(key).__name__}")
        self.path = path
        self.damage = ""
        self.closed = False
        self._key, self._disk = key, disk
        self._mutex = threading.Lock()
        self._pid = os.getpid()
        self._descriptor = self._head = -1
        self._opened: list[int] = []
        weakref.finalize(self, let_go, self._opened, self._pid)
        self._broken = ""
        self._size = self._place = 0
        self._previous: Digest = GENESIS
        self._state = State()
        self._first: tuple[Change, ...] = ()
        self._messages: list[Message] = []
        self._covers: list[Cover] = []
        self._everything = Everything()
        self._lock: Claim | None = None

    # --- opening ----------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, states: Sequence[Transcript], *, key: bytes = b"", disk: Disk = DISK) -> SessionFile:
        """Prepare a new file. It is written by :meth:`open`, which a conversation calls when it is given to it.

        Args:
            states: lists of messages to begin with, in order; each replaces the one before.

        Raises:
            SessionBusy: somebody has it open.
            JournalUnavailable: it exists already, or its folder is open to others.
        """
        self = cls(path, key, disk)
        self._lock = claim(path)
        try:
            for taken in (path, head_of(path)):
                if os.path.lexists(taken):
                    raise JournalUnavailable(f"{taken} exists already; load it, or name another file")
            self._first = self._changes(states)
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def load(cls, path: Path, at: str, new_id: str, *, key: bytes = b"", disk: Disk = DISK) -> SessionFile:
        """Open a file and hold it against its head. Repairs an unacknowledged last line, and writes that it was loaded.

        Whatever is damaged loads with every leg: ``damage`` says what it was, and the damaged files stand beside.

        Args:
            at: now, for the entry that says so.
            new_id: id of the conversation that takes the place of a damaged one, whose own can't be believed.

        Raises:
            SessionBusy: somebody has it open.
            JournalUnavailable: there is no such session, it can't be read or written, or another version wrote it.
        """
        self = cls(path, key, disk)
        self._lock = claim(path)
        try:
            if os.path.lexists(path):
                self._hold_log()  # before it is read: nobody may write it meanwhile
            log, held = read_regular(path), read_regular(head_of(path))
            if log is None and held is None:
                raise JournalUnavailable(f"{path}: there is no session; create one")
            if log is not None:
                _refuse_other_versions(path, log)
            try:
                self._resume(log, held, at)
            except Tampered as problem:
                self._begin_again(log, held, f"{problem}", at, new_id)
        except OSError as error:
            self.close()
            raise JournalUnavailable(f"{path}: {error.strerror or type(error).__name__}") from error
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def look(cls, path: Path, *, key: bytes = b"") -> SessionFile:
        """Read a file and hold it against its head, without a lock and without writing anything.

        Raises:
            JournalUnavailable: there is no such session, it can't be read, or another version wrote it.
            Tampered: it is damaged, at the first broken place.
        """
        before: tuple[bytes | None, bytes | None] | None = None
        while True:
            self = cls(path, key, DISK)
            self._broken = "it was opened for looking only"
            held, log = read_regular(head_of(path)), read_regular(path)
            if log is None and held is None:
                raise JournalUnavailable(f"{path}: there is no session")
            if log is not None:
                _refuse_other_versions(path, log)
            try:
                self._replay(log, held)
            except Tampered:
                if before == (log, held):
                    raise  # it stands still, and is damaged
                before = (log, held)  # somebody may be writing it: a second look tells
            else:
                return self

    def _resume(self, log: bytes | None, held: bytes | None, at: str) -> None:
        missing = self._replay(log, held)
        self._open_head()
        if log is not None and self._size != len(log):
            self._disk.truncate(self._descriptor, self._size)
            self._disk.sync(self._descriptor)
        self._write(Record((Resumed(at, "loaded", tuple(sorted(missing))),)))

    def _replay(self, log: bytes | None, held_bytes: bytes | None) -> set[Label]:
        """Read everything. Returns labels that only a checkpoint or a line that is to be cut off knows: they count."""
        if log is None:
            raise Tampered(0, "the file is gone, its head is here")
        if held_bytes is None:
            raise Tampered(0, "the head is gone")
        held, whole = read_slots(held_bytes)
        if not log.startswith(HEADER):
            raise Tampered(0, "does not begin like a session file")
        *lines, rest = log[len(HEADER) :].split(b"\n")
        acknowledged, after = lines[: max(0, held.sequence)], lines[max(0, held.sequence) :]
        if len(after) + bool(rest) > 1:
            raise Tampered(held.sequence + 1, "stands after the head")
        if not whole and not after:
            # A head that a crash cut off follows a line that was whole by then.
            raise Tampered(held.sequence, "one of the two heads is damaged")
        chain: list[Sealed] = []
        state, missing = State(), set[Label]()
        for place, line in enumerate(acknowledged, 1):
            sealed, record = read_line(line, place)
            chain.append(sealed)
            state = self._folded(state, record, place)
            exposure = state.exposure
            missing |= {one for one in record.labels if one not in exposure}
        verify(chain, held, self._key)
        if not state.conversation:
            raise Tampered(1, "no conversation was opened")
        self._state, self._place, self._previous = state, len(chain), chain[-1].digest
        self._size = len(HEADER) + sum(len(line) + 1 for line in acknowledged)
        return missing | {one for line in after for one in labels_in(line)}

    def _folded(self, state: State, record: Record, place: int) -> State:
        for entry in record.entries:
            if isinstance(entry, Opened) == bool(state.conversation):
                raise Tampered(place, "a conversation is opened once, first")
            state = apply(state, entry)
        for change in record.changes:
            if change.keep > len(self._messages):
                raise Tampered(place, "keeps messages that are not there")
            self._changed(change)
        return state

    def _begin_again(self, log: bytes | None, held: bytes | None, why: str, at: str, new_id: str) -> None:
        """Under every label: keep what is damaged beside, then begin a new chain with what can still be read."""
        evidence = _free(self.path)
        for data, name in ((log, evidence), (held, head_of(evidence))):
            if data is not None:
                place_file(self._disk, name, data)
        # Nobody knows who wrote what is left. It may be read under every label, but not with the operator's voice.
        messages = tuple(
            one for one in last_that_fit(salvaged((log or b"").split(b"\n"))) if one.role is not Role.SYSTEM
        )
        if unpaired(messages):
            messages = tuple(one for one in messages if one.role is Role.USER and not (one.uses or answers(one)))
        self.damage = f"{why}; the damaged files are kept as {evidence.name}"
        self._state, self._place, self._previous = State(), 0, GENESIS
        self._messages, self._covers, self._everything = [], [], Everything()
        unknown = tuple(None for _ in messages)
        entries = (Opened(at, new_id), Resumed(at, f"damaged, {why}", EVERY_LEG))
        self._first_record(Record(entries, (Change(0, messages, unknown),), EVERY_LEG))

    def _hold_log(self) -> None:
        self._descriptor = open_regular(self.path, os.O_RDWR)
        self._opened.append(self._descriptor)
        hold(self._descriptor, self.path)

    def _open_head(self) -> None:
        self._head = open_regular(head_of(self.path), os.O_RDWR)
        self._opened.append(self._head)

    # --- the journal ------------------------------------------------------------------------------------------------

    def open(self, entries: Sequence[Entry]) -> State:
        """See :meth:`interlock.ports.Journal.open`. The messages it was created with are in the same record."""
        if not entries or not isinstance(entries[0], Opened):
            raise JournalUnavailable("a conversation begins with an `opened` entry")
        with self._writing():
            if self._place:
                raise Conflict(f"{self.path} holds a conversation already")
            try:
                self._first_record(self._checkpointed(entries, self._first))
            except OSError as error:
                raise JournalUnavailable(f"{self.path}: {error.strerror or type(error).__name__}") from error
            return self._state

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        state = self._state
        if conversation != state.conversation:
            raise JournalUnavailable(f"no conversation {conversation!r} in {self.path}")
        return state

    @property
    def folded(self) -> State:
        """The fold of all entries in the file."""
        return self._state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`. One line, durable with its head when this returns."""
        with self._writing():
            state = self.state(conversation)
            if expected is not None and state.version != expected:
                raise Conflict(f"the labels are at version {state.version}, not {expected}")
            return self._written(Record(tuple(entries)))

    # --- the transcript ---------------------------------------------------------------------------------------------

    def keep(self, old: Transcript, new: Transcript, entry: Entry) -> None:
        """See :class:`interlock.gate.conversation.Keeper`."""
        with self._writing():
            self._written(self._checkpointed((entry,), self._changes((old, new))))

    def sync(self, states: Callable[[], Sequence[Transcript]], at: str) -> None:
        """Write what is new in these lists, in order: what continues is appended, anything else is a rewrite.

        Args:
            states: gives the lists; asked when it is this write's turn, so that no older list is written after a newer.

        Raises:
            JournalUnavailable: not written; nothing of it is on record.
        """
        with self._writing():
            changes = self._changes(states())
            new, current = list[Entry](), list(self._messages)
            for change in changes:
                after = change.keep + len(change.messages)
                if change.keep < len(current) and not _folds(change, current):
                    new.append(Rewritten(at, len(current), after))
                current[change.keep :] = change.messages
            if new or changes:
                self._written(self._checkpointed(new, changes))

    @property
    def place(self) -> int:
        """How many lines were read."""
        return self._place

    @property
    def previous(self) -> str:
        """The digest of the last of them."""
        return self._previous

    def messages_ever(self) -> tuple[Message, ...]:
        """See :class:`interlock.model.transcript.Everything`."""
        return tuple(self._everything.found)

    def transcript(self) -> Transcript:
        """The messages as they stand in the file."""
        return Transcript(tuple(self._messages), tuple(self._covers))

    def _changes(self, states: Sequence[Transcript]) -> tuple[Change, ...]:
        found: list[Change] = []
        current: Sequence[Message] = self._messages
        for one in states:
            keep = common(current, one.messages)
            if keep < len(current) or keep < len(one.messages):
                found.append(Change(keep, one.messages[keep:], one.covers[keep:]))
            current = one.messages
        return tuple(found)

    def _checkpointed(self, entries: Sequence[Entry], changes: tuple[Change, ...]) -> Record:
        """A change of the transcript carries the labels that stand at it."""
        state = self._state
        for entry in entries:
            state = apply(state, entry)
        return Record(tuple(entries), changes, bounded(state.exposure) if changes else ())

    def _changed(self, change: Change) -> None:
        self._messages[change.keep :] = change.messages
        self._covers[change.keep :] = change.covers
        self._everything.advance(change.keep, change.messages)

    # --- writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        # First of all: in a forked child the mutex may be held for ever by a thread that is not there.
        if self._pid != os.getpid():
            raise JournalUnavailable(f"{self.path} was opened by another process; this one must not write to it")
        with self._mutex:
            if self._broken:
                raise JournalUnavailable(f"{self.path}: {self._broken}")
            if self._place and not (
                same_file(self._descriptor, self.path) and same_file(self._head, head_of(self.path))
            ):
                raise JournalUnavailable(f"{self.path} or its head was deleted or replaced while it was open")
            yield

    def _written(self, record: Record) -> State:
        try:
            return self._write(record)
        except OSError as error:
            raise JournalUnavailable(f"{self.path}: {error.strerror or type(error).__name__}") from error

    def _write(self, record: Record) -> State:
        """One line, then its head. Nothing in memory changes before both are durable."""
        state, sealed = self._sealed(record)
        line = line_of(sealed) + b"\n"
        # Set first: whatever stops us from here on, also an interrupt, leaves a file that must be looked at again.
        self._broken = "an earlier write was not finished; load the session again"
        try:
            self._disk.write(self._descriptor, line, self._size)
            self._disk.sync(self._descriptor)
        except BaseException:
            self._undo()
            raise
        # From here on nobody can say which head a failure leaves, so the session stays broken until it is loaded.
        self._disk.write(self._head, slot_bytes(self._headed(state, sealed)), slot_of(sealed.sequence))
        self._disk.sync(self._head)
        self._size += len(line)
        self._advanced(state, sealed, record)
        return state

    def _undo(self) -> None:
        """Cut off what was not acknowledged. If even that fails, the session stays broken until it is loaded again."""
        try:
            self._disk.truncate(self._descriptor, self._size)
            self._disk.sync(self._descriptor)
        except OSError:
            return
        self._broken = ""

    def _first_record(self, record: Record) -> None:
        """A new chain in a new file. A crash in here leaves a file without its head, or with another's: every leg."""
        state, sealed = self._sealed(record)
        data = HEADER + line_of(sealed) + b"\n"
        self._broken = "it was not finished; load it again"
        place_file(self._disk, self.path, data)
        place_file(self._disk, head_of(self.path), bytes(SLOT) + slot_bytes(self._headed(state, sealed)))
        let_go(self._opened, self._pid)  # of a damaged file, whose place is taken now
        self._hold_log()
        self._open_head()
        self._size = len(data)
        self._advanced(state, sealed, record)

    def _sealed(self, record: Record) -> tuple[State, Sealed]:
        state = self._state
        for entry in record.entries:
            state = apply(state, entry)
        return state, seal(self._place + 1, self._previous, body_of(record))

    def _advanced(self, state: State, sealed: Sealed, record: Record) -> None:
        self._place, self._previous = sealed.sequence, sealed.digest
        for change in record.changes:
            self._changed(change)
        self._broken = ""
        self._state = state

    def _headed(self, state: State, sealed: Sealed) -> Head:
        return head(sealed.sequence, sealed.digest, bounded(state.exposure), self._key)

    def close(self) -> None:
        """Let go of the file. Whatever would be written later is refused."""
        if self._pid != os.getpid():
            return  # the lock belongs to the process that took it
        with self._mutex:
            self.closed = True
            self._broken = self._broken or "the session is closed"
            let_go(self._opened, self._pid)
            self._descriptor = self._head = -1
            if self._lock is not None:
                self._lock.release()


def lines_of(path: Path, count: int) -> Iterator[tuple[Sealed, Record]]:
    """The first lines of a file, read anew. Whether they fit each other is for the caller to know."""
    log = read_regular(path) or b""
    for place, line in enumerate(log[len(HEADER) :].split(b"\n")[:count], 1):
        yield read_line(line, place)


def _folds(change: Change, current: Sequence[Message]) -> bool:
    """Does a change only make the last message longer? Then it is the person's text, and no rewrite."""
    return change.keep == len(current) - 1 and bool(change.messages) and grew(current[-1], change.messages[0])


def _refuse_other_versions(path: Path, log: bytes) -> None:
    """A file of a later version is not damaged: it is left alone for whoever can read it."""
    first = log.split(b"\n", 1)[0]
    if log.startswith(HEADER):
        return
    version = re.fullmatch(rb'\{"interlock_session":([0-9]{1,9})\}', first)
    if version and version[1] != b"1":  # a file of our own may be cut before the end of its first line
        raise JournalUnavailable(f"{path} was written by version {version[1].decode()}; this one reads version 1")


def _free(path: Path) -> Path:
    """A name for damaged files that nobody has yet."""
    number = 1
    while os.path.lexists(place := path.with_name(f"{path.name}.damaged-{number}")) or os.path.lexists(head_of(place)):
        number += 1
    return place
