"""Security state as a fold of journal entries (T2, T11).

``apply`` is the only way to a new state. No branch of it takes a label out of the taint. Out of the *exposure* goes one
thing only: the ``untrusted`` labels of a call in flight whose result did not touch the outside. The sizes are bounded,
and every bound falls to the strict side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never

from interlock.model import drafts, grants, standing
from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.drafts import NO_DRAFTS, Drafts
from interlock.model.entries import (
    Admitted,
    Answered,
    Asked,
    Checkpointed,
    ChildJoined,
    ChildOpened,
    Consumed,
    Decided,
    Drafted,
    Entry,
    Erased,
    Failed,
    Forked,
    Granted,
    Lapsed,
    Notes,
    Observed,
    Opened,
    Rejected,
    Released,
    Remembered,
    Resumed,
    Rewritten,
    RolledBack,
    Ruling,
    Sent,
    Shadowed,
    Stood,
    Summarised,
    Taken,
    Transcribed,
    Trimmed,
    Typed,
    Voided,
)
from interlock.model.grants import NONE_HELD, Questions
from interlock.model.labels import CLEAN, Label, Leg, Source, Taint, leg_of
from interlock.model.layout import Layout, changed
from interlock.model.provenance import EMPTY, Provenance, hearing, saying, sending, vouching
from interlock.model.standing import NONE_STANDING, Approvals
from interlock.model.tools import ToolId

MAX_IN_FLIGHT: Final = 256
MAX_TYPED: Final = 20_000
MAX_VOICES: Final = 4096
MAX_LABELS: Final = 256
MAX_TEXTS: Final = 10_000
MAX_CHILDREN: Final = 256
MAX_DOUBTS: Final = 1024
# How much of what was typed goes along into a fork or a child: one entry must stay below its size limit.
MAX_INHERITED_TYPED: Final = 4000
MAX_INHERITED_TEXTS: Final = 2000


@dataclass(frozen=True, slots=True)
class InFlight:
    """An allowed call without an outcome: what it may bring, and when it was allowed."""

    at: str
    tool: str
    call: Digest
    private: tuple[Label, ...]
    untrusted: tuple[Label, ...]
    opens: tuple[Label, ...]
    voices: tuple[Digest, ...]
    unheard: bool

    @property
    def labels(self) -> tuple[Label, ...]:
        return (*self.private, *self.untrusted, *self.opens)


@dataclass(frozen=True, slots=True)
class Delegation:
    """Work that was delegated and has not come back."""

    at: str
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary that stands for the first ``covered`` messages of the transcript, by the digest of its text.

    ``tail``: digests of the last of them, by which a list is known to be the one that was summarised.
    """

    covered: int
    content: Digest
    labels: tuple[Label, ...]
    tail: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Everything about a conversation that a decision depends on.

    Attributes:
        version: label version; it grows with every entry that can make a decision stricter, and decisions commit
            with compare-and-set on it.
        calls: number of calls decided so far.
        taint: labels that have entered.
        in_flight: allowed calls without an outcome, by number.
        typed: digests of values that the person typed.
        voices: digests of the parties that untrusted content came from.
        deafening: there were more voices than are remembered, or some that nobody could make out; then every
            destination counts as one of them.
        texts: digests of the whole texts that the person typed.
        doubts: digests of calls of which nobody knows whether they happened; the empty digest stands for more of them
            than are remembered.
        children: delegations that have not come back, by conversation: since when, and all that they may bring.
        provenance: which values somebody vouches for, and which words a stranger's text held.
        summary: the summary that is in force, or None.
        turn: number of turns that ended in a store; turns commit with compare-and-set on it.
        length: number of messages in the stored transcript.
        places: number of messages that were ever stored.
        layout: which of those places the transcript is made of.
        erased: the content of the messages up to this place was erased.
        questions: what a person was asked and what became of it, by the question's id; grants are in it.
        standing: approvals that stand, by id.
        denials: how often calls of a shape, and of a tool in any shape, were denied since the person last typed.
        asks: number of questions so far.
        drafts: calls that were drafted instead of made, by the draft's id, and what became of them.
    """

    conversation: str = ""
    namespace: str = "default"
    parent: str = ""
    version: int = 0
    calls: int = 0
    taint: Taint = CLEAN
    in_flight: Mapping[int, InFlight] = field(default_factory=lambda: MappingProxyType({}))
    typed: frozenset[Digest] = frozenset()
    voices: frozenset[Digest] = frozenset()
    deafening: bool = False
    texts: frozenset[Digest] = frozenset()
    doubts: frozenset[Digest] = frozenset()
    children: Mapping[str, Delegation] = field(default_factory=lambda: MappingProxyType({}))
    provenance: Provenance = EMPTY
    summary: Summary | None = None
    turn: int = 0
    length: int = 0
    places: int = 0
    layout: Layout = ()
    erased: int = 0
    questions: Questions = field(default_factory=lambda: NONE_HELD)
    standing: Approvals = field(default_factory=lambda: NONE_STANDING)
    denials: Mapping[Digest, int] = field(default_factory=lambda: MappingProxyType({}))
    asks: int = 0
    drafts: Drafts = field(default_factory=lambda: NO_DRAFTS)

    @property
    def exposure(self) -> Taint:
        """Taint joined with everything in flight. Decisions use this."""
        if not self.in_flight and not self.children:
            return self.taint
        coming: list[tuple[Label, Source]] = []
        for number, flight in self.in_flight.items():
            if flight.labels:
                source = Source(flight.at, number, flight.tool)
                coming += [(one, source) for one in flight.labels]
        for child, delegation in self.children.items():
            source = Source(delegation.at, 0, child)
            coming += [(one, source) for one in delegation.labels]
        return self.taint.join(Taint(tuple(coming)))

    def heard(self) -> tuple[frozenset[Digest], bool]:
        """Everybody whose words may be here by now, whether or not it was reported; and whether it may be anybody."""
        asked = [flight for flight in self.in_flight.values() if flight.untrusted]
        voices = self.voices.union(*(flight.voices for flight in asked)) if asked else self.voices
        anybody = (
            self.deafening
            or any(flight.unheard for flight in asked)
            or any(_untrusted(one.labels) for one in self.children.values())
        )
        return voices, anybody


def apply(state: State, entry: Entry) -> State:
    """The state after one more entry. Total: unknown numbers and repeated outcomes only ever add."""
    after = _applied(state, entry)
    if not after.questions and not after.standing and not after.drafts:
        return after
    return _without_what_ended(state, after, entry)


def _applied(state: State, entry: Entry) -> State:
    match entry:
        case Opened():
            return _opened(state, entry)
        case Typed():
            # What is not remembered grounds nothing, so the bounds are on the strict side.
            typed = _more(state.typed, entry.values, MAX_TYPED)
            texts = _more(state.texts, (entry.content,), MAX_TEXTS)
            # What the person asks for anew may be asked about anew.
            return replace(state, typed=typed, texts=texts, denials=MappingProxyType({}))
        case Admitted():
            source = Source(entry.at, 0, entry.source, entry.content)
            heard = state
            if _untrusted(entry.labels):
                heard = _heard(state, entry.voices, unheard=entry.unheard)
                heard = replace(heard, provenance=hearing(state.provenance, entry.words))
            taint = _joined(state.taint, entry.labels, source)
            return replace(_doubted(heard, entry.doubts), version=state.version + 1, taint=taint)
        case Decided() | Shadowed():
            return _decided(state, entry)
        case Observed():
            landed = _landed(
                state, entry.number, entry.at, entry.external and not entry.exact, entry.content, entry.labels
            )
            return _learned(landed, entry, state.in_flight.get(entry.number))
        case Failed():
            flight = state.in_flight.get(entry.number)
            doubted = state if flight is None or not entry.doubt else _doubted(state, (flight.call,))
            return _landed(doubted, entry.number, entry.at, entry.external or entry.doubt, NO_DIGEST, entry.labels)
        case Resumed():
            return _resumed(state, entry)
        case ChildOpened():
            return _delegated(state, entry)
        case ChildJoined():
            return _returned(state, entry)
        case Summarised():
            return _summarised(state, entry)
        case Rewritten():
            # Places mean something else now, so a summary of some of them stands for nothing. The labels stay.
            return state if state.summary is None else replace(state, summary=None)
        case RolledBack():
            # By what is the same, not by how much is left: an older list may be longer than the summarised one.
            return _shortened(state, entry.kept)
        case Erased():
            return replace(state, erased=state.places)
        case Forked() | Remembered() | Sent() | Checkpointed() | Trimmed():
            return state  # somebody else begins or is told: nothing about this conversation's labels
        case Transcribed():
            new = len(entry.contents)
            kept = state if _stores_summarised(state, entry) else _shortened(state, entry.keep)
            layout = changed(state.layout, state.length - entry.keep, state.places + 1, new)
            places = state.places + new
            return replace(kept, turn=entry.turn, length=entry.keep + new, places=places, layout=layout)
        case Asked() | Answered() | Granted() | Consumed():
            return _on_questions(state, entry)
        case Voided() | Stood():
            approvals = standing.applied(state.standing, entry, state.conversation)
            after = replace(state, standing=approvals, version=state.version + 1)
            return after if isinstance(entry, Stood) else _on_questions(after, entry)
        case Drafted() | Released() | Rejected() | Lapsed() | Taken():
            return _on_drafts(state, entry)
        case _:
            assert_never(entry)


def _on_questions(state: State, entry: Asked | Answered | Granted | Consumed | Voided) -> State:
    denials = state.denials
    for tool, shape in grants.shapes_denied(entry, state.questions):
        denials = grants.denied_again(denials, tool, shape)
    held = grants.applied(state.questions, entry, state.conversation)
    asks = state.asks + isinstance(entry, Asked)
    return replace(state, questions=held, denials=denials, asks=asks, version=state.version + 1)


def _on_drafts(state: State, entry: Drafted | Released | Rejected | Lapsed | Taken) -> State:
    denials = state.denials
    gone = drafts.rejected(entry, state.drafts) if isinstance(entry, Rejected) else None
    if gone is not None:
        denials = grants.denied_again(denials, gone.bound.tool, gone.shape)
    kept = drafts.applied(state.drafts, entry, state.conversation)
    return replace(state, drafts=kept, denials=denials, version=state.version + 1)


def _without_what_ended(before: State, state: State, entry: Entry) -> State:
    """No grant outlives the labels, the messages and the time that it was given under."""
    held, approvals, kept = state.questions, state.standing, state.drafts
    if kept:
        if isinstance(entry, Observed | Failed | Resumed):
            kept = drafts.ended(kept, entry)
        if drafts.any_waiting(kept):
            rewound = _takes_back(before, entry)
            kept = drafts.settled(kept, entry.at, state.exposure.labels, rewound=rewound)
    if grants.any_open(held):
        held = grants.settled(held, entry.at, state.exposure.labels)
        if _takes_back(before, entry):
            held = grants.voided(held, grants.REWOUND)
    if approvals:
        grew = not before.exposure.labels.issuperset(state.exposure.labels)
        over = grew or _takes_back(before, entry) or _brings_untrusted(before, entry)
        approvals = NONE_STANDING if over else standing.settled(approvals, entry.at)
    if held is state.questions and approvals is state.standing and kept is state.drafts:
        return state
    # INVARIANT: what takes a grant away changes the version, so no decision commits that still counts on it.
    version = max(state.version, before.version + 1)
    return replace(state, questions=held, standing=approvals, drafts=kept, version=version)


def _takes_back(before: State, entry: Entry) -> bool:
    """Does the conversation go back behind something that was said, so that it may be said again?"""
    if isinstance(entry, Transcribed):
        return entry.keep < before.length
    return isinstance(entry, Rewritten | RolledBack | Erased)


def _brings_untrusted(before: State, entry: Entry) -> bool:
    """Did somebody else's text enter with this entry?"""
    match entry:
        case Observed() | Failed():
            flight = before.in_flight.get(entry.number)
            outside = entry.external and not getattr(entry, "exact", False)
            declared = flight.untrusted if flight is not None and (outside or getattr(entry, "doubt", False)) else ()
            return _untrusted((*entry.labels, *declared))
        case Opened() | Admitted() | Resumed() | ChildOpened() | ChildJoined() | Summarised():
            return _untrusted(entry.labels)
        case _:
            return False


