"""A conversation: messages that the host owns, above a journal that never forgets (T2).

The messages may be pushed, rewritten, rolled back and by the host even dropped: taint does not live there. It lives in
the journal that the first guard or a session binds, and until then in entries that wait for it.
"""

from __future__ import annotations

import inspect
import secrets
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from interlock.errors import Bug, JournalUnavailable, Refused, WrongJournal
from interlock.gate.steps import stamp
from interlock.locks import LOCK
from interlock.model.carried import Carried, admissions, written_by
from interlock.model.digests import NO_DIGEST, content_digest
from interlock.model.entries import (
    Admitted,
    ChildJoined,
    ChildOpened,
    Decided,
    Entry,
    Failed,
    Forked,
    Notes,
    Observed,
    Opened,
    Rewritten,
    RolledBack,
    Sent,
    Typed,
    decode,
)
from interlock.model.labels import EVERY_LEG, Label, Taint, label
from interlock.model.messages import Message, Role, Text
from interlock.model.names import namespace_name
from interlock.model.origins import typed_values
from interlock.model.parcels import Parcel
from interlock.model.pressure import Pressure, size_of
from interlock.model.state import MAX_VOICES, State, apply, inherited
from interlock.model.tools import Egress, ToolSpec
from interlock.model.transcript import Cover, Snapshot, Transcript, answered, ever, unpaired
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
    """A fork that late results are told to. ``calls``: those that were in flight at the fork; None while it is made."""

    fork: weakref.ref[Conversation]
    calls: frozenset[int] | None = None


