"""What Interlock asks of the outside, as protocols. Implement one and pass it in; nothing is registered globally.

Every port is synchronous: the embedded engine and the in-memory journal never block, and a worker thread costs more
than the whole call. Only an engine's ``evaluate`` may give an awaitable, and only the asynchronous methods of a guard
accept it; anywhere else a coroutine is a port that did not do its work, and what depended on it is refused. An engine
that waits for a server has a second door, ``aevaluate``, which those methods use instead (:class:`AsyncEngine`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from interlock.model.answers import ControlText
from interlock.model.carried import Carried
from interlock.model.chain import Head, Sealed
from interlock.model.digests import Digest
from interlock.model.drafts import Draft
from interlock.model.entries import Entry
from interlock.model.look import Paths
from interlock.model.operands import Operand
from interlock.model.question import Answer, Question
from interlock.model.records import Change, StoredMessage
from interlock.model.retention import Base
from interlock.model.state import State

if TYPE_CHECKING:  # loaded by those who keep facts and summaries
    from interlock.model.facts import Fact, Selection, Vector
    from interlock.model.summaries import StoredSummary


@runtime_checkable
class Engine(Protocol):
    """Answers documents. The same bytes always give the same answer."""

    @property
    def name(self) -> str:
        """Short name for the journal: ``embedded``, ``reference``, ``opa``."""

    @property
    def revision(self) -> str:
        """Digest of the controls and settings that answer."""

    @property
    def controls(self) -> Mapping[str, ControlText]:
        """Every loaded control by code. Each must answer every document."""

    @property
    def looks_at(self) -> Paths | None:
        """Paths of the document that the answers depend on, so that they may be remembered; None when an answer may
        change while the document does not (a server whose policy is replaced)."""

    def evaluate(self, document: bytes) -> str | bytes:
        """The answers, as JSON text of an object by code.

        Raises:
            EngineUnavailable: no answer could be had.
        """


@runtime_checkable
class AsyncEngine(Engine, Protocol):
    """An engine with a door for callers that must not block; both give the same answers."""

    async def aevaluate(self, document: bytes) -> str | bytes:
        """See :meth:`Engine.evaluate`."""


@runtime_checkable
class Journal(Protocol):
    """The append-only record. Durable when ``append`` returns."""

    def open(self, entries: Sequence[Entry]) -> State:
        """Start a conversation with these entries; the first is ``Opened``.

        Raises:
            Conflict: the conversation exists already.
            JournalUnavailable: nothing was written.
        """

    def state(self, conversation: str) -> State:
        """The fold of all entries so far.

        Raises:
            JournalUnavailable: no such conversation, or it could not be read. Absence is never cleanliness.
        """

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """Write all of these entries, or none.

        Args:
            expected: label version that the entries were made under; None for facts that hold under any.

        Raises:
            Conflict: the label version is another one by now.
            JournalUnavailable: nothing was written.
        """


@runtime_checkable
class Namespace(Journal, Protocol):
    """One namespace of a store: the journals and transcripts of its conversations, and of nobody else's.

    The namespace is part of every query, so a conversation of another one is not there: every method raises for it
    exactly what it raises for a conversation that never existed. Safe to share between threads.
    """

    @property
    def name(self) -> str:
        """The namespace, as validated by :func:`interlock.model.names.namespace_name`."""

    @property
    def blocks(self) -> bool:
        """Whether calls wait for a disk or a server; asynchronous guards then make them in a worker thread."""

    def record(
        self, conversation: str, changes: Sequence[Change], entries: Sequence[Entry] = (), *, at: str, turn: int
    ) -> State:
        """End a turn: change the transcript and write entries, all or nothing.

        The transcript is append-only: a change that keeps fewer messages than there are retires the rest, which stay
        on record. Each message is named by its digest in a ``transcribed`` entry, and whatever its cover holds beyond
        the exposure joins the taint.

        Args:
            at: now, for the entries that are made here.
            turn: ``State.turn`` that the changes were made from.

        Returns:
            The state, whose ``turn`` has grown by one.

        Raises:
            TurnConflict: another turn ended first. The messages are not stored, but ``entries`` are, and the labels of
                the covers have joined: what the loser learnt is not forgotten.
            JournalUnavailable: no such conversation, or nothing was written.
        """

    def messages(
        self, conversation: str, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> tuple[StoredMessage, ...]:
        """The newest messages of the present transcript, oldest first, each held against its digest in the journal.

        Args:
            after, before: only those with a place between these two.
            limit: at most so many, counted from the newest.

        Raises:
            Tampered: a message is not what its entry says.
            JournalUnavailable: no such conversation, or it could not be read.
        """

    def messages_ever(self, conversation: str, *, after: int = 0, limit: int) -> tuple[StoredMessage, ...]:
        """Messages in the order in which they were stored, retired ones too, from the oldest. For export and audit.

        Raises:
            Tampered, JournalUnavailable: see :meth:`messages`.
        """

    def entries(self, conversation: str, *, after: int = 0, limit: int | None = None) -> tuple[Sealed, ...]:
        """Links of the chain as stored, oldest first. Whether they fit is ``interlock.model.chain.verify``'s to say.

        A journal that was shortened begins behind its :meth:`base`: what was dropped is left out.

        Raises:
            JournalUnavailable: no such conversation, or it could not be read.
        """

    def head(self, conversation: str) -> Head:
        """The head as stored.

        Raises:
            JournalUnavailable: no such conversation, or it could not be read.
        """

    def base(self, conversation: str) -> Base:
        """Where the journal begins, as stored; :data:`interlock.model.retention.BARE` while nothing was dropped.

        Whether it may be believed is ``interlock.model.retention.begins``'s to say.

        Raises:
            JournalUnavailable: no such conversation, or it could not be read.
        """

    def kept(self, conversation: str, *, after: int = 0, limit: int) -> tuple[Sealed, ...]:
        """Dropped entries that stay beside because messages are held against them, oldest first, as stored.

        Raises:
            JournalUnavailable: they could not be read.
        """

    def trim(self, conversation: str, *, through: int, at: str) -> State:
        """Drop every entry up to ``through`` behind a checkpoint: an entry that names the state after them.

        All or nothing, and no state changes by it (T2, T11): labels with their first sources, calls in flight and in
        doubt, what was typed, what vouches and what takes away stand as before. Nothing is dropped of a journal that
        does not fit its head.

        Returns:
            The state. Where the journal begins behind ``through`` already, nothing happens.

        Raises:
            Refused: the journal has no such entry.
            Tampered: it is damaged, and stays as it is.
            Conflict: another process has shortened it meanwhile.
            JournalUnavailable: no such conversation, or nothing was dropped.
        """

    def conversations(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """Ids of conversations in the order of their bytes, from the first one after ``after``.

        Raises:
            JournalUnavailable: they could not be read.
        """

    def erase(self, conversation: str, *, at: str) -> State:
        """Delete the content of a conversation: its messages. The journal stays, and with it every label (T2).

        Raises:
            JournalUnavailable: no such conversation, or nothing was erased.
        """


@runtime_checkable
class Store(Protocol):
    """Where conversations are kept, for many processes. Nothing in it can be reached without a namespace."""

    def within(self, namespace: str) -> Namespace:
        """The view of one namespace. Derive it from the authenticated identity, never from what a caller sends.

        Two views of one namespace are equal.

        Raises:
            Refused: not a namespace.
        """

    def close(self) -> None:
        """Let go of files and connections. Whatever is asked later raises JournalUnavailable."""


@runtime_checkable
class Artifacts(Protocol):
    """Which labels are on the resources that agents write and read. They only grow, and concurrent writers all count.

    Keys are of no namespace: a file is the same file whoever reads it. What another namespace wrote brings its labels,
    but not the notes that say where from.
    """

    def carried(self, keys: Sequence[str], *, namespace: str) -> Carried:
        """What these artifacts carry together, with all that lies in them or above them
        (:func:`interlock.model.artifacts.concerns`).

        A key that names nothing, and any key when the record can't vouch for what is missing in it, gives
        :data:`interlock.model.carried.LOST`.

        Raises:
            MemoryUnavailable: it could not be read.
        """

    def label(self, keys: Sequence[str], carried: Carried, *, namespace: str) -> None:
        """Join labels to these artifacts. Durable when it returns.

        Raises:
            MemoryUnavailable: nothing was written.
        """


@runtime_checkable
class Facts(Protocol):
    """Facts that agents wrote for other conversations. The namespace is part of every query: a fact of another one is
    not there. Labels only grow, and stay when the text is deleted."""

    def put(self, namespace: str, fact: Fact, *, expected: int, limit: int, vector: Vector | None = None) -> Fact:
        """Store a revision in place of revision ``expected`` (0: there is none yet).

        Args:
            limit: facts that the namespace may hold.

        Returns:
            The fact with the labels of all its revisions.

        Raises:
            Conflict: the fact is at another revision.
            Refused: the namespace is full.
            MemoryUnavailable: nothing was written.
        """

    def fact(self, namespace: str, id: str) -> Fact | None:
        """One fact, also one whose text was deleted. Raises MemoryUnavailable."""

    def search(self, namespace: str, words: Sequence[str], limit: int) -> tuple[Fact, ...]:
        """The facts that hold most of these words (:func:`interlock.model.facts.ranked`). Raises MemoryUnavailable."""

    def near(self, namespace: str, vector: Vector, limit: int) -> tuple[Fact, ...]:
        """The facts whose vectors are nearest. Raises MemoryUnavailable."""

    def forget(self, namespace: str, selection: Selection) -> int:
        """Delete texts and vectors. Labels stay.

        Returns:
            How many facts lost their text.

        Raises:
            MemoryUnavailable: not all were deleted.
        """


@runtime_checkable
class Summaries(Protocol):
    """Texts of summaries by the digest that the journal names. A text that is lost is made anew from the transcript."""

    def keep(self, namespace: str, conversation: str, summary: StoredSummary) -> None:
        """Store one. Durable when it returns. Raises MemoryUnavailable."""

    def summary(self, namespace: str, conversation: str, content: Digest) -> StoredSummary | None:
        """The summary whose text has this digest. Raises MemoryUnavailable."""


@runtime_checkable
class Clock(Protocol):
    """Tells the time, once per decision."""

    def now(self) -> datetime:
        """Aware, in UTC."""


@runtime_checkable
class Files(Protocol):
    """Resolves paths as the file system would."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Absolute paths after links and dots, in any order; a path that can't be resolved is left out."""


