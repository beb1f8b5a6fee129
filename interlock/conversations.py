"""Conversations in a store: begun, taken up again in any process, and continued turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from interlock.errors import Conflict, JournalUnavailable, Refused, Tampered, TurnConflict
from interlock.gate.conversation import Conversation, SystemClock, new_id
from interlock.gate.steps import stamp
from interlock.model.entries import Entry, Opened, Resumed, RolledBack
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Message, Role
from interlock.model.names import conversation_name
from interlock.model.records import Change, StoredMessage, changes_between
from interlock.model.state import State, bounded
from interlock.model.transcript import Cover, Transcript, answered, answers, unpaired
from interlock.ports import Clock, Namespace, Store

PAGE = 500
MAX_SALVAGED = 500


class Conversations:
    """The conversations of one namespace of a store. Safe to share between threads."""

    def __init__(self, store: Store, namespace: str, *, clock: Clock | None = None) -> None:
        """
        Args:
            namespace: whose they are: take it from the authenticated identity, never from what a caller sends.

        Raises:
            Refused: not a namespace.
        """
        self._view = store.within(namespace)
        self._clock = clock or SystemClock()

    @property
    def namespace(self) -> Namespace:
        """The view of the store that all of this goes through."""
        return self._view

    def new(self, text: str = "") -> StoredConversation:
        """A new conversation, which begins with text that the person typed.

        Raises:
            JournalUnavailable: it could not be stored.
        """
        conversation = Conversation(namespace=self._view.name, clock=self._clock)
        if text:
            conversation.say(text)
        return self.keep(conversation)

    def standing(self, name: str) -> StoredConversation:
        """The conversation of this name, begun if there is none: for hosts whose calls can't be told apart, and which
        go on for ever. Several processes may hold it at once.

        Raises:
            Refused: not a name.
            JournalUnavailable: it can't be read, or could not be begun.
        """
        try:
            return self.load(conversation_name(name))
        except JournalUnavailable:
            pass  # there is none yet; or the store is gone, and what follows fails too
        opened = Opened(stamp(self._clock.now()), name, self._view.name)
        with suppress(Conflict):  # another process was first
            self._view.open((opened,))
        return self.load(name)

    def keep(self, conversation: Conversation) -> StoredConversation:
        """Keep a conversation here, with its messages and everything that is on record of it.

        Raises:
            Refused: it belongs to another namespace.
            WrongJournal: it is kept somewhere else already.
            Conflict: a conversation of this id is stored already.
            JournalUnavailable: it could not be stored.
        """
        if conversation.namespace != self._view.name:
            raise Refused(f"the conversation belongs to another namespace than {self._view.name!r}")
        keeper = _Keeper(self._view, self._clock, conversation.id, Transcript(), 0, 0)
        conversation.moved(self._view, keeper)
        stored = StoredConversation(conversation, keeper)
        stored.record_turn()
        return stored

    def load(self, conversation: str, *, newest: int | None = None, alone: bool = False) -> StoredConversation:
        """Take up a conversation where it stands.

        What is damaged goes on as a new conversation with every leg, whose journal says why; ``damage`` says so too,
        and the damaged one stays as it is. What can still be read of its newest messages is shown, under every label.

        Args:
            newest: show only so many of the newest messages, never a result without its call. Labels are always all.
            alone: nobody else is working on it: calls without an outcome are in doubt, and their labels join.

        Raises:
            JournalUnavailable: there is none in this namespace, or it can't be read.
        """
        at = stamp(self._clock.now())
        try:
            state = self._view.state(conversation)
            if alone and (state.in_flight or state.children):
                state = self._view.append(conversation, (Resumed(at, "loaded alone"),))
            while True:
                found = self._view.messages(conversation, limit=newest)
                now = self._view.state(conversation)
                if now.turn == state.turn:
                    break
                state = now  # a turn ended in between: both must speak of the same transcript
        except Tampered as problem:
            return self._begun_again(conversation, f"{problem}", at)
        kept = _whole(found)
        base = state.length - len(kept)
        stored = tuple(one.message for one in kept if one.message is not None)
        covers = tuple(one.cover for one in kept)
        transcript = Transcript(*answered(stored, covers, bounded(state.exposure)))
        return self._attached(state, transcript, Transcript(stored, covers), base)

    def __iter__(self) -> Iterator[str]:
        """Ids of all conversations, page by page, in the order of their bytes."""
        after = ""
        while page := self._view.conversations(after=after, limit=PAGE):
            yield from page
            after = page[-1]

    def _begun_again(self, conversation: str, why: str, at: str) -> StoredConversation:
        opened = Opened(at, new_id(), self._view.name, conversation)
        state = self._view.open((opened, Resumed(at, f"damaged, {why}", EVERY_LEG)))
        messages = _legible(self._view, conversation)
        shown = Transcript(*answered(messages, (EVERY_LEG,) * len(messages), EVERY_LEG))
        return self._attached(state, shown, Transcript(), 0, f"{why}; it goes on as {opened.conversation}")

    def _attached(
        self, state: State, shown: Transcript, kept: Transcript, base: int, damage: str = ""
    ) -> StoredConversation:
        keeper = _Keeper(self._view, self._clock, state.conversation, kept, base, state.turn)
        return StoredConversation(Conversation.attached(state, self._view, keeper, shown, self._clock), keeper, damage)


class _Keeper:
    """What is stored of one conversation, as this process last saw it. Implements the gate's ``Keeper``."""

    def __init__(
        self, view: Namespace, clock: Clock, conversation: str, kept: Transcript, base: int, turn: int
    ) -> None:
        self.view = view
        self.conversation = conversation
        self.base = base
        self.turn = turn
        self._clock = clock
        self._kept = kept

    def keep(self, old: Transcript, new: Transcript, entry: Entry) -> None:
        """A rewrite and what it replaced are on record when it happens."""
        if isinstance(entry, RolledBack):
            entry = replace(entry, kept=entry.kept + self.base)  # the messages that were not loaded are still there
        self.record((_kept(old), _kept(new)), (entry,))

    def record(self, states: Sequence[Transcript], entries: Sequence[Entry] = (), outcome: Any = None) -> None:
        """Store lists of messages, in order, each in place of the one before."""
        lists = ((one.messages, one.covers) for one in (self._kept, *states))
        changes = changes_between(lists, self.base)
        if not changes and not entries:
            return
        at = stamp(self._clock.now())
        try:
            state = self.view.record(self.conversation, changes, entries, at=at, turn=self.turn)
        except TurnConflict as conflict:
            conflict.outcome = _said(changes) if outcome is None else outcome
            raise
        self._kept, self.turn = states[-1], state.turn


