"""Drafts: calls that the operator routes to the outbox, from the drafting to the end (T8, T9). Pure: a fold of entries.

                  release                take                    sent
    DRAFTED ─────────────▶ RELEASED ─────────────▶ TAKEN ─────────────────▶ SENT
       │  ▲                   │                       │  fail
       │  └───────────────────┤ lapse                 ├────────────────────▶ FAILED
       │ reject, expire       │ reject, expire        │  lose
       ▼                      ▼                       └────────────────────▶ DOUBT
    REJECTED, EXPIRED     REJECTED, EXPIRED

What is not in the table changes nothing, and SENT, FAILED, DOUBT, REJECTED and EXPIRED have no way out: nothing is ever
sent twice, and what may have been sent is not sent again. A draft that is no longer remembered can't be released.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import orjson

from interlock.errors import Tampered
from interlock.model.digests import Digest, digest
from interlock.model.entries import Drafted, Failed, Lapsed, Observed, Rejected, Released, Resumed, Taken
from interlock.model.grants import Bound
from interlock.model.labels import Label
from interlock.model.question import MAX_QUESTION, Question
from interlock.model.tools import ToolId

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_OPEN: Final = 64
MAX_CLOSED: Final = 64

GREW: Final = "labels grew since the release"
CHANGED: Final = "it is not the call that was released any more"
DENIED: Final = "the policy denies it now"
ASKS_MORE: Final = "a control asks that did not ask at the release"
OTHER_RULES: Final = "policy or manifest changed since the release"
OTHER_FILES: Final = "a file that it names changed since the release"
REWOUND: Final = "the messages were taken back or replaced"


class Status(StrEnum):
    DRAFTED = "drafted"
    RELEASED = "released"
    TAKEN = "taken"
    SENT = "sent"
    FAILED = "failed"
    DOUBT = "in doubt"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Step(StrEnum):
    RELEASE = "release"
    LAPSE = "lapse"
    REJECT = "reject"
    EXPIRE = "expire"
    TAKE = "take"
    END = "sent"
    FAIL = "fail"
    LOSE = "lose"


TRANSITIONS: Final[Mapping[tuple[Status, Step], Status]] = MappingProxyType(
    {
        (Status.DRAFTED, Step.RELEASE): Status.RELEASED,
        (Status.DRAFTED, Step.REJECT): Status.REJECTED,
        (Status.DRAFTED, Step.EXPIRE): Status.EXPIRED,
        (Status.RELEASED, Step.LAPSE): Status.DRAFTED,
        (Status.RELEASED, Step.REJECT): Status.REJECTED,
        (Status.RELEASED, Step.EXPIRE): Status.EXPIRED,
        (Status.RELEASED, Step.TAKE): Status.TAKEN,
        (Status.TAKEN, Step.END): Status.SENT,
        (Status.TAKEN, Step.FAIL): Status.FAILED,
        (Status.TAKEN, Step.LOSE): Status.DOUBT,
    }
)
WAITING: Final = frozenset({Status.DRAFTED, Status.RELEASED})
UNDER_WAY: Final = frozenset({*WAITING, Status.TAKEN})


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of a draft.

    Attributes:
        number: of the call that was drafted.
        bound: the call, its tool, and what it was drafted under.
        shape: of the call; a rejection counts as a denial of calls of this shape.
        body: digest of what is stored of it.
        released: what the release is bound to; None while nobody has released it.
        taken: number of the call by which it is delivered, or 0.
        by: who released or rejected it.
        why: how a release came to nothing, in a word of ours.
    """

    at: str
    expires: str
    number: int
    bound: Bound
    shape: Digest
    body: Digest
    length: int
    status: Status = Status.DRAFTED
    released: Bound | None = None
    taken: int = 0
    by: str = ""
    why: str = ""

    def took(self, step: Step, why: str = "") -> Kept:
        """The draft after one step; itself when the table does not have it."""
        after = TRANSITIONS.get((self.status, step))
        if after is None:
            return self
        return replace(self, status=after, why=why, released=None if step is Step.LAPSE else self.released)


Drafts = Mapping[str, Kept]
NO_DRAFTS: Final[Drafts] = MappingProxyType({})


def draft_id(conversation: str, number: int, call: Digest) -> str:
    """The id of a draft; numbers are given once in a conversation, so it needs no randomness."""
    return "d-" + digest("draft", f"id\0{conversation}\0{number}\0{call}".encode())[7:23]


def open_draft(drafts: Drafts, call: Digest) -> str:
    """The id of a draft of this very call that waits for a person, or nothing."""
    return next((name for name, one in drafts.items() if one.bound.call == call and one.status in WAITING), "")


def is_full(drafts: Drafts, more: int = 0) -> bool:
    """Is there no room for another one, when ``more`` are about to be made?"""
    return sum(one.status in UNDER_WAY for one in drafts.values()) + more >= MAX_OPEN


def lapses(kept: Kept, wanted: Bound) -> str:
    """Why a release is not good for this call as it is now, or nothing."""
    own = kept.released
    if own is None or (own.call, own.tool, own.spec) != (wanted.call, wanted.tool, wanted.spec):
        return CHANGED
    if (own.revision, own.manifest) != (wanted.revision, wanted.manifest):
        return OTHER_RULES
    if own.operands != wanted.operands:
        return OTHER_FILES
    if not wanted.labels <= own.labels:
        return GREW
    return "" if wanted.codes <= own.codes else ASKS_MORE


# --- the fold -------------------------------------------------------------------------------------------------------


