"""The store above SQL: one logic for SQLite and PostgreSQL (T2, T8, T10, T16).

Every write is one transaction: lock the head's row, catch up with what others wrote, check the version, write the
entries, move the head, commit. Nothing is remembered here before the commit has returned, and what is remembered is
only ever where reading begins. Every statement names the namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from interlock.errors import Conflict, Refused, Tampered, UnknownConversation
from interlock.model.chain import GENESIS, Head, Sealed, authentic, head, seal
from interlock.model.checkpoints import state_body, state_digest
from interlock.model.digests import Digest
from interlock.model.entries import Checkpointed, Entry, Erased, Transcribed, decode, encode
from interlock.model.labels import Label
from interlock.model.layout import UNKNOWN, newest
from interlock.model.messages import Message
from interlock.model.names import conversation_name, namespace_name
from interlock.model.records import Change, StoredMessage, message_digest, read_body
from interlock.model.retention import BARE, Base, begins, trimmed
from interlock.model.state import State, apply
from interlock.stores import statements as say
from interlock.stores.folds import BEGINNING, CHECKPOINT_EVERY, Fold, Folds, Link, advanced, from_checkpoint
from interlock.stores.sql import CommitUnknown, Cursor, Database, Rows, Taken, Values, as_bytes, as_int, as_text
from interlock.stores.trimming import Cut, cut, started
from interlock.stores.turns import Plan, bodies_of, first_of, later, planned

Ask: TypeAlias = Callable[[str, Values], Rows]
PAGE: Final = 5000
MAX_AT_ONCE: Final = 200  # entries; a statement takes 65,535 values
ALREADY: Final = "another process has shortened this journal meanwhile; look again"
NEVER: Final = (1 << 62) + 0  # beyond every place


@dataclass(frozen=True, slots=True)
class Counted:
    """How much of a namespace is stored, and the time of its last entry by its writer's clock.

    ``dropped`` entries are no longer there: their journals were shortened.
    """

    namespace: str
    conversations: int
    entries: int
    messages: int
    last: str
    dropped: int = 0


class SqlStore:
    """Implements :class:`interlock.ports.Store` over a database."""

    def __init__(self, database: Database, key: bytes = b"") -> None:
        self.database = database
        self.key = key
        self._folds = Folds()

    def within(self, namespace: str) -> SqlNamespace:
        """See :meth:`interlock.ports.Store.within`."""
        return SqlNamespace(namespace_name(namespace), self.database, self._folds, self.key)

    def close(self) -> None:
        """See :meth:`interlock.ports.Store.close`."""
        self.database.close()

    def settle(self) -> None:
        """After erasing: see that what was erased does not linger beside the tables, as far as the database can."""

    def headless(self) -> tuple[tuple[str, str], ...]:
        """Namespaces and ids of conversations of which something is left, but no head. For the operator.

        Raises:
            JournalUnavailable: it could not be read.
        """
        return tuple((as_text(space), as_text(name)) for space, name in self.database.rows(say.HEADLESS, (PAGE,)))

    def namespaces(self) -> tuple[Counted, ...]:
        """What there is, for the operator. No part of the port: nothing that serves a caller may ask this.

        Raises:
            JournalUnavailable: it could not be read.
        """
        stored = {as_text(name): count for name, count in self.database.rows(say.COUNT_MESSAGES)}
        dropped = {as_text(name): int(count) for name, count in self.database.rows(say.COUNT_DROPPED)}
        found = []
        for name, conversations, entries in self.database.rows(say.COUNT):
            last = self.database.rows(say.LAST, (as_bytes(name),))
            written = as_text(last[0][0]) if last else ""
            gone, messages = dropped.get(as_text(name), 0), stored.get(as_text(name), 0)
            found.append(Counted(as_text(name), conversations, int(entries) - gone, messages, written, gone))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Written:
    """What a transaction wrote, and what it ended with."""

    fold: Fold
    plan: Plan
    marks: tuple[Digest, ...]


class SqlNamespace:
    """Implements :class:`interlock.ports.Namespace`."""

    __slots__ = ("_folds", "_key", "_name", "_prefix", "database")

    blocks = True

    def __init__(self, name: str, database: Database, folds: Folds, key: bytes) -> None:
        """Use :meth:`SqlStore.within`."""
        self._name = name
        self._prefix = name.encode()
        self.database = database
        self._folds = folds
        self._key = key

    @property
    def name(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlNamespace) and (self._folds, self._name) == (other._folds, other._name)

    def __hash__(self) -> int:
        return hash((id(self._folds), self._name))

    def __repr__(self) -> str:
        return f"<namespace {self._name!r}>"

    # --- the journal ------------------------------------------------------------------------------------------------

    def open(self, entries: Sequence[Entry]) -> State:
        """See :meth:`interlock.ports.Journal.open`."""
        first = first_of(entries, self._name)
        later(entries[1:])
        conversation = conversation_name(first.conversation)

        def work(cursor: Cursor) -> _Written:
            try:
                row = (*self._key_of(conversation), 0, GENESIS.encode(), 0, b"[]", b"", b"")
                cursor.run(say.OPEN, row)
            except Taken:
                raise Conflict(f"conversation {conversation!r} exists already") from None
            # A shortened journal has no first entry that would be in the way.
            if cursor.rows(say.LEFT, self._key_of(conversation) * len(say.OWNED)):
                raise Conflict(f"something is left of a conversation {conversation!r} whose head is gone")
            return self._written(cursor, conversation, BEGINNING, Plan(tuple(entries)))

        return self._done(conversation, work)

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`. One indexed query, and folding of what is new."""
        return self._caught_up(conversation, self.database.rows).state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`."""
        later(entries)
        if self.database.changes_and_inserts and entries:
            at_once = self._at_once(conversation, entries, expected)
            if at_once is not None:
                return at_once

        def work(cursor: Cursor) -> _Written:
            fold = self._locked(cursor, conversation)
            if expected is not None and fold.state.version != expected:
                self._remember(conversation, fold)  # it was committed by others: the next decision starts from it
                raise Conflict(f"the labels are at version {fold.state.version}, not {expected}")
            return self._written(cursor, conversation, fold, Plan(tuple(entries)))

        return self._done(conversation, work)

    def record(
        self, conversation: str, changes: Sequence[Change], entries: Sequence[Entry] = (), *, at: str, turn: int
    ) -> State:
        """See :meth:`interlock.ports.Namespace.record`."""
        later(entries)
        bodies = bodies_of(changes)

        def work(cursor: Cursor) -> _Written:
            fold = self._locked(cursor, conversation)
            plan = planned(fold.state, changes, bodies, entries, at, turn)
            return self._written(cursor, conversation, fold, plan)

        return self._done(conversation, work)

    def entries(self, conversation: str, *, after: int = 0, limit: int | None = None) -> tuple[Sealed, ...]:
        """See :meth:`interlock.ports.Namespace.entries`."""
        # With the one before, in one snapshot: its digest is what the first one follows.
        most = NEVER if limit is None else limit + 1
        found = self.database.rows(say.ENTRIES, (*self._key_of(conversation), max(0, after) - 1, most))
        previous = GENESIS
        if found and as_int(found[0][0]) <= after:
            previous, found = Digest(as_text(found[0][2])), found[1:]
        elif found and as_int(found[0][0]) > 1:
            previous = self.base(conversation).digest
        found = found if limit is None else found[:limit]
        if not found:
            self.head(conversation)  # raises when there is no such conversation
        sealed = []
        for sequence, body, digest in found:
            sealed.append(Sealed(as_int(sequence), previous, as_bytes(body), Digest(as_text(digest))))
            previous = sealed[-1].digest
        return tuple(sealed)

    def base(self, conversation: str) -> Base:
        """See :meth:`interlock.ports.Namespace.base`."""
        self.head(conversation)  # raises when there is no such conversation
        return self._base(conversation, self.database.rows)

    def kept(self, conversation: str, *, after: int = 0, limit: int) -> tuple[Sealed, ...]:
        """See :meth:`interlock.ports.Namespace.kept`."""
        rows = self.database.rows(say.KEPT, (*self._key_of(conversation), after, limit))
        return tuple(Sealed(one.sequence, GENESIS, one.body, one.digest) for one in map(_link, rows))

    def trim(self, conversation: str, *, through: int, at: str) -> State:
        """See :meth:`interlock.ports.Namespace.trim`. The folding is done before anything is locked."""
        before = self.base(conversation)
        if through <= before.sequence:
            return self.state(conversation)
        try:
            made = self._cut(conversation, before, through)
        except (Refused, Tampered):
            if self._base(conversation, self.database.rows) == before:
                raise
            raise Conflict(ALREADY) from None  # what was read was dropped while it was read
        entry, name = trimmed(at, made.base), self._key_of(conversation)

        def work(cursor: Cursor) -> _Written:
            fold = self._locked(cursor, conversation)
            if self._base(conversation, cursor.rows) != before:
                raise Conflict(ALREADY)
            last = cursor.rows(say.ENTRIES, (*name, through - 1, 1))
            if not last or as_text(last[0][2]) != made.base.digest:
                raise Tampered(through, "is not the entry that was verified before")
            cursor.run_many(say.KEEP, [(*name, one.sequence, one.body, one.digest.encode()) for one in made.kept])
            base = made.base
            cursor.run(
                say.SET_BASE,
                (*name, base.sequence, base.digest.encode(), base.state, base.kept, base.keeping.encode()),
            )
            cursor.run(say.DROP, (*name, through))
            cursor.run(say.DROP_CHECKPOINT, (*name, through))
            new, (link,) = _sealed(fold, [entry])
            cursor.run(say.ENTRY, (*name, link.sequence, link.body, link.digest.encode()))
            if cursor.run(say.ADVANCE_UNUSED, (*self._headed(new, at)[:-1], *name, *_mark(fold))) != 1:
                raise Conflict("another writer moved the head; load the state again")
            return _Written(new, Plan((entry,)), (link.digest,))

        return self._done(conversation, work)

    def _cut(self, conversation: str, base: Base, through: int) -> Cut:
        """Where a journal would begin, with everything in it held against its head."""
        after, links = base.sequence, list[Link]()
        while after < through:
            page = self.database.rows(say.ENTRIES, (*self._key_of(conversation), after, min(PAGE, through - after)))
            if not page:
                break
            links += map(_link, page)
            after = links[-1].sequence
        made = cut(base, links, through)
        fold, held = self._folded(conversation, self.database.rows, made.fold)
        begins(base, fold.trimmed)
        self._fitting(fold, held)
        return made

    def checkpoint(self, conversation: str) -> tuple[int, bytes] | None:
        """The checkpoint that stands beside the entries: its place and its state. For verifying; nobody believes it."""
        rows = self.database.rows(say.CHECKPOINT, self._key_of(conversation))
        return (as_int(rows[0][0]), as_bytes(rows[0][1])) if rows else None

    def head(self, conversation: str) -> Head:
        """See :meth:`interlock.ports.Namespace.head`."""
        rows = self.database.rows(say.HEAD, self._key_of(conversation))
        if not rows:
            raise self._missing(conversation, self.database.rows)
        return _head(rows[0])

    def conversations(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """See :meth:`interlock.ports.Namespace.conversations`."""
        rows = self.database.rows(say.NAMES, (self._prefix, after.encode("utf-8", "surrogatepass"), limit))
        return tuple(as_text(row[0]) for row in rows)

    def idle_since(self, at: str, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """Ids of conversations whose last entry is older than a time, by the clocks of their writers. For retention.

        Raises:
            JournalUnavailable: they could not be read.
        """
        rows = self.database.rows(say.IDLE, (self._prefix, at.encode(), after.encode("utf-8", "surrogatepass"), limit))
        return tuple(as_text(row[0]) for row in rows)

    def is_idle(self, conversation: str, at: str) -> bool:
        """Is its last entry older than a time? See :meth:`idle_since`."""
        return bool(self.database.rows(say.IS_IDLE, (*self._key_of(conversation), at.encode())))

    def active_since(self, at: str) -> int:
        """How many conversations have an entry that is not older than a time, by the clocks of their writers.

        Raises:
            JournalUnavailable: they could not be counted.
        """
        return as_int(self.database.rows(say.ACTIVE, (self._prefix, at.encode()))[0][0])

    # --- the transcript ---------------------------------------------------------------------------------------------

    def messages(
        self, conversation: str, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> tuple[StoredMessage, ...]:
        """See :meth:`interlock.ports.Namespace.messages`."""
        place = NEVER if before is None else before
        most = NEVER if limit is None else limit
        state = self.state(conversation)
        while True:
            rows = self.database.rows(say.NEWEST, (*self._key_of(conversation), after, place, most))
            now = self.state(conversation)
            if now.turn == state.turn:
                break
            state = now  # a turn ended in between: both must speak of the same transcript
        rows.reverse()
        if after <= 0 and before is None:
            if len(rows) != min(most, now.length):
                raise Tampered(0, f"{len(rows)} messages are stored, {min(most, now.length)} should be")
            for row, place in zip(rows, newest(now.layout, most), strict=True):
                if place not in (UNKNOWN, row[0]):
                    raise Tampered(0, f"message {place} is not in the transcript, where it should be")
        return self._checked(conversation, rows, state, now)

    def messages_ever(self, conversation: str, *, after: int = 0, limit: int) -> tuple[StoredMessage, ...]:
        """See :meth:`interlock.ports.Namespace.messages_ever`."""
        state = self.state(conversation)
        rows = self.database.rows(say.OLDEST, (*self._key_of(conversation), after, limit))
        now = self.state(conversation)
        if len(rows) < min(limit, state.places - after):
            raise Tampered(0, f"messages after {after} are missing")
        if rows and as_int(rows[-1][0]) > now.places:
            raise Tampered(0, f"message {rows[-1][0]} was never stored: there are {now.places}")
        return self._checked(conversation, rows, state, now)

    def salvaged(self, conversation: str, limit: int) -> tuple[Message, ...]:
        """What can still be read of the newest messages of a damaged conversation: for showing, under every label.

        Raises:
            JournalUnavailable: the database did not answer.
        """
        found = []
        for row in self.database.rows(say.NEWEST, (*self._key_of(conversation), 0, NEVER, limit)):
            try:
                found.append(read_body(as_bytes(row[3]), 0)[0])
            except Tampered:
                continue
        return tuple(reversed(found))

    def erase(self, conversation: str, *, at: str) -> State:
        """See :meth:`interlock.ports.Namespace.erase`."""

        def work(cursor: Cursor) -> _Written:
            fold = self._locked(cursor, conversation)
            gone = cursor.run(say.ERASE, (b"", *self._key_of(conversation)))
            cursor.run(say.ERASE_SUMMARIES, (b"", *self._key_of(conversation)))
            cursor.run(say.ERASE_QUESTIONS, (b"", *self._key_of(conversation)))
            cursor.run(say.ERASE_DRAFTS, (b"", *self._key_of(conversation)))
            return self._written(cursor, conversation, fold, Plan((Erased(at, gone),) if gone else ()))

        return self._done(conversation, work)

    def contents(self, conversation: str) -> int:
        """How many messages still have their content: what :meth:`erase` would erase. Raises JournalUnavailable."""
        ((count,),) = self.database.rows(say.CONTENTS, self._key_of(conversation))
        return as_int(count)

    def _checked(self, conversation: str, rows: Rows, before: State, after: State) -> tuple[StoredMessage, ...]:
        """Messages held against the entries that name them.

        Args:
            before, after: the states around the moment in which they were read.
        """
        contents = self._contents(conversation, sorted({as_int(row[1]) for row in rows}))
        found = []
        for row in rows:
            place, entry, slot, retired = (as_int(row[column]) for column in (0, 1, 2, 4))
            body = as_bytes(row[3])
            first, named = contents.get(entry, (0, ()))
            if not 0 <= slot < len(named) or first + slot != place:
                raise Tampered(entry, f"names no message {place}")
            if (place > after.erased) if not body else (place <= before.erased):
                raise Tampered(entry, f"message {place} was erased, and no entry says so, or is there again")
            if not body:
                found.append(StoredMessage(place, entry, None, None, retired))
                continue
            if message_digest(body) != named[slot]:
                raise Tampered(entry, f"message {place} is not the one that was stored")
            found.append(StoredMessage(place, entry, *read_body(body, place), retired))
        return tuple(found)

    def _contents(self, conversation: str, sequences: Sequence[int]) -> dict[int, tuple[int, tuple[Digest, ...]]]:
        """The first place and the digests that entries name."""
        found: dict[int, tuple[int, tuple[Digest, ...]]] = {}
        for start in range(0, len(sequences), 200):
            part = sequences[start : start + 200]
            statement = say.SOME_ENTRIES.format(", ".join("?" * len(part)))
            name = self._key_of(conversation)
            for sequence, body in self.database.rows(statement, (*name, *part, *name, *part)):
                entry = decode(as_bytes(body), as_int(sequence))
                if isinstance(entry, Transcribed):
                    found[sequence] = entry.place, entry.contents
        return found

    # --- reading ----------------------------------------------------------------------------------------------------

    def _key_of(self, conversation: str) -> tuple[bytes, bytes]:
        # A name that could never be stored is not there, like any other that is not.
        return self._prefix, conversation.encode("utf-8", "surrogatepass")

    def _missing(self, conversation: str, ask: Ask) -> UnknownConversation | Tampered:
        """There is no head: because there is no such conversation, or because somebody took it away."""
        name = self._key_of(conversation)
        if self._folds.known((self._name, conversation)).sequence or ask(say.LEFT, name * len(say.OWNED)):
            return Tampered(0, "the head of the conversation is gone")
        return UnknownConversation(f"no conversation {conversation!r} in this store")

    def _remember(self, conversation: str, fold: Fold) -> None:
        self._folds.remember((self._name, conversation), fold)

    def _caught_up(self, conversation: str, ask: Ask) -> Fold:
        """The fold of everything in the store.

        Raises:
            Tampered: the first place at which the entries do not fit each other or their head.
            JournalUnavailable: no such conversation.
        """
        # Known before the store is asked: what it then says can only be the same or later.
        known = self._folds.known((self._name, conversation))
        fold = known if known.sequence else self._checkpoint(conversation, ask)
        if not fold.sequence:
            fold, held = self._begun(conversation, ask)
        else:
            try:
                fold, held = self._folded(conversation, ask, fold)
            except Tampered:
                # Behind a checkpoint something does not fit: the entries alone say where. Behind what this process has
                # seen it is damage, unless that very part was dropped since.
                if known.sequence and self._base(conversation, ask).sequence <= known.sequence:
                    raise
                fold, held = self._begun(conversation, ask)
                if not known.state.taint.labels <= fold.state.taint.labels:
                    raise Tampered(fold.sequence, "labels that were here are gone: the store went back") from None
        self._fitting(fold, held)
        self._remember(conversation, fold)
        return fold

    def _begun(self, conversation: str, ask: Ask) -> tuple[Fold, Head]:
        """The fold of everything from where the journal begins, which a journal that is shortened meanwhile moves."""
        base = BARE
        while True:
            try:
                fold, held = self._folded(conversation, ask, started(base))
                begins(base, fold.trimmed)
            except Tampered:
                newer = self._base(conversation, ask)
                if newer.sequence <= base.sequence:
                    raise
                base = newer
            else:
                return fold, held

    def _base(self, conversation: str, ask: Ask) -> Base:
        for sequence, digest, state, kept, keeping in ask(say.BASE, self._key_of(conversation)):
            return Base(
                as_int(sequence), Digest(as_text(digest)), as_bytes(state), as_int(kept), Digest(as_text(keeping))
            )
        return BARE

    def _folded(self, conversation: str, ask: Ask, fold: Fold) -> tuple[Fold, Head]:
        while True:
            rows = ask(say.SINCE, (fold.sequence, *self._key_of(conversation), PAGE))
            if not rows:
                raise self._missing(conversation, ask)
            held, version = _head(rows[-1]), rows[-1][4]
            links = [_link(row[5:]) for row in rows if row[5] is not None]
            if links and links[-1].sequence > held.sequence:
                raise Tampered(held.sequence + 1, "stands after the head")
            fold = advanced(fold, links)
            if len(rows) < PAGE:
                if fold.sequence == held.sequence and fold.state.version != version:
                    raise Tampered(fold.sequence, "stands under another label version than the head names")
                return fold, held

    def _fitting(self, fold: Fold, held: Head) -> None:
        """Does the chain end where its head says, with the labels that it says?"""
        if fold.sequence > held.sequence:
            raise Tampered(held.sequence + 1, "was acknowledged here, and is gone: the store went back")
        if fold.sequence < held.sequence:
            raise Tampered(fold.sequence + 1, f"is missing: the head names {held.sequence} entries")
        if fold.digest != held.digest or tuple(sorted(fold.state.exposure)) != held.labels:
            raise Tampered(fold.sequence, "is not the entry that the head names")
        authentic(held, self._key)

    def _checkpoint(self, conversation: str, ask: Ask) -> Fold:
        """Where folding may begin: at a checkpoint that its chain names, or else at the beginning."""
        try:
            for place, body in ask(say.CHECKPOINT, self._key_of(conversation)):
                rows = ask(say.ENTRIES, (*self._key_of(conversation), as_int(place) - 2, 2))
                if len(rows) == 2:
                    before, link = map(_link, rows)
                    found = from_checkpoint(as_bytes(body), before, link)
                    if found is not None and found.sequence == place:
                        return found
        except Tampered:
            return BEGINNING  # never trusted over the entries: those tell
        return BEGINNING

    # --- writing ----------------------------------------------------------------------------------------------------

    def _locked(self, cursor: Cursor, conversation: str) -> Fold:
        """The fold of everything, with no other writer until the transaction ends."""
        rows = cursor.rows(say.HEAD + self.database.lock, self._key_of(conversation))
        if not rows:
            raise self._missing(conversation, cursor.rows)
        held, known = _head(rows[0]), self._folds.known((self._name, conversation))
        if (known.sequence, known.digest) == (held.sequence, held.digest):
            return known
        return self._caught_up(conversation, cursor.rows)

    def _at_once(self, conversation: str, entries: Sequence[Entry], expected: int | None) -> State | None:
        """Move the head and write the entries in one statement, if nobody has written since we last looked.

        None when somebody has, or when more is to be written than entries: then nothing happened here.
        """
        known = self._folds.known((self._name, conversation))
        stale = expected is not None and known.state.version != expected
        due = (known.sequence + len(entries)) // CHECKPOINT_EVERY > known.sequence // CHECKPOINT_EVERY
        if not known.sequence or stale or due or len(entries) > MAX_AT_ONCE:
            return None
        fold, sealed = _sealed(known, entries)
        name = self._key_of(conversation)
        moving = (*self._headed(fold, entries[-1].at), *name, *_mark(known))
        rows = [value for one in sealed for value in (one.sequence, one.body, one.digest.encode())]
        places = ", ".join(["(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BYTEA))"] * len(sealed))
        written = _Written(fold, Plan(tuple(entries)), tuple(one.digest for one in sealed))
        try:
            count = self.database.once(say.AT_ONCE.format(places), (*moving, *name, *rows))
        except CommitUnknown:
            if not self._stands(conversation, written):
                raise
            count = len(sealed)
        except Taken:
            return None
        if count != len(sealed):
            return None
        self._remember(conversation, fold)
        return fold.state

    def _headed(self, fold: Fold, at: str) -> tuple[bytes | int, ...]:
        """The columns of a head that is moved to a fold."""
        held = head(fold.sequence, fold.digest, tuple(fold.state.exposure), self._key)
        labels, mac = json.dumps(held.labels).encode(), held.mac.encode()
        return (fold.sequence, fold.digest.encode(), fold.state.version, labels, mac, at.encode())

    def _written(self, cursor: Cursor, conversation: str, fold: Fold, plan: Plan) -> _Written:
        """Write a plan behind a fold that is known to be the whole conversation."""
        if not plan.entries:
            return _Written(fold, plan, ())
        name = self._key_of(conversation)
        entries = [*plan.entries]
        new, sealed = _sealed(fold, entries)
        if new.sequence // CHECKPOINT_EVERY > fold.sequence // CHECKPOINT_EVERY:
            body = state_body(new.state)
            new, more = _sealed(new, [Checkpointed(entries[-1].at, state_digest(body))])
            sealed += more
            cursor.run(say.SAVE, (*name, new.sequence, body))
        cursor.run_many(say.ENTRY, [(*name, one.sequence, one.body, one.digest.encode()) for one in sealed])
        self._transcribed(cursor, name, fold, plan)
        if cursor.run(say.ADVANCE, (*self._headed(new, entries[-1].at), *name, *_mark(fold))) != 1:
            raise Conflict("another writer moved the head; load the state again")
        return _Written(new, plan, tuple(one.digest for one in sealed))

    def _transcribed(self, cursor: Cursor, name: tuple[bytes, bytes], fold: Fold, plan: Plan) -> None:
        cuts = list(plan.cuts)
        waiting: list[tuple[bytes | int, ...]] = []
        for number in range(len(plan.rows) + 1):
            while cuts and cuts[0].row == number:
                cut = cuts.pop(0)
                cursor.run_many(say.MESSAGE, waiting)
                waiting = []
                cursor.run(say.RETIRE, (fold.sequence + 1 + cut.entry, *name, *name, cut.drop))
            if number < len(plan.rows):
                row = plan.rows[number]
                place = fold.state.places + 1 + number
                waiting.append((*name, place, fold.sequence + 1 + row.entry, row.slot, row.body))
        if waiting:
            cursor.run_many(say.MESSAGE, waiting)

    def _done(self, conversation: str, work: Callable[[Cursor], _Written]) -> State:
        """Run a transaction; remember what it wrote once it is durable."""
        written: list[_Written] = []

        def noting(cursor: Cursor) -> _Written:
            written[:] = [work(cursor)]
            return written[0]

        try:
            done = self.database.transact(noting)
        except CommitUnknown:
            if not written or not self._stands(conversation, written[0]):
                raise
            done = written[0]
        except Taken:
            raise Conflict("another writer wrote these very places; load the state again") from None
        self._remember(conversation, done.fold)
        if done.plan.conflict is not None:
            raise done.plan.conflict
        return done.fold.state

    def _stands(self, conversation: str, written: _Written) -> bool:
        """After a commit that nobody acknowledged: is its last entry there?"""
        rows = self.database.rows(say.ENTRIES, (*self._key_of(conversation), written.fold.sequence - 1, 1))
        return bool(written.marks) and bool(rows) and as_text(rows[0][2]) == written.marks[-1]


def _sealed(fold: Fold, entries: Sequence[Entry]) -> tuple[Fold, list[Sealed]]:
    """The fold behind some more entries, and their links."""
    state, place, previous = fold.state, fold.sequence, fold.digest
    sealed: list[Sealed] = []
    for entry in entries:
        place += 1
        state = apply(state, entry)
        sealed.append(seal(place, previous, encode(entry)))
        previous = sealed[-1].digest
    return Fold(state, place, previous, fold.trimmed), sealed


def _mark(fold: Fold) -> tuple[bytes | int, ...]:
    """What a head must still be for something to be written behind this fold."""
    return (fold.sequence, fold.digest.encode(), fold.state.version)


def _link(row: Sequence[object]) -> Link:
    return Link(as_int(row[0]), as_bytes(row[1]), Digest(as_text(row[2])))


def _head(row: Sequence[object]) -> Head:
    sequence = as_int(row[0])
    try:
        labels = json.loads(as_bytes(row[2]))
        if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
            raise ValueError
    except (ValueError, RecursionError):
        raise Tampered(sequence, "the head holds what no head holds") from None
    return Head(sequence, Digest(as_text(row[1])), tuple(map(Label, labels)), as_text(row[3]))
