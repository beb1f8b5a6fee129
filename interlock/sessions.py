"""A session: one conversation kept in one file, and what can be asked of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from interlock.errors import JournalUnavailable, Refused
from interlock.gate.conversation import Conversation, SystemClock, new_id
from interlock.gate.steps import stamp
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Message
from interlock.model.state import State, bounded
from interlock.model.transcript import Cover, Snapshot, Transcript, answered, common, joined
from interlock.ports import Clock
from interlock.stores.session_file import SessionFile


@dataclass(frozen=True, slots=True)
class Timeline:
    """Which labels cover each message. ``covers`` is as long as the messages; None is what a rewrite made uncertain."""

    covers: tuple[Cover, ...]

    def labels_of(self, place: int) -> tuple[Label, ...]:
        """The labels that stood when message ``place`` (from 0) entered, sorted.

        What nobody knows any more is every leg, never clean.

        Raises:
            IndexError: there is no such message.
        """
        cover = self.covers[place]
        return EVERY_LEG if cover is None else cover

    def __len__(self) -> int:
        return len(self.covers)


class Session:
    """A conversation in a file: its transcript, its journal, and a head beside it. One writer at a time.

    Labels are durable before what they describe can be seen: guards of :attr:`conversation` write here, call by call.
    Messages are written by :meth:`record_run`, by rewrites and rollbacks, and when the session is closed.
    """

    def __init__(self, file: SessionFile, conversation: Conversation, clock: Clock) -> None:
        """Use :meth:`create` or :meth:`load`."""
        self.conversation = conversation
        self._file = file
        self._clock = clock
        # Of other conversations: the lists that are recorded, so that recording a run again records only what is new.
        self._walked: dict[str, tuple[tuple[Message, ...], ...]] = {}

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], conversation: Conversation, *, key: bytes = b"", clock: Clock | None = None
    ) -> Self:
        """Begin a file with a conversation and everything that is known of it.

        Args:
            path: of a file that does not exist; a folder that is missing is made, mode 0700.
            key: secret for the head's MAC. Without one, whoever can write both files can forge them.

        Raises:
            SessionBusy: somebody has it open.
            WrongJournal: the conversation has a session already.
            JournalUnavailable: it exists already or can't be written.
        """
        file = SessionFile.create(_absolute(path), _states(conversation.transcript), key=key)
        try:
            conversation.moved(file, file)
        except BaseException:
            file.close()
            raise
        return cls(file, conversation, clock or SystemClock())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: bytes = b"", clock: Clock | None = None) -> Self:
        """Continue a conversation from its file.

        Calls that were under way are in doubt: their labels have joined, and nothing runs them again. A file that is
        damaged, or that its head does not fit, loads with every leg; :attr:`damage` says why.

        Raises:
            SessionBusy: another thread or process has it open.
            JournalUnavailable: there is none, it can't be read or written, or a later version wrote it.
        """
        clock = clock or SystemClock()
        file = SessionFile.load(_absolute(path), stamp(clock.now()), new_id(), key=key)
        stored = file.transcript()
        messages, covers = answered(stored.messages, stored.covers, bounded(file.folded.exposure))
        conversation = Conversation.attached(file.folded, file, file, Transcript(messages, covers), clock)
        return cls(file, conversation, clock)

    @property
    def state(self) -> State:
        """Security state, as in the file."""
        return self._file.folded

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def damage(self) -> str:
        """What was wrong with the file when it was loaded; empty when nothing was."""
        return self._file.damage

    @property
    def timeline(self) -> Timeline:
        """Which labels cover each of ``conversation.messages``."""
        return Timeline(self.conversation.transcript.covers)

    def messages_ever(self) -> tuple[Message, ...]:
        """Everything that was ever said and is on record, in order, also what was rewritten or rolled back since."""
        return self._file.messages_ever()

    def record_run(self, before: Snapshot, conversation: Conversation) -> None:
        """Write what a run added: the messages before it, each list that a rewrite or rollback replaced, the last one.

        A list that continues the one before is appended, any other is a rewrite in the file; so turns that were dropped
        in the middle of a run still reach it. May be repeated. A conversation that is not this session's own gives its
        labels too: they only add.

        Raises:
            Refused: the snapshot is of another conversation.
            JournalUnavailable: nothing was written.
        """
        if getattr(before, "conversation", None) != conversation.id:
            raise Refused("this snapshot was taken of another conversation")
        at = stamp(self._clock.now())
        if conversation is self.conversation:
            # Its rewrites and rollbacks are in the file since they happened.
            with conversation.hold():
                self._file.sync(lambda: (conversation.transcript,), at)
            return
        # The messages first, then the labels: what lands in between is covered, and labels without content do no harm.
        states = (Transcript(before.messages, before.covers), *_states(conversation.transcript))
        walked = self._walked.get(conversation.id, ())
        theirs = states[_shared(walked, states) :]
        self.conversation.learn(conversation.state, f"recorded from {conversation.id}")
        known = bounded((*self.conversation.exposure, *conversation.exposure))

        def lists() -> tuple[Transcript, ...]:
            own = self.conversation.transcript
            return (own, *(_covered(one, own, known) for one in theirs))

        with self.conversation.hold():
            self._file.sync(lists, at)
            self.conversation.follow(self._file.transcript())
        self._walked[conversation.id] = tuple(one.messages for one in states)

    def close(self) -> None:
        """Write what is not yet in the file, and let go of it. Guards of the conversation are refused from here on."""
        if self._file.closed:
            return
        try:
            with self.conversation.hold():
                self._file.sync(lambda: (self.conversation.transcript,), stamp(self._clock.now()))
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except JournalUnavailable:
            if error is None:
                raise  # an error of the block is more to the point

    def __repr__(self) -> str:
        return f"<Session {self.path.name}: {self.conversation!r}>"


def _states(transcript: Transcript) -> tuple[Transcript, ...]:
    """The lists of a run in order; of those that were replaced nobody knows any more what covered them."""
    replaced = (one.messages for one in transcript.past)
    return (*(Transcript(one, (None,) * len(one)) for one in replaced), transcript)


def _shared(walked: Sequence[tuple[Message, ...]], states: Sequence[Transcript]) -> int:
    """How many of these lists are recorded already, from the first on."""
    for place, (known, state) in enumerate(zip(walked, states, strict=False)):
        if known != state.messages:
            return place
    return min(len(walked), len(states))


def _covered(theirs: Transcript, own: Transcript, known: tuple[Label, ...]) -> Transcript:
    """The messages of another conversation under what this one knows: never less than it knew of a message already, and
    of new ones all that either of both holds."""
    kept = common(own.messages, theirs.messages)
    shared = map(joined, own.covers[:kept], theirs.covers[:kept])
    return Transcript(theirs.messages, (*shared, *(joined(one, known) for one in theirs.covers[kept:])))


def _absolute(path: str | os.PathLike[str]) -> Path:
    # Absolute from the start: a change of folder must not lead to another file.
    return Path(os.path.abspath(path))
