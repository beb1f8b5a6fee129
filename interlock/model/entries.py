"""Journal entries: what the runtime did, one frozen value per fact.

Entries hold no prompt, argument or result bodies: digests and lengths. Security state is a fold of them
(:mod:`interlock.model.state`), and their bytes are what the hash chain covers (:mod:`interlock.model.chain`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from interlock.errors import NotCanonical, Refused, Tampered
from interlock.model.canonical import pack, parse
from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.labels import Label, label
from interlock.model.marks import EVERYTHING, unpacked

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Notes: TypeAlias = tuple[tuple[Label, str], ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation began. Everything but the names is empty for a new one.

    Attributes:
        parent: the conversation that this one came from, by fork, delegation, copy or a new start.
        labels: what came along.
        typed, texts: digests of the values and of the whole texts that the person typed there.
        voices: digests of the parties whose words came along.
        heard: ``voices`` is all of them. Otherwise untrusted labels may be anybody's words.
        doubts: digests of calls of which nobody knows whether they happened.
        notes: label → where it came from before that, for people.
    """

    at: str
    conversation: str
    namespace: str = "default"
    parent: str = ""
    labels: tuple[Label, ...] = ()
    typed: tuple[Digest, ...] = ()
    texts: tuple[Digest, ...] = ()
    voices: tuple[Digest, ...] = ()
    heard: bool = False
    doubts: tuple[Digest, ...] = ()
    notes: Notes = ()
    kind: Literal["opened"] = "opened"


@dataclass(frozen=True, slots=True)
class Typed:
    """The person typed text. ``values`` are digests of the whole destinations in it."""

    at: str
    content: Digest
    length: int
    values: tuple[Digest, ...] = ()
    kind: Literal["typed"] = "typed"


@dataclass(frozen=True, slots=True)
class Admitted:
    """Content entered without a tool. Written before the content is visible to the model.

    ``doubts``: calls of another conversation that came along, of which nobody knows whether they happened.
    ``words`` are the packed words of untrusted content (:mod:`interlock.model.marks`); empty when nobody looked.
    """

    at: str
    source: str
    labels: tuple[Label, ...]
    content: Digest
    length: int
    voices: tuple[Digest, ...] = ()
    unheard: bool = False
    doubts: tuple[Digest, ...] = ()
    kind: Literal["admitted"] = "admitted"
    words: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the policy says of a call; see :class:`Decided` and :class:`Shadowed`.

    Attributes:
        number: of the call in its conversation, from 1.
        private, untrusted, opens: labels that executing it may add.
        voices: digests of the parties that an untrusted result would have come from.
        unheard: an untrusted result would have come from a party that could not be read out of the arguments.
        version: label version that the decision was made under.
        said: packed words of the arguments, when the call may run.
        receivers: digests of parties that nobody vouched for and that private material goes to.
        decision_id: under which the engine's own log has it; empty when it keeps none.
        shape: of a call that was denied by rule, or that nobody could be asked about: calls of one shape that are
            denied again and again come to an end (:mod:`interlock.model.grants`).
    """

    at: str
    number: int
    call_id: str
    server: str
    tool: str
    call: Digest
    verdict: Literal["allow", "ask", "deny"]
    codes: tuple[str, ...]
    version: int
    private: tuple[Label, ...] = ()
    untrusted: tuple[Label, ...] = ()
    opens: tuple[Label, ...] = ()
    voices: tuple[Digest, ...] = ()
    unheard: bool = False
    document: str = ""
    revision: str = ""
    manifest: str = ""
    engine: str = ""
    said: str = ""
    receivers: tuple[Digest, ...] = ()
    decision_id: str = ""
    shape: Digest = NO_DIGEST

    @property
    def runs(self) -> bool:
        """May the call run? Then its labels are in flight from here on."""
        return self.verdict == "allow"


@dataclass(frozen=True, slots=True)
class Decided(Ruling):
    """A call was decided. With verdict allow it also puts the call's labels in flight."""

    kind: Literal["decided"] = "decided"