def _learned(state: State, entry: Observed, flight: InFlight | None) -> State:
    """What a result teaches about values. A result that nobody waits for can only take away."""
    index = state.provenance
    declared = flight.untrusted if flight is not None and entry.external and not entry.exact else ()
    if entry.words or _untrusted((*entry.labels, *declared)):
        index = hearing(index, entry.words)
    if flight is not None and (entry.vouched or entry.records):
        # INVARIANT: what a result holds of a stranger's words is heard before any value of it is vouched for.
        index = vouching(index, entry.number, entry.vouched, entry.records)
    return state if index is state.provenance else replace(state, provenance=index)


def all_doubts(state: State) -> tuple[Digest, ...]:
    """Calls of which nobody knows whether they happened, those under way among them; sorted."""
    return tuple(sorted(_doubted(state, (flight.call for flight in state.in_flight.values())).doubts))


def inherited(state: State, at: str, conversation: str, *, restart: bool = False) -> Opened:
    """How a fork, a child or a copy of a conversation begins: with its exposure, and with what was typed in it.

    Args:
        restart: begin anew from trusted words: only the channels that stand open come along, and the calls in doubt.
    """
    doubts = all_doubts(state)
    if restart:
        open_still = bounded(one for one in state.exposure if leg_of(one) is Leg.EGRESS)
        return Opened(at, conversation, state.namespace, state.conversation, open_still, heard=True, doubts=doubts)
    voices, anybody = state.heard()
    return Opened(
        at,
        conversation,
        state.namespace,
        state.conversation,
        bounded(state.exposure),
        tuple(sorted(state.typed))[:MAX_INHERITED_TYPED],
        tuple(sorted(state.texts))[:MAX_INHERITED_TEXTS],
        tuple(sorted(voices))[:MAX_VOICES],
        heard=not anybody and len(voices) <= MAX_VOICES,
        doubts=doubts,
    )