class Conversation:
    """One conversation of a person with an agent.

    Its taint belongs to it for ever: there is nothing here that makes it smaller. Only text given to :meth:`user` and
    :meth:`say` counts as typed by the person; a message in the user role does not. Copies of any kind are forks.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_early",
        "_heirs",
        "_id",
        "_journal",
        "_keeper",
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
        self._id = opened.conversation
        self._namespace = opened.namespace
        self._transcript = transcript
        self._journal: Journal | None = None
        self._keeper: Keeper | None = None
        self._waiting: list[Entry] = [opened]
        self._early = apply(State(), opened)
        self._heirs: list[_Heir] = []
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
            conversation.push(message)
        return conversation

    @classmethod
    def resumed(cls, messages: Iterable[Message], taint: Taint | Iterable[str]) -> Conversation:
        """Continue a conversation: these messages, and the labels that had entered it. No text counts as typed.

        Pass the old conversation's ``exposure``, which has the labels of calls that were still running too. A session
        file (:class:`interlock.Session`) keeps all of this, and what was typed.
        """
        conversation = Conversation(labels=tuple(taint))
        for message in messages:
            conversation.push(message)
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
        carried = self.carried()
        parcel = Parcel(new_id().replace("c-", "p-", 1), self._namespace, self._id, text, carried)
        parcel.encode()  # refused before anything is on record
        self.record(Sent(self._now(), parcel.id, carried.labels, content_digest(text), len(text)))
        return parcel

    def receive(self, parcel: Parcel) -> str:
        """Take in a message of another agent: its labels are on record before its text is returned.

        Raises:
            JournalUnavailable: not on record; then nobody may see the text.
        """
        self.take_in(parcel.seen_from(self._namespace), f"parcel {parcel.id} of {parcel.conversation}", parcel.text)
        return parcel.text

    def take_in(self, carried: Carried, name: str, text: str | None) -> None:
        """Join what something carries that no tool brought, each label under the place that it came from.

        Args:
            name: of what enters, for people.
            text: what enters, or None when nothing is shown yet.

        Raises:
            JournalUnavailable: not all of it is on record; then it must not be shown.
        """
        for entry in admissions(carried, self._now(), name, text) if carried.labels else ():
            self.record(entry)

    # --- messages ---------------------------------------------------------------------------------------------------

    def push(self, message: Message) -> None:
        """Add a message. An image arms ``private:image`` before it can be seen.

        Raises:
            Refused: it is no Message.
            JournalUnavailable: the label of an image is not on record; then the message is not added.
        """
        if not isinstance(message, Message):
            raise Refused(f"a conversation takes messages, not {type(message).__name__}")
        for image in message.images:
            self.record(Admitted(self._now(), "image", (IMAGE,), content_digest(image.media_type), len(image.payload)))
        cover = self._cover()  # of now at least; read outside, since a store may take its time
        with LOCK:
            self._transcript = self._transcript.pushed(message, cover)

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
        cover = self._cover()
        with LOCK:
            self._transcript = self._transcript.said(text, cover)

    def snapshot(self) -> Snapshot:
        """The messages as they stand, for :meth:`roll_back_failed_turn`. A run starts here: ``rewritten`` is empty."""
        with LOCK:
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
        new = tuple(messages)
        if not all(isinstance(one, Message) for one in new):
            raise Refused("a conversation takes messages")
        with LOCK:
            old = self._transcript
            parted = unpaired(new) - unpaired(old.messages)
            if parted:
                raise Refused(
                    f"the new list parts calls from their results ({', '.join(sorted(parted)[:4])});"
                    " keep both of a pair, or neither"
                )
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
        with LOCK:
            old, typed = self._transcript, self.state.texts
            new = old.rolled_back(before, lambda text: content_digest(text) in typed)
            self._replace(new, RolledBack(self._now(), len(old.messages), len(new.messages)))

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
        with LOCK:
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

        From here on both grow apart, but a late result of a call made before joins both.

        Raises:
            JournalUnavailable: the fork is not on record; then there is none.
        """
        fork = Conversation.__new__(Conversation)
        with LOCK:
            self._start(fork)
            heir = _Heir(weakref.ref(fork))
            # Told from before its labels are read: a result that lands in between would be in neither.
            self._heirs = [*(one for one in self._heirs if one.fork() is not None), heir]
            state = self.state
            heir.calls = frozenset(state.in_flight)
            self._inherit(fork, state)
        self.record(Forked(self._now(), fork.id))
        return fork

    def _start(self, other: Conversation) -> None:
        """Make another conversation usable before it has its labels."""
        other._begin(Opened(self._now(), new_id(), self._namespace, self._id), self._clock, Transcript())

    def _inherit(self, other: Conversation, state: State) -> None:
        """Everything that this conversation holds becomes the beginning of the other, before its first message."""
        told = other._waiting[1:]  # late results that came while it was made
        transcript = self._transcript
        messages, covers = answered(transcript.messages, transcript.covers)
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
            JournalUnavailable: the delegation is not on record; then there is none.
        """
        child = Child.__new__(Child)
        self._start(child)
        child._parent = self
        self.record(ChildOpened(self._now(), child.id, _may_bring(tools)))
        with LOCK:
            state = self.state
            # Its own delegation is no part of what it begins with: nobody has brought anything yet.
            others = {name: one for name, one in state.children.items() if name != child.id}
            self._inherit(child, replace(state, children=others))
            child._transcript = Transcript()
        child.push(Message.user(task))
        return child

    def join(self, child: Conversation) -> None:
        """Take in everything that a child holds, however it ended. May be repeated: labels only add.

        Raises:
            Refused: not a child of this conversation.
            JournalUnavailable: not on record; then what it may bring stays in flight.
        """
        if not isinstance(child, Child) or child._parent is not self:
            raise Refused("only a child of this conversation can be joined")
        state = child.state
        voices, anybody = state.heard()
        heard = not anybody and len(voices) <= MAX_VOICES
        sorted_voices = tuple(sorted(voices))[:MAX_VOICES]
        notes = child._notes(state)
        self.record(ChildJoined(self._now(), child.id, tuple(state.exposure), sorted_voices, heard, notes))

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
        with LOCK:
            state, old = self.state, self._transcript
        self._start(other)
        other._begin(inherited(state, self._now(), other.id, restart=True), self._clock, Transcript())
        if instructions:
            other.push(Message.system(instructions))
        for message in ever((*old.rewritten, *old.undone, old.messages)):
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
        with LOCK:
            state, transcript = self.state, self._transcript
        messages, covers = answered(transcript.messages, transcript.covers)
        return _revived, (replace(inherited(state, self._now(), ""), notes=self._notes(state)), messages, covers)

    # --- the journal ------------------------------------------------------------------------------------------------

    def record(self, entry: Entry) -> None:
        """Journal one fact, or keep it for the journal that is bound first.

        Raises:
            JournalUnavailable: nothing was written.
        """
        if self._journal is None:
            with LOCK:
                if self._journal is None:  # no other thread has bound it meanwhile
                    self._early = apply(self._early, entry)
                    self._waiting.append(entry)
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
        if now is not None and now is not journal:
            # It moved into a session meanwhile: what only the old journal has must be in the new one, if need be twice.
            state = _done(now.append(self._id, entries))
        self._told(entries)
        return state

    def _told(self, entries: Sequence[Entry]) -> None:
        """Forks learn of late results; see also :class:`Child`."""
        for heir in self._heirs:
            fork = heir.fork()
            late = (one for one in entries if isinstance(one, Observed | Failed)) if fork is not None else ()
            for entry in late:
                if fork is not None and (heir.calls is None or entry.number in heir.calls):
                    content = entry.content if isinstance(entry, Observed) else NO_DIGEST
                    source = f"late result of call {entry.number} of {self._id}"
                    # Nobody says whose words they were, so they may be anybody's.
                    fork.record(Admitted(entry.at, source, entry.labels, content, 0, unheard=True))

    def bind(self, journal: Journal) -> None:
        """Give this conversation to a journal, once. A conversation of a session keeps the session's.

        Raises:
            WrongJournal: it writes to another journal already; two gates on one conversation must share it, or each
                would know only half of the taint.
        """
        with LOCK:
            if self._journal is None:
                _done(journal.open(tuple(self._waiting)))
                self._journal = journal
                self._waiting = []
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
        with LOCK:
            entries: Sequence[Entry] = self._waiting
            if self._keeper is not None:
                raise WrongJournal(f"conversation {self._id} is recorded by another session; fork it")
            if self._journal == journal:
                self._keeper = keeper
                return
            if self._journal is not None:
                chain = getattr(self._journal, "entries", None)
                if chain is None:
                    raise WrongJournal(f"the journal of conversation {self._id} can't hand it over; fork it")
                entries = [decode(one.body, one.sequence) for one in chain(self._id)]
            _done(journal.open(tuple(entries)))
            self._journal, self._keeper, self._waiting = journal, keeper, []

    def follow(self, transcript: Transcript) -> None:
        """Show the messages of another conversation, which this one's session has recorded with its labels."""
        with LOCK:
            self._transcript = transcript

    def _cover(self) -> Cover:
        return tuple(self.exposure)

    def _typed(self, text: str) -> Typed:
        return Typed(self._now(), content_digest(text), len(text), typed_values(text))

    def _pasted(self, text: str) -> Admitted:
        return Admitted(self._now(), "paste", (PASTED,), content_digest(text), len(text))

    def _now(self) -> str:
        return stamp(self._clock.now())

    def __repr__(self) -> str:
        held = ", ".join(self.taint) or "clean"
        return f"<{type(self).__name__} {self._id}: {len(self)} messages, {held}>"


