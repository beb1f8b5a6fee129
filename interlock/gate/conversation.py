"""A conversation: messages that the host owns, above a journal that never forgets (T2).

The messages may be pushed, rewritten, rolled back and by the host even dropped: taint does not live there. It lives in
the journal that the first guard or a session binds, and until then in entries that wait for it.
"""

from __future__ import annotations

import inspect
import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from interlock.errors import Bug, JournalUnavailable, Refused, WrongJournal
from interlock.gate.steps import stamp
from interlock.locks import LOCK, OwnLock
from interlock.model.carried import Carried, admissions, written_by
from interlock.model.digests import Digest, content_digest
from interlock.model.entries import (
    Admitted,
    ChildJoined,
    ChildOpened,
    Entry,
    Failed,
    Forked,
    Notes,
    Observed,
    Opened,
    Remembered,
    Rewritten,
    RolledBack,
    Ruling,
    Sent,
    Summarised,
    Typed,
    decode,
)
from interlock.model.labels import EVERY_LEG, Label, Leg, Taint, label, leg_of
from interlock.model.marks import heard_in
from interlock.model.messages import Message, Role, Text
from interlock.model.names import namespace_name
from interlock.model.origins import said_by_person
from interlock.model.parcels import Parcel
from interlock.model.pressure import Pressure, size_of
from interlock.model.state import MAX_VOICES, State, all_doubts, apply, bounded, inherited
from interlock.model.summaries import spoken
from interlock.model.tools import Egress, ToolSpec
from interlock.model.transcript import Cover, Snapshot, Transcript, answered, answers, common, ever, parted
from interlock.ports import Clock, Journal

PASTED = Label("untrusted:paste")
IMAGE = Label("private:image")


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Keeper(Protocol):
    """Keeps the transcript of a conversation, such as a session file."""

    def keep(self, old: Transcript, new: Transcript, entry: Entry) -> None:
        """Make durable, as one record, all of ``old`` and that ``new`` replaces it. Raises JournalUnavailable."""


@dataclass(slots=True)
class _Heir:
    """A fork that late results are told to.

    Attributes:
        source: the conversation that tells. A fork of a fork is an heir of both: the one in between may be gone.
        waits: numbers of the calls and ids of the children that were under way at the fork; None while it is made.
            Calls leave it when their result has been told. Children stay: they may learn something even after they
            were joined.
        channels: tell nothing but channels that were opened.
    """

    fork: weakref.ref[Conversation]
    source: weakref.ref[Conversation]
    waits: set[int | str] | None = None
    channels: bool = False