def applied(drafts: Drafts, entry: Drafted | Released | Rejected | Lapsed | Taken, conversation: str) -> Drafts:
    """The drafts after one of their own entries. Total: what does not fit changes nothing."""
    if isinstance(entry, Drafted):
        return drafts if entry.conversation != conversation or entry.draft in drafts else _more(drafts, entry)
    one = drafts.get(entry.draft)
    if one is None:
        return drafts
    after = one
    match entry:
        case Released():
            fits = entry.conversation == conversation and entry.call == one.bound.call
            if fits and one.at <= entry.at < one.expires:
                after = _released(one, entry)
        case Rejected():
            after = one.took(Step.REJECT)
            after = after if after is one else replace(after, by=entry.by)
        case Lapsed():
            after = one.took(Step.LAPSE, entry.why)
        case Taken():
            if entry.call == one.bound.call and entry.at < one.expires:
                after = one.took(Step.TAKE)
                after = after if after is one else replace(after, taken=entry.number)
    return drafts if after is one else MappingProxyType({**drafts, entry.draft: after})


def _released(one: Kept, entry: Released) -> Kept:
    after = one.took(Step.RELEASE)
    if after is one:
        return one
    bound = replace(
        one.bound,
        labels=frozenset(entry.shown),
        codes=frozenset(entry.codes),
        revision=entry.revision,
        manifest=entry.manifest,
        operands=entry.operands,
    )
    return replace(after, released=bound, by=entry.by)


def _more(drafts: Drafts, entry: Drafted) -> Drafts:
    """One more draft. Past the bound the oldest that is over is forgotten; the gate makes none when too many wait."""
    kept = dict(drafts)
    over = [name for name, one in kept.items() if one.status not in UNDER_WAY]
    for name in over[: max(0, len(over) - MAX_CLOSED + 1)]:
        del kept[name]
    if len(kept) >= MAX_OPEN + MAX_CLOSED:
        del kept[next(iter(kept))]
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
    kept[entry.draft] = Kept(entry.at, entry.expires, entry.number, bound, entry.shape, entry.body, entry.length)
    return MappingProxyType(kept)


def ended(drafts: Drafts, entry: Observed | Failed | Resumed) -> Drafts:
    """The drafts once a call has an outcome, or nobody waits for any any more."""
    after = dict(drafts)
    for name, one in drafts.items():
        if one.status is not Status.TAKEN:
            continue
        if isinstance(entry, Resumed):
            after[name] = one.took(Step.LOSE)
        elif one.taken == entry.number:
            lost = isinstance(entry, Failed) and entry.doubt
            after[name] = one.took(Step.LOSE if lost else Step.FAIL if isinstance(entry, Failed) else Step.END)
    return drafts if after == drafts else MappingProxyType(after)


def settled(drafts: Drafts, at: str, labels: Collection[Label], *, rewound: bool) -> Drafts:
    """The drafts once an entry of this time is on record, with this exposure.

    INVARIANT: a release never outlives the labels that it was shown under, a rewind, or its time; and what has expired
    once stays so, whatever a clock says later.
    """
    after = dict(drafts)
    for name, one in drafts.items():
        if one.status in WAITING and at >= one.expires:
            after[name] = one.took(Step.EXPIRE)
        elif one.status is Status.RELEASED and one.released is not None:
            if rewound:
                after[name] = one.took(Step.LAPSE, REWOUND)
            elif not one.released.labels.issuperset(labels):
                after[name] = one.took(Step.LAPSE, GREW)
    return drafts if after == drafts else MappingProxyType(after)


def any_waiting(drafts: Drafts) -> bool:
    return any(one.status in WAITING for one in drafts.values())


def rejected(entry: Rejected, drafts: Drafts) -> Kept | None:
    """The draft that this entry says comes to nothing; None when it was no longer waiting."""
    one = drafts.get(entry.draft)
    return one if one is not None and one.status in WAITING else None


# --- what is stored -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Draft:
    """What is stored of a draft: what a person is shown of it, and the exact bytes of its arguments.

    Attributes:
        question: the call as it was when it was drafted, with whoever it names and where each label came from.
        arguments: canonical JSON of the arguments, without defaults: what runs.
        call_id: the provider's id of the call.
    """

    question: Question
    arguments: str
    call_id: str

    @property
    def id(self) -> str:
        return self.question.id

    @property
    def tool(self) -> ToolId:
        return ToolId(self.question.server, self.question.tool)

    def encode(self) -> bytes:
        """Bytes that stand for the draft, for its digest and for keeping."""
        return orjson.dumps(self, option=orjson.OPT_SORT_KEYS)

    @property
    def digest(self) -> Digest:
        return body_digest(self.encode())


def body_digest(body: bytes) -> Digest:
    """What a ``drafted`` entry says of a draft."""
    return digest("draft", body)


def shown_digest(body: Digest, labels: Collection[Label]) -> Digest:
    """Names what a person was shown: a draft, and what its conversation held at that moment."""
    return digest("shown", orjson.dumps([body, sorted(labels)]))


def read_draft(body: bytes, wanted: Digest) -> Draft:
    """Read a stored draft.

    Args:
        wanted: its digest in the journal.

    Raises:
        Tampered: it is not the draft that was made; it must be neither shown nor sent.
    """
    from pydantic import ValidationError

    if len(body) > MAX_QUESTION or body_digest(body) != wanted:
        raise Tampered(0, "a stored draft is not the one that was made")
    try:
        return _adapter().validate_json(body)
    except ValidationError as error:
        raise Tampered(0, f"not a draft of this version ({type(error).__name__})") from None


@cache
def _adapter() -> TypeAdapter[Draft]:
    from pydantic import TypeAdapter

    return TypeAdapter(Draft)