def _opened(state: State, entry: Opened) -> State:
    source = Source(entry.at, 0, f"from {entry.parent}" if entry.parent else "opened")
    heard = state
    if _untrusted(entry.labels):
        # Whoever brings untrusted labels and does not say whose words they were may bring anybody's.
        heard = _heard(state, entry.voices, unheard=not entry.heard)
    return replace(
        _doubted(heard, entry.doubts),
        conversation=entry.conversation,
        namespace=entry.namespace,
        parent=entry.parent,
        version=state.version + 1,
        taint=_noted(state.taint, entry.labels, entry.notes, source),
        typed=_more(state.typed, entry.typed, MAX_TYPED),
        texts=_more(state.texts, entry.texts, MAX_TEXTS),
        provenance=_deafened(state, entry.labels),
    )


def _resumed(state: State, entry: Resumed) -> State:
    """Nobody waits for anything any more: what was under way may have happened, and joins."""
    voices, anybody = state.heard()
    calls = tuple(flight.call for flight in state.in_flight.values())
    source = Source(entry.at, 0, f"resumed: {entry.why}")
    whole = state.exposure
    if len(whole) > MAX_LABELS:
        whole = _joined(state.taint, tuple(whole), source)
    heard = _heard(state, tuple(voices), unheard=anybody or _untrusted(entry.labels))
    lost = tuple(one for flight in state.in_flight.values() for one in flight.untrusted)
    away = tuple(one for child in state.children.values() for one in child.labels)
    return replace(
        _doubted(heard, calls),
        provenance=_deafened(state, (*entry.labels, *lost, *away)),
        version=state.version + 1,
        taint=_joined(whole, entry.labels, source),
        in_flight=MappingProxyType({}),
        children=MappingProxyType({}),
    )