class Child(Conversation):
    """A conversation for delegated work. Leaving a ``with`` block around it joins it to its parent, however it ends."""

    __slots__ = ("_parent",)

    _parent: Conversation

    def _told(self, entries: Sequence[Entry]) -> None:
        """The parent learns at once what nobody foresaw: it may never hold less than its child has brought."""
        super()._told(entries)
        brought = {one for entry in entries for one in _labels(entry)}
        if brought:
            known = self._parent.exposure
            new = tuple(sorted(one for one in brought if one not in known))
            if new:
                fresh = Carried(new, self._notes(self.state), heard=False)
                for entry in admissions(fresh, self._now(), self.id):
                    self._parent.record(entry)

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
    conversation._begin(replace(opened, conversation=new_id()), SystemClock(), Transcript(messages, covers))
    return conversation


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
    if isinstance(entry, Decided):
        return (*entry.private, *entry.untrusted, *entry.opens) if entry.verdict == "allow" else ()
    return tuple(getattr(entry, "labels", ()))


def _done(reply: object) -> State:
    """A journal that gives anything but a state has not written: a coroutine, for example, that nobody awaits."""
    if isinstance(reply, State):
        return reply
    if inspect.iscoroutine(reply):
        reply.close()
    raise JournalUnavailable(f"the journal answered {type(reply).__name__} instead of a state; nothing is on record")
