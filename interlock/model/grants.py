"""Grants: one person's yes to one exact call (T9). Pure: a fold of journal entries, and what may be done with it.

              approve                consume (the last use)
    PENDING ──────────▶ GRANTED ───────────────────────────▶ USED
       │                   │
       │ refuse            │ expire, void
       ▼                   ▼
    REFUSED             EXPIRED, VOID     (PENDING gets there too)

What is not in the table changes nothing, and USED, REFUSED, EXPIRED and VOID have no way out. A question that is no
longer remembered has no grant: every bound here takes grants away and never makes one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from interlock.model.canonical import pack
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.entries import Answered, Asked, Consumed, Entry, Granted, Voided
from interlock.model.labels import Label
from interlock.model.tools import ToolId

MAX_HELD: Final = 64
MAX_SHAPES: Final = 256
ENOUGH: Final = 3
ENOUGH_OF_TOOL: Final = 9

NO_ONE_ANSWERED: Final = "nobody answered"
LABELS_GREW: Final = "labels grew"
REWOUND: Final = "the messages were taken back or replaced"
OPERAND_CHANGED: Final = "operand changed"
REPLACED: Final = "too many questions"


class Status(StrEnum):
    PENDING = "pending"
    GRANTED = "granted"
    USED = "used"
    REFUSED = "refused"
    EXPIRED = "expired"
    VOID = "void"


class Step(StrEnum):
    APPROVE = "approve"
    REFUSE = "refuse"
    EXPIRE = "expire"
    VOID = "void"
    CONSUME = "consume"


TRANSITIONS: Final[Mapping[tuple[Status, Step], Status]] = MappingProxyType(
    {
        (Status.PENDING, Step.APPROVE): Status.GRANTED,
        (Status.PENDING, Step.REFUSE): Status.REFUSED,
        (Status.PENDING, Step.EXPIRE): Status.EXPIRED,
        (Status.PENDING, Step.VOID): Status.VOID,
        (Status.GRANTED, Step.CONSUME): Status.USED,
        (Status.GRANTED, Step.EXPIRE): Status.EXPIRED,
        (Status.GRANTED, Step.VOID): Status.VOID,
    }
)
OPEN: Final = frozenset({Status.PENDING, Status.GRANTED})


@dataclass(frozen=True, slots=True)
class Bound:
    """What a yes is bound to. Equal in every part, or, for labels and codes, within what was shown.

    Attributes:
        call: digest of server, name and canonical arguments.
        tool, spec: the tool by name, and the digest of its declaration.
        labels: the exposure, and the labels of every call of the batch.
        codes: of the controls that ask.
        operands: digest of the files that the arguments name.
    """

    call: Digest
    tool: ToolId
    spec: Digest
    labels: frozenset[Label]
    codes: frozenset[str]
    revision: str
    manifest: str
    operands: Digest


@dataclass(frozen=True, slots=True)
class Held:
    """A question with what became of it. ``left``: for how many identical calls a yes is still good.

    Attributes:
        approved: the answer was yes; the grant follows it in the journal.
        by: who answered, as the channel says.
        why: how it came to nothing, in a word of ours.
    """

    at: str
    expires: str
    number: int
    left: int
    bound: Bound
    shape: Digest
    body: Digest
    status: Status = Status.PENDING
    approved: bool = False
    by: str = ""
    why: str = ""

    @property
    def open(self) -> bool:
        return self.status in OPEN

    def took(self, step: Step, why: str = "") -> Held:
        """The question after one step; itself when the table does not have it."""
        after = TRANSITIONS.get((self.status, step))
        return self if after is None else replace(self, status=after, why=why or self.why)

    def fits(self, wanted: Bound, at: str) -> bool:
        """Is it open, and is this the very call that it is about, under no more than what was shown?

        A time before the question was asked is a clock that was put back: then nothing fits.
        """
        return self.fits_but_operands(wanted, at) and self.bound.operands == wanted.operands

    def fits_but_operands(self, wanted: Bound, at: str) -> bool:
        own = self.bound
        return (
            self.open
            and self.at <= at < self.expires
            and own.call == wanted.call
            and own.tool == wanted.tool
            and own.spec == wanted.spec
            and own.revision == wanted.revision
            and own.manifest == wanted.manifest
            and wanted.labels <= own.labels
            and wanted.codes <= own.codes
        )


Questions = Mapping[str, Held]
NONE_HELD: Final[Questions] = MappingProxyType({})


def question_id(conversation: str, number: int, call: Digest, at: str) -> str:
    """The id of a question. Numbers are given once in a conversation, so it is unique without any randomness; with the
    time, whoever loses the race for a number does not overwrite what the winner keeps."""
    return "q-" + digest("question", f"{conversation}\0{number}\0{call}\0{at}".encode())[7:23]


def shape_of(tool: ToolId, arguments: Mapping[str, Any]) -> Digest:
    """What a model repeats when it tries again with other values: the tool, and the paths of the arguments."""
    found: set[str] = set()
    _paths(arguments, "", found)
    return digest("shape", pack([tool.server, tool.name, sorted(found)]))


def any_shape(tool: ToolId) -> Digest:
    """Stands for every shape of a tool's calls: an argument more that means nothing is another shape."""
    return digest("shape", pack([tool.server, tool.name]))