def _shortened(state: State, kept: int) -> State:
    """A summary of messages that are no longer there stands for nothing."""
    gone = state.summary is not None and kept < state.summary.covered
    return replace(state, summary=None) if gone else state


def _stores_summarised(state: State, entry: Transcribed) -> bool:
    """Does a turn only add, and add the very messages that were summarised before they were stored?"""
    summary = state.summary
    if summary is None or entry.keep != state.length or not summary.tail:
        return False
    first = summary.covered - len(summary.tail)
    places = range(max(first, entry.keep), summary.covered)
    return summary.covered <= entry.keep + len(entry.contents) and all(
        entry.contents[place - entry.keep] == summary.tail[place - first] for place in places
    )


def _summarised(state: State, entry: Summarised) -> State:
    """A summary that covers less than the one in force was overtaken. Its labels count all the same (T12)."""
    taint = _joined(state.taint, entry.labels, Source(entry.at, 0, "summary", entry.content))
    heard = state
    strange = tuple(one for one in entry.labels if leg_of(one) is Leg.UNTRUSTED and one not in state.taint)
    if strange:  # words of somebody that this conversation has not heard of
        heard = replace(_heard(state, (), unheard=True), provenance=_deafened(state, strange))
    summary, labels = state.summary, entry.labels
    if summary is not None:
        # INVARIANT: a summary is never less tainted than the one before it, which it is made from.
        labels = tuple(sorted({*labels, *summary.labels}))
    if summary is None or entry.anew or entry.covered > summary.covered:
        summary = Summary(entry.covered, entry.content, labels, entry.tail)
    return replace(heard, version=state.version + 1, taint=taint, summary=summary)