class Conversation:
    """One conversation of a person with an agent.

    Its taint belongs to it for ever: there is nothing here that makes it smaller. Only text given to :meth:`user` and
    :meth:`say` counts as typed by the person; a message in the user role does not. Copies of any kind are forks.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_early",
        "_expects",
        "_heirs",
        "_id",
        "_journal",
        "_keeper",
        "_lock",
        "_namespace",
        "_pages",
        "_transcript",
        "_waiting",
    )

    def __init__(self, *, namespace: str = "default", labels: Iterable[str] = (), clock: Clock | None = None) -> None:
        namespace_name(namespace)
        clock = clock or SystemClock()
        brought = tuple(sorted({label(one) for one in labels}))
        self._begin(Opened(stamp(clock.now()), new_id(), namespace, "", brought), clock, Transcript())

    def _begin(self, opened: Opened, clock: Clock, transcript: Transcript) -> None:
        self._clock = clock
        self._lock = OwnLock()
        self._id = opened.conversation
        self._namespace = opened.namespace
        self._transcript = transcript
        self._journal: Journal | None = None
        self._keeper: Keeper | None = None
        self._waiting: list[Entry] = [opened]
        self._early = apply(State(), opened)
        self._heirs: list[_Heir] = []
        self._expects: tuple[_Heir, ...] = ()
        self._pages: dict[int, str] = {}

    # --- constructors -----------------------------------------------------------------------------------------------

    @classmethod
    def new(cls) -> Conversation:
        """An empty conversation. It is clean because it is new."""
        return Conversation()

    @classmethod
    def user(cls, text: str) -> Conversation:
        """A new conversation that begins with text which the person typed."""
        conversation = Conversation()
        conversation.say(text)
        return conversation

    @classmethod
    def from_messages(cls, messages: Iterable[Message]) -> Conversation:
        """A new, *clean* conversation that shows these messages.

        Wrong for continuing a stored conversation: nothing is known about where the messages came from. Use
        :meth:`resumed` for that, or a session file. No text in them counts as typed.
        """
        conversation = Conversation()
        for message in messages:
            conversation._add(message)
        return conversation

    @classmethod
    def resumed(cls, messages: Iterable[Message], taint: Taint | Iterable[str]) -> Conversation:
        """Continue a conversation: these messages, and the labels that had entered it. No text counts as typed.

        Pass the old conversation's ``exposure``, which has the labels of calls that were still running too. A session
        file (:class:`interlock.Session`) keeps all of this, and what was typed.
        """
        conversation = Conversation(labels=tuple(taint))
        for message in messages:
            conversation._add(message)
        return conversation

    @classmethod
    def from_parcel(cls, parcel: Parcel, *, clock: Clock | None = None) -> Conversation:
        """A run of work that was sent for later, or handed to another agent.

        It begins with everything that was on the sender, before the text of the parcel becomes its first message. That
        text counts as nobody's typed words: a model wrote it.
        """
        self = Conversation(namespace=parcel.namespace, clock=clock)
        brought = parcel.carried.along(f"parcel {parcel.id}")
        opened = Opened(
            self._now(),
            self._id,
            parcel.namespace,
            parcel.conversation,
            brought.labels,
            voices=brought.voices,
            heard=brought.heard,
            doubts=parcel.doubts,
            notes=brought.notes,
        )
        self._begin(opened, self._clock, Transcript())
        self.push(Message.user(parcel.text))
        return self

    @classmethod
    def attached(
        cls, state: State, journal: Journal, keeper: Keeper, transcript: Transcript, clock: Clock
    ) -> Conversation:
        """A stored conversation above the journal that has it. For sessions and stores."""
        self = Conversation.__new__(Conversation)
        self._begin(Opened(stamp(clock.now()), state.conversation, state.namespace), clock, transcript)
        self._waiting, self._journal, self._keeper = [], journal, keeper
        return self

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._id

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model said and saw, oldest first."""
        return self._transcript.messages

    @property
    def rewritten(self) -> tuple[tuple[Message, ...], ...]:
        """The whole lists of messages that rewrites replaced since the last :meth:`snapshot`, oldest first."""
        return self._transcript.rewritten

    @property
    def pressure(self) -> Pressure:
        """How full the model's context is, as last weighed."""
        return self._transcript.pressure

    @property
    def transcript(self) -> Transcript:
        """Everything about the messages, frozen."""
        return self._transcript

    @property
    def state(self) -> State:
        """Security state, from the journal if one is bound."""
        return self._early if self._journal is None else self._journal.state(self._id)

    @property
    def taint(self) -> Taint:
        """Labels that have entered, each with its first source."""
        return self.state.taint

    @property
    def exposure(self) -> Taint:
        """Taint joined with the labels of everything under way: calls without an outcome, delegated work. Decisions
        use this."""
        return self.state.exposure

    @property
    def pages(self) -> dict[int, str]:
        """What the newest calls read, by number, for people: in this process only, since no journal holds addresses."""
        return self._pages

    def carried(self) -> Carried:
        """What something carries that this conversation writes now: its whole exposure, and where it came from."""
        state = self.state
        voices, anybody = state.heard()
        return written_by(self._id, state.exposure, voices, anybody, self._pages)

    def parcel(self, text: str) -> Parcel:
        """Work for later, or a message to another agent, with everything that this conversation holds.

        Raises:
            Refused: no text.
            JournalUnavailable: not on record; then there is no parcel.
        """
        if type(text) is not str or not text:
            raise Refused("a parcel holds text")
        carried, doubts = self.carried(), all_doubts(self.state)
        parcel = Parcel(new_id().replace("c-", "p-", 1), self._namespace, self._id, text, carried, doubts)
        parcel.encode()  # refused before anything is on record
        self.record(Sent(self._now(), parcel.id, carried.labels, content_digest(text), len(text)))
        return parcel

    def open_parcel(self, parcel: Parcel) -> str:
        """Take in a message of another agent: its labels are on record before its text is returned.

        Raises:
            JournalUnavailable: not on record; then nobody may see the text.
        """
        name = f"parcel {parcel.id} of {parcel.conversation}"
        self.take_in(parcel.seen_from(self._namespace), name, parcel.text, parcel.doubts)
        return parcel.text

    def take_in(self, carried: Carried, name: str, text: str | None, doubts: tuple[Digest, ...] = ()) -> None:
        """Join what something carries that no tool brought, each label under the place that it came from.

        Args:
            name: of what enters, for people.
            text: what enters, or None when nothing is shown yet.
            doubts: calls that came along, of which nobody knows whether they happened.

        Raises:
            JournalUnavailable: not all of it is on record; then it must not be shown.
        """
        if not carried.labels and not doubts:
            return
        first, *more = admissions(carried, self._now(), name, text)
        for entry in (replace(first, doubts=doubts), *more):
            self.record(entry)

    # --- messages ---------------------------------------------------------------------------------------------------

    def push(self, message: Message) -> None:
        """Add a message. An image arms ``private:image`` before it can be seen.

        Raises:
            Refused: it is no Message; or calls of the last message have no result yet, and this is none (T17).
            JournalUnavailable: the label of an image is not on record; then the message is not added.
        """
        _checked((message,))
        if not answers(message):
            self._transcript.demand_closed()
        self._add(message)

    def _add(self, message: Message) -> None:
        """Add a message of a list that was kept, whole or not."""
        self._arm(_checked((message,)))
        with self._lock:
            self._transcript = self._transcript.pushed(message, self._cover())

    def _arm(self, messages: Iterable[Message], known: Iterable[Message] = ()) -> None:
        """Labels of images, before they can be seen; those that were there already have theirs."""
        there = {image for message in known for image in message.images}
        for image in (one for message in messages for one in message.images if one not in there):
            self.record(Admitted(self._now(), "image", (IMAGE,), content_digest(image.media_type), len(image.payload)))

    def say(self, text: str, *, pasted: bool = False) -> None:
        """Add text that the person typed, or, with ``pasted``, text that they brought from somewhere else.

        It is folded into a trailing user message, or into the results of the last round: providers refuse a second
        message of the user there. Pasted text arms ``untrusted:paste`` and vouches for nothing.

        Raises:
            Refused: no text; or calls of the last message have no result yet.
            JournalUnavailable: not on record; then the text is not added.
        """
        if not isinstance(text, str):
            raise Refused("a person says text")
        self._transcript.said(text, ())  # refused before anything is on record
        self.record(self._pasted(text) if pasted else self._typed(text))
        with self._lock:
            self._transcript = self._transcript.said(text, self._cover())

    def snapshot(self) -> Snapshot:
        """The messages as they stand, for :meth:`roll_back_failed_turn`. A run starts here: ``rewritten`` is empty."""
        with self._lock:
            self._transcript = now = self._transcript.begun()
        return Snapshot(self._id, now.messages, now.covers)

    def rewrite(self, messages: Iterable[Message]) -> None:
        """Put another list in place of the messages: compaction, eviction, thinning. The labels stay (T2), whatever is
        dropped, and what is dropped vouches for nothing new.

        Raises:
            Refused: something that is no message, or a call and its result would be parted (T17).
            TurnConflict: in a store, when another turn ended first; then the messages stay.
            JournalUnavailable: not on record; then the messages stay.
        """
        new = _checked(messages)
        with self._lock:
            old = self._transcript
            alone = parted(old.messages, new)
            if alone:
                raise Refused(
                    f"the new list parts calls from their results ({', '.join(alone[:4])});"
                    " keep both of a pair, or neither"
                )
            self._arm(new, old.messages)
            self._replace(old.replaced(new), Rewritten(self._now(), len(old.messages), len(new)))

    def roll_back_failed_turn(self, before: Snapshot) -> None:
        """Take back a run that failed: the messages of the snapshot, without the prompt that led to the failure.

        The last message is removed if it is only text that the person typed. Prompts that were folded into one go
        together; text that was folded into results stays, since the calls need them. Labels and ``rewritten`` stay.

        Raises:
            Refused: the snapshot is of another conversation.
            TurnConflict: in a store, when another turn ended first; then the messages stay.
            JournalUnavailable: not on record; then the messages stay.
        """
        if getattr(before, "conversation", None) != self._id:
            raise Refused("this snapshot was taken of another conversation")
        if len(_checked(before.messages)) != len(before.covers):
            raise Refused("this is no snapshot that was taken here")
        with self._lock:
            old, state = self._transcript, self.state
            self._arm(before.messages, old.messages)
            new = old.rolled_back(before, self._cover(), lambda text: content_digest(text) in state.texts)
            spoken_before, spoken_now = (spoken(one.messages, one.covers)[0] for one in (old, new))
            kept = common(spoken_before, spoken_now)
            self._replace(new, RolledBack(self._now(), len(old.messages), len(new.messages), kept))

    def _replace(self, new: Transcript, entry: Entry) -> None:
        if self._keeper is None:
            self.record(entry)
        else:
            self._keeper.keep(self._transcript, new, entry)
        self._transcript = new

    def weigh(self, tokens: int, fingerprint: str = "") -> Pressure:
        """Note how many tokens the provider counted for the messages as they stand.

        Args:
            fingerprint: of model, system prompt and tools (:func:`interlock.model.pressure.fingerprint`); another one
                begins a new series.
        """
        with self._lock:
            now = self._transcript
            pressure = now.pressure.carry_into(fingerprint).read(tokens, size_of(now.messages))
            self._transcript = replace(now, pressure=pressure)
        return pressure

    def __len__(self) -> int:
        return len(self._transcript.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._transcript.messages)

    def is_empty(self) -> bool:
        return not self._transcript.messages

    def __bool__(self) -> bool:
        return True  # an empty conversation is still a conversation

    # --- forks, children, beginning anew ----------------------------------------------------------------------------

    def fork(self) -> Conversation:
        """Another conversation that begins as this one stands: its messages, its exposure, what was typed in it.

        From here on both grow apart, but a late result of a call made before joins both. A fork of a child is a child
        of the same parent.

        Raises:
            JournalUnavailable: the fork is not on record; then there is none.
        """
        fork = self._unborn()
        with self._lock:
            self._start(fork)
            # Told from before its labels are read: a result that lands in between would be in neither.
            heir, others = self._expected_by(fork)
            state = self.state
            heir.waits = {*state.in_flight, *state.children}
            self._inherit(fork, state, self._transcript)
            fork._expects = (heir, *others)
            self._sift_heirs()
        self.record(Forked(self._now(), fork.id))
        return fork

    def _expected_by(self, fork: Conversation, *, channels: bool = False) -> tuple[_Heir, list[_Heir]]:
        """Make a fork an heir of this conversation, and of all that this one still expects something from."""
        heir = _Heir(weakref.ref(fork), weakref.ref(self), None, channels)
        self._heirs = [*self._heirs, heir]
        others = []
        for old in self._expects:
            source = old.source()
            if source is not None and (old.waits is None or old.waits):
                waits = None if old.waits is None else set(old.waits)
                other = _Heir(heir.fork, old.source, waits, channels or old.channels)
                with source._lock:
                    source._heirs = [*source._heirs, other]
                others.append(other)
        return heir, others

    def _unborn(self) -> Conversation:
        return Conversation.__new__(Conversation)

    def _start(self, other: Conversation) -> None:
        """Make another conversation usable before it has its labels."""
        other._begin(Opened(self._now(), new_id(), self._namespace, self._id), self._clock, Transcript())

    def _inherit(self, other: Conversation, state: State, transcript: Transcript) -> None:
        """Everything that this conversation holds becomes the beginning of the other, before its first message."""
        told = other._waiting[1:]  # late results that came while it was made
        messages, covers = answered(transcript.messages, transcript.covers, bounded(state.exposure))
        now = Transcript(messages, covers, pressure=transcript.pressure)
        opened = replace(inherited(state, self._now(), other.id), notes=self._notes(state))
        other._begin(opened, self._clock, now)
        for entry in told:
            other.record(entry)

    def _notes(self, state: State) -> Notes:
        return written_by(self._id, state.exposure, (), True, self._pages).notes

    def child(self, task: str, *, tools: Iterable[ToolSpec] | None = None) -> Child:
        """A conversation for a sub-agent, which begins with this one's exposure before its first message.

        While it runs, everything that it may bring is in flight here. Join it when it returns, fails or is given up:
        ``with conversation.child(task) as child: …`` does so however the block ends. What it learns that nobody
        foresaw is joined at once.

        Args:
            task: what the sub-agent is told; it was written under this conversation's labels and is not typed.
            tools: all that the sub-agent can call. They say what may come back; without them it is every leg.

        Raises:
            Refused: the task is no text.
            JournalUnavailable: the delegation is not on record; then there is none.
        """
        if not isinstance(task, str):
            raise Refused("a child is given its task as text")
        child = Child.__new__(Child)
        child._parent, child._may_bring = self, _may_bring(tools)
        with self._lock:
            self._start(child)
            state = self._as_a_child_begins()
        child._delegate(state)
        with self._lock:
            # Read again: what landed in between was in flight before, or is new; both belong to its beginning.
            now = self._as_a_child_begins()
            self._inherit(child, replace(now, taint=now.taint.join(state.exposure)), Transcript())
        child.push(Message.user(task))
        return child

    def _as_a_child_begins(self) -> State:
        """What a task can have been shaped by. Work that is still with other children has brought nothing yet; when it
        does, it comes here and not to them."""
        return replace(self.state, children={})

    def join(self, child: Conversation) -> None:
        """Take in everything that a child holds, however it ended. May be repeated: labels only add.

        Raises:
            Refused: it is no child of this conversation.
            JournalUnavailable: not on record; then what it may bring stays in flight.
        """
        given: object = child
        if not isinstance(given, Conversation) or not given._began_from(self):
            raise Refused("only a child of this conversation can be joined")
        state = child.state
        voices, anybody = state.heard()
        heard = not anybody and len(voices) <= MAX_VOICES
        brought = bounded(state.exposure)
        notes = child._notes(state)
        entry = ChildJoined(self._now(), child.id, brought, _some(voices), heard, all_doubts(state), notes)
        self.record(entry)
        # It may still run: what it learned while this was written was foreseen then, and is not in flight any more.
        now = child.state
        self.learn(now, child.id, notes=child._notes(now))

    def _began_from(self, other: Conversation) -> bool:
        return self.id in other.state.children  # a child that was kept in a file and loaded again

    def learn(self, state: State, source: str, *, notes: Notes = ()) -> None:
        """Join everything that another conversation holds, if it is not on record here: labels, voices, doubts.

        Args:
            notes: label → where it had that from, for people.

        Raises:
            JournalUnavailable: not on record.
        """
        voices, anybody = state.heard()
        doubts = frozenset(all_doubts(state))
        self._take(source, bounded(state.exposure), voices, anybody, doubts=doubts, notes=lambda: notes)

    def receive(self, message: Message, sender: Conversation) -> None:
        """Add a message that another agent wrote: it carries the sender's exposure, which is joined before it lands."""
        _checked((message,))
        state = sender.state
        self.learn(state, sender.id, notes=sender._notes(state))
        self.push(message)

    def _take(
        self,
        source: str,
        labels: Iterable[Label],
        voices: frozenset[Digest],
        anybody: bool,
        *,
        foreseen: Iterable[Label] = (),
        doubts: frozenset[Digest] = frozenset(),
        notes: Callable[[], Notes] = tuple,
    ) -> None:
        """Join what is not on record here, each label under the place that it came from. What is only in flight is not
        on record: it may come to nothing."""
        state, expected = self.state, frozenset(foreseen)
        coming = {one for one in labels if one not in expected}
        new = {one for one in coming if one not in state.taint}
        strange = {one for one in coming if leg_of(one) is Leg.UNTRUSTED}
        if strange and not state.deafening and (anybody or not voices <= state.voices):
            new |= strange  # known labels, but other people's words
        unknown = doubts - state.doubts
        if new or unknown:
            brought = Carried(tuple(new), notes(), tuple(voices), heard=not anybody)
            first, *more = admissions(brought, self._now(), source)
            for entry in (replace(first, doubts=tuple(sorted(unknown))), *more):
                self.record(entry)

    def _from_child(
        self, child: Conversation, labels: tuple[Label, ...], voices: frozenset[Digest], anybody: bool
    ) -> None:
        delegation = self.state.children.get(child.id)
        foreseen = () if delegation is None else delegation.labels
        self._take(child.id, labels, voices, anybody, foreseen=foreseen, notes=lambda: child._notes(child.state))
        if self._heirs:
            self._hand_on(child.id, f"late work of {child.id}", labels)

    def restart_from_trusted(self, *, instructions: str = "") -> Conversation:
        """Begin anew with nothing but the person's typed words: the sound way out of a tainted conversation.

        Text counts if it was journalled as typed; pasted text, summaries and whatever else stands in the user role do
        not. Channels that stand open and calls in doubt come along; grants and approvals do not. This conversation
        keeps its taint. An act of the operator or the person: offer it to no tool.

        Args:
            instructions: the operator's own, as the first message. Messages in the system role are not copied: a role
                is no proof of who wrote something.
        """
        other = Conversation.__new__(Conversation)
        with self._lock:
            self._start(other)
            heir, others = self._expected_by(other, channels=True)
            # What delegated work may open is not open yet; when it is, the new start is told.
            whole, old = self.state, self._transcript
            state = replace(whole, children={})
            heir.waits = {*whole.in_flight, *whole.children}
            told = other._waiting[1:]
            other._begin(inherited(state, self._now(), other.id, restart=True), self._clock, Transcript())
            other._expects = (heir, *others)
            for entry in told:
                other.record(entry)
        if instructions:
            other.push(Message.system(instructions))
        for message in ever((*(one.messages for one in old.past), old.messages)):
            if message.role in (Role.USER, Role.TOOL):
                for block in message.blocks:
                    if isinstance(block, Text) and content_digest(block.text) in state.texts:
                        other.say(block.text)
        self.record(Forked(self._now(), other.id))
        return other

    def __copy__(self) -> Conversation:
        return self.fork()

    def __deepcopy__(self, _memo: Any) -> Conversation:
        return self.fork()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle is a fork that begins where it is loaded. What is in flight here counts as joined there."""
        with self._lock:
            state, transcript = self.state, self._transcript
        messages, covers = answered(transcript.messages, transcript.covers, bounded(state.exposure))
        opened = replace(inherited(state, self._now(), ""), notes=self._notes(state))
        return _revived, (opened, messages, covers)

    # --- the journal ------------------------------------------------------------------------------------------------

    def record(self, entry: Entry) -> None:
        """Journal one fact, or keep it for the journal that is bound first.

        Raises:
            JournalUnavailable: nothing was written.
        """
        if self._journal is None:
            with LOCK:
                waits = self._journal is None  # no other thread has bound it meanwhile
                if waits:
                    self._waiting.append(entry)
                    self._early = apply(self._early, entry)
            if waits:
                self._told((entry,))
                return
        self.append((entry,))

    def append(self, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """Write to the bound journal; whoever must know of it is told before this returns. For guards.

        Raises:
            Conflict, JournalUnavailable: see :meth:`interlock.ports.Journal.append`. Also when a fork or a parent
                could not be told: then nobody may see what was to be recorded.
        """
        journal = self._journal
        if journal is None:
            raise Bug("a conversation without a journal was given entries by a guard")
        state = _done(journal.append(self._id, entries, expected=expected))
        now = self._journal
        if now is not None and now != journal:
            # It moved into a session meanwhile: what only the old journal has must be in the new one, if need be twice.
            state = _done(now.append(self._id, entries, expected=expected))
        self._told(entries)
        return state

    def _told(self, entries: Sequence[Entry]) -> None:
        """Forks learn of the late results of what was under way when they began; see also :class:`Child`."""
        if self._heirs:
            for entry in entries:
                if isinstance(entry, Observed | Failed):
                    # Nobody says whose words they were, so they may be anybody's.
                    self._hand_on(entry.number, f"late result of call {entry.number} of {self._id}", entry.labels)
                elif isinstance(entry, ChildJoined):
                    self._hand_on(entry.conversation, f"late work of {entry.conversation}", entry.labels)

    def _hand_on(self, what: int | str, source: str, labels: tuple[Label, ...]) -> None:
        """Tell the forks that wait for this call or child."""
        for heir in self._heirs:
            fork = heir.fork()
            if fork is not None and (heir.waits is None or what in heir.waits):
                told = tuple(one for one in labels if not heir.channels or leg_of(one) is Leg.EGRESS)
                fork._take(source, told, frozenset(), anybody=True)
                if isinstance(what, int) and heir.waits is not None:
                    heir.waits.discard(what)
        self._sift_heirs()

    def _sift_heirs(self) -> None:
        """Forks that are gone, or that nothing can come late for, cost nothing any more."""
        with self._lock:  # a fork may be added meanwhile
            self._heirs = [one for one in self._heirs if one.fork() is not None and (one.waits is None or one.waits)]

    def bind(self, journal: Journal) -> None:
        """Give this conversation to a journal, once. A conversation of a session keeps the session's.

        Raises:
            WrongJournal: it writes to another journal already; two gates on one conversation must share it, or each
                would know only half of the taint.
        """
        with self._lock:
            if self._journal is None:
                self._give(journal)
            elif self._journal != journal and self._keeper is None:
                raise WrongJournal(
                    f"conversation {self._id} already writes to another journal;"
                    " build both Interlocks with the same journal="
                )

    def moved(self, journal: Journal, keeper: Keeper) -> None:
        """Give this conversation to a session or a store, with everything that is on record of it. For those.

        A conversation that writes to this very journal already only gets its keeper.

        Raises:
            WrongJournal: it has a session already, or a journal that can't hand over its entries.
            Refused: the journal is one of another namespace.
        """
        with self._lock:
            if self._keeper is not None:
                raise WrongJournal(f"conversation {self._id} is recorded by another session; fork it")
            if self._journal is None:
                self._give(journal)
            elif self._journal != journal:
                chain = getattr(self._journal, "entries", None)
                if chain is None:
                    raise WrongJournal(f"the journal of conversation {self._id} can't hand it over; fork it")
                _done(journal.open(tuple(decode(one.body, one.sequence) for one in chain(self._id))))
                self._journal = journal
            self._keeper = keeper

    def _give(self, journal: Journal) -> None:
        """Write what waits, without holding up others while the disk is waited for, until nothing more has come."""
        waiting = tuple(self._waiting)
        _done(journal.open(waiting))
        while True:
            with LOCK:
                more = tuple(self._waiting[len(waiting) :])
                if not more:
                    self._journal, self._waiting = journal, []
                    return
            _done(journal.append(self._id, more))
            waiting += more

    def hold(self) -> OwnLock:
        """While this is held (``with conversation.hold():``) only this thread changes the messages. For sessions."""
        return self._lock

    def follow(self, transcript: Transcript) -> None:
        """Show the messages of another conversation, which this one's session has recorded with its labels."""
        with self._lock:
            self._transcript = transcript

    def _cover(self) -> Cover:
        return bounded(self.exposure)

    def _typed(self, text: str) -> Typed:
        return Typed(self._now(), content_digest(text), len(text), said_by_person(text))

    def _pasted(self, text: str) -> Admitted:
        return Admitted(self._now(), "paste", (PASTED,), content_digest(text), len(text), words=heard_in(text))

    def _now(self) -> str:
        return stamp(self._clock.now())

    def __repr__(self) -> str:
        held = ", ".join(self.taint) or "clean"
        return f"<{type(self).__name__} {self._id}: {len(self)} messages, {held}>"