@dataclass(frozen=True, slots=True)
class Shadowed(Ruling):
    """In shadow mode: what would have been decided of a call. It runs whatever the verdict, so its labels are in
    flight."""

    kind: Literal["shadowed"] = "shadowed"

    @property
    def runs(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class Observed:
    """An allowed call gave a result.

    Attributes:
        labels: all that it joins: declared ones, and those that it carried.
        exact: its fields were read one by one, so ``labels`` are all untrusted labels that it brings.
        words: packed words of what is untrusted in it.
        vouched, records: marks of values and ids that it vouches for (:mod:`interlock.model.provenance`).
        dropped: number of fields that were left out before the model saw it.
    """

    at: str
    number: int
    external: bool
    content: Digest
    length: int
    labels: tuple[Label, ...] = ()
    kind: Literal["observed"] = "observed"
    exact: bool = False
    words: str = ""
    vouched: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """An allowed call failed. ``doubt``: it was cancelled or the process stopped; it may have happened."""

    at: str
    number: int
    external: bool
    error: str
    labels: tuple[Label, ...] = ()
    doubt: bool = False
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Resumed:
    """A stored conversation was taken up again. Whatever was in flight is in doubt, and ``labels`` join too."""

    at: str
    why: str
    labels: tuple[Label, ...] = ()
    kind: Literal["resumed"] = "resumed"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The list of messages was replaced in place: compaction, eviction, thinning. The labels stay."""

    at: str
    before: int
    after: int
    kind: Literal["rewritten"] = "rewritten"


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The messages of a failed turn were taken back. The labels stay.

    ``kept``: so many of the first messages are the same as before; those in the system role don't count.
    """

    at: str
    before: int
    after: int
    kept: int = 0
    kind: Literal["rolled_back"] = "rolled_back"


@dataclass(frozen=True, slots=True)
class Forked:
    """Another conversation began with everything that this one held. The labels of both grow apart from here on."""

    at: str
    conversation: str
    kind: Literal["forked"] = "forked"


@dataclass(frozen=True, slots=True)
class ChildOpened:
    """Work was delegated. ``labels`` is all that may come back from it; they are in flight until it is joined."""

    at: str
    conversation: str
    labels: tuple[Label, ...]
    kind: Literal["child_opened"] = "child_opened"


@dataclass(frozen=True, slots=True)
class ChildJoined:
    """Delegated work came back, however it ended. ``heard``: ``voices`` is everybody whose words came along.

    ``notes``: label → where the child had it from, for people.
    """

    at: str
    conversation: str
    labels: tuple[Label, ...]
    voices: tuple[Digest, ...] = ()
    heard: bool = False
    doubts: tuple[Digest, ...] = ()
    notes: Notes = ()
    kind: Literal["child_joined"] = "child_joined"


@dataclass(frozen=True, slots=True)
class Summarised:
    """The first ``covered`` messages of the transcript are in one summary. They stay where they are.

    Attributes:
        labels: the join of everything that it summarises, earlier summaries included (T12).
        content: digest of its text.
        anew: made from the messages alone, since the text of the one before was lost; it takes that one's place.
        tail: digests of the last messages that it covers, as a store names them: over another list it is not in force.
    """

    at: str
    covered: int
    labels: tuple[Label, ...]
    content: Digest
    length: int
    anew: bool = False
    tail: tuple[Digest, ...] = ()
    kind: Literal["summarised"] = "summarised"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A fact was written for other conversations to recall. ``labels`` are what it carries there.

    Attributes:
        first, end: the places in the transcript that it was made from.
    """

    at: str
    fact: str
    revision: int
    first: int
    end: int
    labels: tuple[Label, ...]
    content: Digest
    length: int
    kind: Literal["remembered"] = "remembered"


@dataclass(frozen=True, slots=True)
class Sent:
    """Work for later, or a message to another agent, left with everything that this conversation held."""

    at: str
    parcel: str
    labels: tuple[Label, ...]
    content: Digest
    length: int
    kind: Literal["sent"] = "sent"


@dataclass(frozen=True, slots=True)
class Transcribed:
    """The transcript in a store was changed: it is now its first ``keep`` messages and some new ones.

    Attributes:
        turn: number of this turn in its conversation, from 1. One turn may write several of these.
        keep: how many messages of the list before stay in it.
        contents: digests of the new messages with their covers, in order, as they are stored.
        place: of the first of them, so that none can stand in the place of another.
    """

    at: str
    turn: int
    keep: int
    contents: tuple[Digest, ...]
    place: int = 0
    kind: Literal["transcribed"] = "transcribed"


@dataclass(frozen=True, slots=True)
class Erased:
    """The content of a conversation was deleted from its store: its messages. The labels stay."""

    at: str
    messages: int
    kind: Literal["erased"] = "erased"


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Digest of the state after all entries before this one, so that folding may begin here.

    The state itself is stored beside; only one that fits this digest, in a chain that fits its head, is believed.
    """

    at: str
    state: Digest
    kind: Literal["checkpointed"] = "checkpointed"


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Every entry up to ``through`` was dropped: the journal begins behind it, with a state that is stored beside.

    Only a beginning that fits all of this, in a chain that fits its head, is believed
    (:mod:`interlock.model.retention`).

    Attributes:
        through, last: place and digest of the last entry that was dropped.
        state: digest of the state after it.
        kept, keeping: how many of the dropped entries stay beside because messages are held against them, and what
            they chain to.
    """

    at: str
    through: int
    last: Digest
    state: Digest
    kept: int
    keeping: Digest
    kind: Literal["trimmed"] = "trimmed"


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked about one exact call. Everything here is what a yes will be bound to.

    Attributes:
        question: its id in this conversation.
        number: of the first call that it is about.
        uses: how many identical calls of the batch it is about; a yes is good for each of them once.
        call, server, tool, spec: the call by its digest, and its tool by name and by the digest of its declaration.
        shown: the labels that the person is shown: the exposure, and those of every call of the batch.
        codes: of the controls that ask.
        operands: digest of the files that the arguments name, as they were read.
        shape: of the call.
        body: digest of what is shown.
        expires: until when the question may be answered, and the yes be used.
    """

    at: str
    question: str
    conversation: str
    number: int
    uses: int
    call: Digest
    server: str
    tool: str
    spec: Digest
    shown: tuple[Label, ...]
    codes: tuple[str, ...]
    revision: str
    manifest: str
    operands: Digest
    shape: Digest
    body: Digest
    expires: str
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Answered:
    """A question was answered, or nobody answered it.

    Attributes:
        answer: ``approve``, ``refuse``, ``edit`` (refused, and another call proposed in its place) or ``none``.
        by: who answered and by which channel, as the channel says; for ``none`` why nobody did.
    """

    at: str
    question: str
    answer: Literal["approve", "refuse", "edit", "none"]
    by: str
    kind: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True)