def _delegated(state: State, entry: ChildOpened) -> State:
    children, taint = dict(state.children), state.taint
    labels = entry.labels
    if entry.conversation in children:  # the same name twice: both may bring what they may bring
        labels = tuple(sorted({*labels, *children.pop(entry.conversation).labels}))
    deafening = state.deafening
    if len(children) >= MAX_CHILDREN:
        oldest = next(iter(children))
        lost = children.pop(oldest)
        taint = _joined(taint, lost.labels, Source(lost.at, 0, oldest))
        deafening = deafening or _untrusted(lost.labels)
    children[entry.conversation] = Delegation(entry.at, labels)
    version = state.version + 1
    return replace(state, version=version, taint=taint, deafening=deafening, children=MappingProxyType(children))


def _returned(state: State, entry: ChildJoined) -> State:
    left = {name: one for name, one in state.children.items() if name != entry.conversation}
    heard = _heard(state, entry.voices, unheard=not entry.heard) if _untrusted(entry.labels) else state
    taint = _noted(state.taint, entry.labels, entry.notes, Source(entry.at, 0, entry.conversation))
    heard = _doubted(heard, entry.doubts)
    index = _deafened(state, entry.labels)
    return replace(heard, version=state.version + 1, taint=taint, children=MappingProxyType(left), provenance=index)


def _deafened(state: State, labels: tuple[Label, ...]) -> Provenance:
    """A stranger's text came whose words nobody wrote down: any word may have stood in it."""
    return hearing(state.provenance, "") if _untrusted(labels) else state.provenance


def _more(known: frozenset[Digest], new: tuple[Digest, ...], limit: int) -> frozenset[Digest]:
    return known.union(new[: max(0, limit - len(known))]) if new else known


def _doubted(state: State, calls: Iterable[Digest]) -> State:
    doubts = state.doubts.union(calls)
    if len(doubts) > MAX_DOUBTS:
        doubts = frozenset((*sorted(doubts)[: MAX_DOUBTS - 1], NO_DIGEST))
    return state if doubts == state.doubts else replace(state, doubts=doubts)


def _decided(state: State, entry: Ruling) -> State:
    # INVARIANT: every decision bumps the version, so two writers can never give two calls the same number.
    calls, version = max(state.calls, entry.number), state.version + 1
    if not entry.runs:  # a call that does not run adds no label
        after = _with(state, state.taint, state.in_flight, version, calls)
        if not entry.shape:
            return after
        return replace(after, denials=grants.denied_again(state.denials, ToolId(entry.server, entry.tool), entry.shape))
    tool = f"{entry.server}/{entry.tool}" if entry.server else entry.tool
    flight = InFlight(
        entry.at, tool, entry.call, entry.private, entry.untrusted, entry.opens, entry.voices, entry.unheard
    )
    changed = state
    in_flight = dict(state.in_flight)
    # A number that is decided twice, or a host that never reports outcomes: the older call is joined as if it had
    # happened, so that no number and no crowd can push a label out.
    displaced = entry.number if entry.number in in_flight else min(in_flight, default=0)
    if entry.number in in_flight or len(in_flight) >= MAX_IN_FLIGHT:
        lost = in_flight.pop(displaced)
        source = Source(lost.at, displaced, lost.tool)
        changed = replace(_loud(state, lost), taint=_joined(state.taint, lost.labels, source))
    in_flight[entry.number] = flight
    after = _with(changed, changed.taint, MappingProxyType(in_flight), version, calls)
    index = sending(saying(state.provenance, entry.said), entry.receivers)
    return after if index is state.provenance else replace(after, provenance=index)