class Child(Conversation):
    """A conversation for delegated work. Leaving a ``with`` block around it joins it to its parent, however it ends."""

    __slots__ = ("_may_bring", "_parent")

    _parent: Conversation
    _may_bring: tuple[Label, ...]

    def _delegate(self, beginning: State) -> None:
        """What it begins with may come back, too: in the parent some of it may turn out to have been nothing."""
        labels = bounded((*self._may_bring, *beginning.exposure))
        self._parent.record(ChildOpened(self._now(), self.id, labels))

    def _unborn(self) -> Conversation:
        fork = Child.__new__(Child)
        fork._parent, fork._may_bring = self._parent, self._may_bring
        return fork

    def _inherit(self, other: Conversation, state: State, transcript: Transcript) -> None:
        if isinstance(other, Child) and other._parent is self._parent:
            other._delegate(state)
            for heir in self._parent._heirs:
                if heir.waits is not None and self.id in heir.waits:
                    heir.waits.add(other.id)  # whoever waits for this child's work waits for its copy's
        super()._inherit(other, state, transcript)

    def _began_from(self, other: Conversation) -> bool:
        return self._parent is other or super()._began_from(other)

    def _told(self, entries: Sequence[Entry]) -> None:
        """The parent learns at once what nobody foresaw: it may never hold less than its child has brought."""
        for entry in entries:
            labels, anybody = _labels(entry), True
            if isinstance(entry, Admitted | Ruling):
                anybody = entry.unheard
            elif isinstance(entry, Observed | Failed | Summarised):
                # Its decision said whose words would come; what nobody foresaw may be anybody's.
                held = self._parent.taint
                labels = tuple(one for one in labels if one not in held)
            if labels:
                voices = frozenset[Digest](getattr(entry, "voices", ()))
                self._parent._from_child(self, labels, voices, anybody)
        super()._told(entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parent.join(self)


class Ledger:
    """The journal of one conversation as its guards see it. Implements :class:`interlock.ports.Journal`."""

    __slots__ = ("_conversation",)

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def open(self, entries: Sequence[Entry]) -> State:
        """A conversation that exists is not opened again."""
        raise Bug(f"the ledger of a conversation was asked to open one ({len(entries)} entries)")

    @property
    def blocks(self) -> bool:
        """Whether the journal waits for a disk or a server; see :class:`interlock.ports.Namespace`."""
        return bool(getattr(self._conversation._journal, "blocks", False))

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        return self._own(conversation).state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`."""
        return self._own(conversation).append(entries, expected=expected)

    def _own(self, conversation: str) -> Conversation:
        if conversation != self._conversation.id:
            raise JournalUnavailable("the ledger of one conversation was asked about another")
        return self._conversation


def new_id() -> str:
    """An id that nobody can guess or choose: ids of hosts and providers repeat, and can be forged."""
    return f"c-{secrets.token_hex(8)}"


def _revived(opened: Opened, messages: tuple[Message, ...], covers: tuple[Cover, ...]) -> Conversation:
    conversation = Conversation.__new__(Conversation)
    _checked(messages)
    conversation._begin(replace(opened, conversation=new_id()), SystemClock(), Transcript(messages, covers))
    return conversation


def _checked(messages: Iterable[Message]) -> tuple[Message, ...]:
    found = tuple(messages)
    for one in found:
        if not isinstance(one, Message):
            raise Refused(f"a conversation takes messages, not {type(one).__name__}")
        one.check()
    return found


def _some(voices: frozenset[Digest]) -> tuple[Digest, ...]:
    return tuple(sorted(voices))[:MAX_VOICES]


def _may_bring(tools: Iterable[ToolSpec] | None) -> tuple[Label, ...]:
    """Everything that work with these tools may bring, and that it may send while it runs."""
    if tools is None:
        return EVERY_LEG
    found: set[Label] = set()
    for spec in tools:
        found |= {*spec.private, *spec.untrusted, *spec.opens}
        if spec.egress is Egress.CHOSEN:
            found.add(Label("egress:channel"))  # the strongest class among its tools, for as long as it runs
    return tuple(sorted(found))


def _labels(entry: Entry) -> tuple[Label, ...]:
    """Labels that an entry of a child brings, or may bring."""
    if isinstance(entry, Remembered | Sent):
        return ()  # what it holds already, and its parent was told of
    if isinstance(entry, Ruling):
        return (*entry.private, *entry.untrusted, *entry.opens) if entry.runs else ()
    return tuple(getattr(entry, "labels", ()))


def _done(reply: object) -> State:
    """A journal that gives anything but a state has not written: a coroutine, for example, that nobody awaits."""
    if isinstance(reply, State):
        return reply
    if inspect.iscoroutine(reply):
        reply.close()
    raise JournalUnavailable(f"the journal answered {type(reply).__name__} instead of a state; nothing is on record")