class StoredConversation:
    """One conversation as this process continues it. Guards of ``conversation`` write to the store, call by call."""

    def __init__(self, conversation: Conversation, keeper: _Keeper, damage: str = "") -> None:
        """Use :class:`Conversations`."""
        self.conversation = conversation
        self._keeper = keeper
        self._damage = damage

    @property
    def id(self) -> str:
        return self.conversation.id

    @property
    def turn(self) -> int:
        """Number of turns that the conversation had when this process last saw all of them."""
        return self._keeper.turn

    @property
    def damage(self) -> str:
        """What was wrong with what is stored when it was loaded; empty when nothing was."""
        return self._damage

    @property
    def earlier(self) -> int:
        """How many messages of the transcript stand before those that are shown."""
        return self._keeper.base

    def record_turn(self, outcome: Any = None) -> int:
        """End a turn: store what was said since the last one, all or nothing. Without anything new, nothing happens.

        Messages in the system role are left out: instructions are the operator's, and come anew each time.

        Args:
            outcome: what the turn had finished with; the conflict carries it if another turn was first.

        Returns:
            The number of turns that the conversation now has.

        Raises:
            TurnConflict: another turn ended first. Its ``outcome`` is yours, or the messages that were not stored;
                load the conversation again and decide what to do with it. Nothing is run again by itself.
            JournalUnavailable: nothing was written.
        """
        self._keeper.record((_kept(self.conversation.transcript),), (), outcome)
        return self._keeper.turn

    def messages_ever(self) -> Iterator[Message]:
        """Everything that was ever stored and is not erased, in order, also what was rewritten or rolled back since."""
        after = 0
        while page := self._keeper.view.messages_ever(self.id, after=after, limit=PAGE):
            yield from (one.message for one in page if one.message is not None)
            after = page[-1].place

    def __repr__(self) -> str:
        return f"<StoredConversation at turn {self.turn}: {self.conversation!r}>"


def _kept(transcript: Transcript) -> Transcript:
    """What of a transcript goes into a store."""
    pairs = [
        (message, cover)
        for message, cover in zip(transcript.messages, transcript.covers, strict=True)
        if message.role is not Role.SYSTEM
    ]
    return Transcript(tuple(one for one, _ in pairs), tuple(cover for _, cover in pairs))


def _whole(found: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages that are there, from the first one that is no result of a call that is not shown."""
    kept: list[StoredMessage] = []
    for one in reversed(found):
        if one.message is None:
            break  # what was erased, and everything before it
        kept.append(one)
    kept.reverse()
    while kept and kept[0].message is not None and kept[0].message.role is Role.TOOL:
        del kept[0]
    return kept


def _legible(view: Namespace, conversation: str) -> tuple[Message, ...]:
    """What can still be read of a damaged conversation, from a place on from which no call is without its result."""
    read = getattr(view, "salvaged", None)
    found: tuple[Message, ...] = tuple(read(conversation, MAX_SALVAGED)) if read is not None else ()
    alone = set(unpaired(found))
    start = 0
    for place, message in enumerate(found):
        if alone.intersection([*(use.id for use in message.uses), *(one.id for one in answers(message))]):
            start = place + 1
    return found[start:]


def _said(changes: Sequence[Change]) -> tuple[tuple[Message, Cover], ...]:
    return tuple(pair for one in changes for pair in zip(one.messages, one.covers, strict=True))