def _landed(state: State, number: int, at: str, external: bool, content: Digest, labels: tuple[Label, ...]) -> State:
    flight = state.in_flight.get(number)
    if flight is None:
        # An outcome that nobody waits for any more: its labels join all the same, and nobody says whose words it had.
        source = Source(at, number, "late result", content)
        taint = _joined(state.taint, labels, source)
        deafening = state.deafening or _untrusted(labels)
        return replace(state, taint=taint, deafening=deafening, version=state.version + 1)
    source = Source(at, number, flight.tool, content)
    came = (*flight.private, *flight.opens, *(flight.untrusted if external else ()), *labels)
    left = {other: value for other, value in state.in_flight.items() if other != number}
    heard = _loud(state, flight) if _untrusted(came) else state
    return _with(heard, _joined(state.taint, came, source), MappingProxyType(left), state.version + 1, state.calls)


def _with(state: State, taint: Taint, in_flight: Mapping[int, InFlight], version: int, calls: int) -> State:
    """What every call changes; ``dataclasses.replace`` takes five times as long."""
    return State(
        state.conversation,
        state.namespace,
        state.parent,
        version,
        calls,
        taint,
        in_flight,
        state.typed,
        state.voices,
        state.deafening,
        state.texts,
        state.doubts,
        state.children,
        state.provenance,
        state.summary,
        state.turn,
        state.length,
        state.places,
        state.layout,
        state.erased,
        state.questions,
        state.standing,
        state.denials,
        state.asks,
        state.drafts,
    )


def _untrusted(labels: tuple[Label, ...]) -> bool:
    return any(leg_of(one) is Leg.UNTRUSTED for one in labels)


def _loud(state: State, flight: InFlight) -> State:
    return _heard(state, flight.voices, unheard=flight.unheard)


def _heard(state: State, voices: tuple[Digest, ...], *, unheard: bool) -> State:
    """Remember who has spoken. Too many, or one that can't be made out, and everybody counts as having spoken."""
    if unheard:
        return replace(state, deafening=True)
    if state.voices.issuperset(voices):
        return state
    together = state.voices | frozenset(voices)
    return replace(state, deafening=True) if len(together) > MAX_VOICES else replace(state, voices=together)


def bounded(labels: Iterable[Label]) -> tuple[Label, ...]:
    """These labels sorted, or, when they are more than a conversation may hold, the unknown of each of their legs."""
    found = sorted(set(labels))
    if len(found) > MAX_LABELS:
        found = sorted({Label(f"{leg_of(one).value}:unknown") for one in found})
    return tuple(found)


def _noted(taint: Taint, labels: tuple[Label, ...], notes: Notes, source: Source) -> Taint:
    """Join labels that came from another conversation; those that have a note say so as their source."""
    told: set[Label] = set()
    for one, note in notes:
        if one in labels and one not in told:
            told.add(one)
            taint = _joined(taint, (one,), replace(source, tool=note))
    return _joined(taint, tuple(one for one in labels if one not in told), source)


def _joined(taint: Taint, labels: tuple[Label, ...], source: Source) -> Taint:
    """Join labels; past the bound a new category counts as the unknown of its leg, which is stronger."""
    if not labels:
        return taint
    if len(taint) + len(labels) > MAX_LABELS:
        known = taint.labels
        labels = tuple(one if one in known else Label(f"{leg_of(one).value}:unknown") for one in labels)
    return taint.join(Taint.of(labels, source))