@runtime_checkable
class Operands(Protocol):
    """Reads the files that calls name, for approvals. :class:`Files` of a host may be one, too."""

    def operands(self, paths: Sequence[str]) -> tuple[Operand, ...]:
        """One for each path, in order: where it leads, and size and SHA-256 of a regular file.

        What can't be read, or is too large to be read, is ``unreadable``; nothing is opened but regular files.
        """


@runtime_checkable
class Approver(Protocol):
    """A way to a person. ``ask`` may be a coroutine function, which only the asynchronous methods of a guard accept.

    ``interlock.testing.approvers`` has checks for implementations.
    """

    def ask(self, question: Question, seconds: float) -> Answer | None:
        """Show a person the whole question, and wait for their answer.

        Returns:
            What the person answered; None when nobody did within this time, or when they answered elsewhere, which the
            journal tells. Silence, the end of input, and an answer that can't be made out are None, never a yes.

        Raises:
            ApproverUnavailable: nobody could be asked. It counts like nobody's answer.
        """


@runtime_checkable
class Questions(Protocol):
    """Where open questions are kept, so that they can be shown and answered in another process.

    What is kept is for showing only: the journal holds its digest, and what may be done.
    """

    def keep(self, question: Question) -> None:
        """Keep one, in the place of an earlier one of its id. Durable when it returns. Raises ApproverUnavailable."""

    def question(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """The kept bytes; :func:`interlock.model.question.read_question` holds them against the journal.

        Raises:
            ApproverUnavailable: they could not be read.
        """

    def waiting(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str], ...]:
        """Conversation and id of kept questions, open or not, in the order in which they were asked.

        Args:
            after: id of a question; only those that were kept after it.

        Raises:
            ApproverUnavailable: they could not be read.
        """

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """Delete a question that is closed. Raises ApproverUnavailable."""


@runtime_checkable
class DraftStore(Protocol):
    """Where drafts are stored: calls of tools that the operator routes to the outbox, with all that they would send.

    The journal holds the digest of each, and says what may be done with it.
    """

    def keep(self, draft: Draft) -> None:
        """Store one, in the place of an earlier one of its id. Durable when it returns. Raises OutboxUnavailable."""

    def draft(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """The stored bytes; :func:`interlock.model.drafts.read_draft` holds them against the journal.

        Raises:
            OutboxUnavailable: they could not be read.
        """

    def stored(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str, str], ...]:
        """Time, conversation and id of stored drafts, whatever became of them, in the order of their drafting.

        Args:
            after: id of a draft; only those that were stored after it.

        Raises:
            OutboxUnavailable: they could not be read.
        """

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """Delete a draft that is over. Raises OutboxUnavailable."""