class Granted:
    """One person's approval of one exact call came into being. Of no use in another conversation."""

    at: str
    question: str
    conversation: str
    call: Digest
    expires: str
    kind: Literal["granted"] = "granted"


@dataclass(frozen=True, slots=True)
class Consumed:
    """A grant, or a standing approval, lets call ``number`` run. Written in one append with the decision."""

    at: str
    question: str
    number: int
    call: Digest
    kind: Literal["consumed"] = "consumed"


@dataclass(frozen=True, slots=True)
class Voided:
    """An open question, a grant or a standing approval came to nothing; ``why`` is a word of ours."""

    at: str
    question: str
    why: str
    kind: Literal["voided"] = "voided"


@dataclass(frozen=True, slots=True)
class Stood:
    """A person lets one tool send to one receiver until ``expires``, as long as nothing untrusted is read.

    Attributes:
        standing: its id in this conversation.
        question: the approved question that it was made from.
        destination: digest of the receiver in its normal form, with its kind.
        codes: of the controls that it answers; never those of the trifecta.
    """

    at: str
    standing: str
    conversation: str
    question: str
    server: str
    tool: str
    spec: Digest
    destination: Digest
    codes: tuple[str, ...]
    revision: str
    manifest: str
    by: str
    expires: str
    kind: Literal["stood"] = "stood"


@dataclass(frozen=True, slots=True)
class Drafted:
    """A call that the operator routes to the outbox was drafted: it did not run, and runs when a person releases it.

    Attributes:
        draft: its id in this conversation.
        number: of the call that was drafted.
        call, server, tool, spec: the call by its digest, and its tool by name and by the digest of its declaration.
        shown: the exposure, and what the call itself may bring.
        codes: of the controls that ask.
        operands: digest of the files that the arguments name.
        shape: of the call.
        body, length: of what is stored of it.
    """

    at: str
    draft: str
    conversation: str
    number: int
    call: Digest
    server: str
    tool: str
    spec: Digest
    shown: tuple[Label, ...]
    codes: tuple[str, ...]
    revision: str
    manifest: str
    operands: Digest
    shape: Digest
    body: Digest
    length: int
    expires: str
    kind: Literal["drafted"] = "drafted"