def enough(denials: Mapping[Digest, int], tool: ToolId, shape: Digest) -> bool:
    """Were calls of this shape, or of this tool in many shapes, denied so often that nobody is asked again?"""
    return denials.get(shape, 0) >= ENOUGH or denials.get(any_shape(tool), 0) >= ENOUGH_OF_TOOL


def _paths(value: Any, path: str, found: set[str]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _paths(inner, f"{path}.{name}" if path else name, found)
    elif isinstance(value, list | tuple):
        found.add(f"{path}[]")
        for inner in value:
            _paths(inner, f"{path}[]", found)
    else:
        found.add(path)


# --- the fold -------------------------------------------------------------------------------------------------------


def applied(held: Questions, entry: Asked | Answered | Granted | Consumed | Voided, conversation: str) -> Questions:
    """The questions after one of their own entries. Total: what does not fit changes nothing."""
    if isinstance(entry, Asked):
        return held if entry.conversation != conversation or entry.question in held else _more(held, entry)
    one = held.get(entry.question)
    if one is None:
        return held
    after = one
    match entry:
        case Answered(answer="approve"):
            after = replace(one, approved=True, by=entry.by) if one.status is Status.PENDING else one
        case Answered(answer="none"):
            after = one.took(Step.EXPIRE, NO_ONE_ANSWERED)
        case Answered():
            after = replace(one, by=entry.by).took(Step.REFUSE) if one.status is Status.PENDING else one
        case Granted():
            fits = one.approved and entry.conversation == conversation and entry.call == one.bound.call
            after = one.took(Step.APPROVE) if fits and entry.at < one.expires else one
        case Consumed():
            if one.status is Status.GRANTED and entry.call == one.bound.call:
                after = replace(one, left=one.left - 1) if one.left > 1 else replace(one, left=0).took(Step.CONSUME)
        case Voided():
            after = one.took(Step.VOID, entry.why)
    return held if after is one else MappingProxyType({**held, entry.question: after})


def _more(held: Questions, entry: Asked) -> Questions:
    """One more question. Past the bound the oldest that is closed is forgotten, or the oldest of all."""
    kept = dict(held)
    if len(kept) >= MAX_HELD:
        del kept[next((name for name, one in kept.items() if not one.open), next(iter(kept)))]
    bound = Bound(
        entry.call,
        ToolId(entry.server, entry.tool),
        entry.spec,
        frozenset(entry.shown),
        frozenset(entry.codes),
        entry.revision,
        entry.manifest,
        entry.operands,
    )
    uses = max(1, entry.uses)
    kept[entry.question] = Held(entry.at, entry.expires, entry.number, uses, bound, entry.shape, entry.body)
    return MappingProxyType(kept)


def settled(held: Questions, at: str, labels: Collection[Label]) -> Questions:
    """The questions once an entry of this time is on record, with this exposure.

    INVARIANT: a journal that has seen a time past the end of a grant never lets it live again, whatever a clock says
    later; and what was asked under fewer labels is void.
    """
    after = dict(held)
    for name, one in held.items():
        if not one.open:
            continue
        if at >= one.expires:
            after[name] = one.took(Step.EXPIRE, "expired")
        elif not one.bound.labels.issuperset(labels):
            after[name] = one.took(Step.VOID, LABELS_GREW)
    return held if after == held else MappingProxyType(after)


def voided(held: Questions, why: str) -> Questions:
    """The questions once nothing that was open holds any more."""
    if not any_open(held):
        return held
    return MappingProxyType({name: one.took(Step.VOID, why) for name, one in held.items()})


def any_open(held: Questions) -> bool:
    return any(one.open for one in held.values())


# --- what may be done -----------------------------------------------------------------------------------------------


def grant_for(held: Questions, wanted: Bound, at: str, taken: Mapping[str, int] = MappingProxyType({})) -> str:
    """The id of a grant that lets this call run, or nothing. ``taken``: uses that the same round has made already."""
    for name, one in held.items():
        if one.status is Status.GRANTED and one.left > taken.get(name, 0) and one.fits(wanted, at):
            return name
    return ""


def changed_operands(held: Questions, wanted: Bound, at: str) -> str:
    """The id of a grant for this call whose files are no longer what the person was shown, or nothing."""
    for name, one in held.items():
        if one.status is Status.GRANTED and one.fits_but_operands(wanted, at) and not one.fits(wanted, at):
            return name
    return ""


def pending_for(held: Questions, wanted: Bound, at: str, uses: int) -> str:
    """The id of an open question about this very call, as often, under the very same labels and codes; or nothing.

    Whoever is shown the question anew must be shown no less than the yes will be good for.
    """
    for name, one in held.items():
        waits = one.status is Status.PENDING and not one.approved and one.left == uses
        if waits and one.bound == wanted and one.fits(wanted, at):
            return name
    return ""


def answering(
    held: Questions, conversation: str, question: str, answer: str, by: str, at: str
) -> tuple[Answered | Granted, ...]:
    """The entries of an answer, or of nobody's.

    Raises:
        ValueError: the question is not open any more, or never was; says why.
    """
    one = held.get(question)
    if one is None:
        raise ValueError(f"no question {question!r} is known in this conversation")
    if one.status is not Status.PENDING or one.approved:
        why = f": {one.why}" if one.why else ""
        raise ValueError(f"question {question} is {one.status.value}{why}")
    if answer != "none" and not one.at <= at < one.expires:
        raise ValueError(f"question {question} could be answered from {one.at} until {one.expires}; it is {at}")
    match answer:
        case "approve":
            granted = Granted(at, question, conversation, one.bound.call, one.expires)
            return Answered(at, question, "approve", by), granted
        case "refuse" | "edit" | "none":
            return (Answered(at, question, answer, by),)
        case _:
            raise ValueError(f"{answer!r} is no answer")


# --- denials of one shape -------------------------------------------------------------------------------------------


def denied_again(denials: Mapping[Digest, int], tool: ToolId, shape: Digest) -> Mapping[Digest, int]:
    """One more denial of this shape. Past the bound the oldest shape is forgotten: that one is asked again."""
    if shape == NO_DIGEST:
        return denials
    counted = dict(denials)
    for each in (shape, any_shape(tool)):
        count = counted.pop(each, 0) + 1
        if len(counted) >= MAX_SHAPES:
            del counted[next(iter(counted))]
        counted[each] = count
    return MappingProxyType(counted)


def shapes_denied(entry: Entry, held: Questions) -> Iterable[tuple[ToolId, Digest]]:
    """Tools and shapes of the calls that this entry says came to nothing."""
    if isinstance(entry, Answered) and entry.answer != "approve":
        one = held.get(entry.question)
        if one is not None and one.status is Status.PENDING:
            yield one.bound.tool, one.shape