@dataclass(frozen=True, slots=True)
class Released:
    """A person lets a draft be sent once. Bound to what the person was shown, and to what decided anew by then."""

    at: str
    draft: str
    conversation: str
    call: Digest
    shown: tuple[Label, ...]
    codes: tuple[str, ...]
    revision: str
    manifest: str
    operands: Digest
    by: str
    kind: Literal["released"] = "released"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A person rejects a draft. It is never sent."""

    at: str
    draft: str
    by: str
    kind: Literal["rejected"] = "rejected"


@dataclass(frozen=True, slots=True)
class Lapsed:
    """The release of a draft came to nothing; ``why`` is a word of ours. It waits for a person again."""

    at: str
    draft: str
    why: str
    kind: Literal["lapsed"] = "lapsed"


@dataclass(frozen=True, slots=True)
class Taken:
    """A released draft is delivered by call ``number``. Written in one append with the decision."""

    at: str
    draft: str
    number: int
    call: Digest
    kind: Literal["taken"] = "taken"


Entry: TypeAlias = (
    Opened
    | Typed
    | Admitted
    | Decided
    | Shadowed
    | Observed
    | Failed
    | Resumed
    | Rewritten
    | RolledBack
    | Forked
    | ChildOpened
    | ChildJoined
    | Summarised
    | Remembered
    | Sent
    | Transcribed
    | Erased
    | Checkpointed
    | Trimmed
    | Asked
    | Answered
    | Granted
    | Consumed
    | Voided
    | Stood
    | Drafted
    | Released
    | Rejected
    | Lapsed
    | Taken
)


@cache
def _adapter() -> TypeAdapter[Any]:
    from pydantic import Field, TypeAdapter  # loaded late: entries are read when a stored conversation is

    # Lax about list/tuple only: JSON has no tuples. Unknown keys and wrong types are refused by `decode`.
    return TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def encode(entry: Entry) -> bytes:
    """Canonical bytes of an entry: what is stored and what the chain covers."""
    # An exact copy: the JSON library's bytes keep a buffer ten times their length, for as long as the journal does.
    return bytes(memoryview(pack(entry)))


_VALUE: Final = re.compile(r"[tm][A-Za-z0-9_-]{22} \S+")
_RECORD: Final = re.compile(r"[a-z0-9_-]+ [A-Za-z0-9_-]{22}(?: !|(?: \??[A-Za-z0-9_-]{22})+)")


def check_marks(entry: Entry) -> None:
    """Refuse packed words and marks that the fold could not read. Raises ValueError."""
    for words in (getattr(entry, "words", ""), getattr(entry, "said", "")):
        if words not in ("", EVERYTHING):
            unpacked(words)
    for one in getattr(entry, "vouched", ()):
        if not _VALUE.fullmatch(one):
            raise ValueError("no value")
        unpacked(one[24:])
    for one in getattr(entry, "records", ()):
        if not _RECORD.fullmatch(one):
            raise ValueError("no record")


def decode(body: bytes, sequence: int = 0) -> Entry:
    """Read a stored entry.

    Raises:
        Tampered: the bytes are not the canonical form of an entry that this version knows.
    """
    try:
        value = parse(body)
    except NotCanonical as error:
        raise Tampered(sequence, f"not an entry that this version knows ({type(error).__name__})") from None
    entry = read_entry(value, sequence)
    if encode(entry) != body:
        raise Tampered(sequence, "not the canonical form of its entry")
    return entry


def read_entry(value: Any, sequence: int = 0) -> Entry:
    """Read an entry out of parsed JSON. Whether that was its canonical form is the caller's to check.

    Raises:
        Tampered: not an entry that this version knows.
    """
    from pydantic import ValidationError

    try:
        entry: Entry = _adapter().validate_python(value)
    except ValidationError as error:
        raise Tampered(sequence, f"not an entry that this version knows ({type(error).__name__})") from None
    try:
        for name in ("labels", "private", "untrusted", "opens", "shown"):
            for one in getattr(entry, name, ()):
                label(one)
        for one, _ in getattr(entry, "notes", ()):
            label(one)
    except Refused:
        raise Tampered(sequence, "holds a label that is none") from None
    try:
        check_marks(entry)
    except ValueError:
        raise Tampered(sequence, "holds marks that are none") from None
    return entry
