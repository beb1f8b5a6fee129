"""Security state as a fold of journal entries (T2, T11).

``apply`` is the only way to a new state, and no branch of it takes a label away: a label moves from *in flight* into
the taint, or is added. The sizes are bounded, and every bound falls to the strict side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never

from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.entries import Admitted, Decided, Entry, Failed, Observed, Opened, Typed
from interlock.model.labels import CLEAN, Label, Leg, Source, Taint, leg_of
from interlock.model.provenance import EMPTY, Provenance, hearing, saying, sending, vouching

MAX_IN_FLIGHT: Final = 256
MAX_TYPED: Final = 20_000
MAX_VOICES: Final = 4096
MAX_LABELS: Final = 256


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
        provenance: which values somebody vouches for, and which words a stranger's text held.
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
    provenance: Provenance = EMPTY

    @property
    def exposure(self) -> Taint:
        """Taint joined with everything in flight. Decisions use this."""
        whole = self.taint
        for number, flight in self.in_flight.items():
            if flight.labels:
                whole = whole.join(Taint.of(flight.labels, Source(flight.at, number, flight.tool)))
        return whole


def apply(state: State, entry: Entry) -> State:
    """The state after one more entry. Total: unknown numbers and repeated outcomes only ever add."""
    match entry:
        case Opened():
            source = Source(entry.at, 0, "opened")
            return replace(
                state,
                conversation=entry.conversation,
                namespace=entry.namespace,
                parent=entry.parent,
                version=state.version + 1,
                taint=_joined(state.taint, entry.labels, source),
                # Whoever resumes with untrusted labels does not say whose words they were.
                deafening=state.deafening or _untrusted(entry.labels),
                provenance=hearing(state.provenance, "") if _untrusted(entry.labels) else state.provenance,
            )
        case Typed():
            # What is not remembered grounds nothing, so the bound is on the strict side.
            room = MAX_TYPED - len(state.typed)
            return replace(state, typed=state.typed | frozenset(entry.values[:room])) if entry.values else state
        case Admitted():
            source = Source(entry.at, 0, entry.source, entry.content)
            heard = state
            if _untrusted(entry.labels):
                heard = _heard(state, entry.voices, unheard=entry.unheard)
                heard = replace(heard, provenance=hearing(state.provenance, entry.heard))
            return replace(heard, version=state.version + 1, taint=_joined(state.taint, entry.labels, source))
        case Decided():
            return _decided(state, entry)
        case Observed():
            landed = _landed(
                state, entry.number, entry.at, entry.external and not entry.exact, entry.content, entry.labels
            )
            return _learned(landed, entry, state.in_flight.get(entry.number))
        case Failed():
            return _landed(state, entry.number, entry.at, entry.external or entry.doubt, NO_DIGEST, entry.labels)
        case _:
            assert_never(entry)


def _learned(state: State, entry: Observed, flight: InFlight | None) -> State:
    """What a result teaches about values. A result that nobody waits for can only take away."""
    index = state.provenance
    declared = flight.untrusted if flight is not None and entry.external and not entry.exact else ()
    if entry.heard or _untrusted((*entry.labels, *declared)):
        index = hearing(index, entry.heard)
    if flight is not None and (entry.vouched or entry.records):
        # INVARIANT: what a result holds of a stranger's words is heard before any value of it is vouched for.
        index = vouching(index, entry.number, entry.vouched, entry.records)
    return state if index is state.provenance else replace(state, provenance=index)


def _decided(state: State, entry: Decided) -> State:
    # INVARIANT: every decision bumps the version, so two writers can never give two calls the same number.
    calls, version = max(state.calls, entry.number), state.version + 1
    if entry.verdict != "allow":
        return _with(state, state.taint, state.in_flight, version, calls)  # a call that does not run adds no label
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
        state.provenance,
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


def _joined(taint: Taint, labels: tuple[Label, ...], source: Source) -> Taint:
    """Join labels; past the bound a new category counts as the unknown of its leg, which is stronger."""
    if not labels:
        return taint
    if len(taint) + len(labels) > MAX_LABELS:
        known = taint.labels
        labels = tuple(one if one in known else Label(f"{leg_of(one).value}:unknown") for one in labels)
    return taint.join(Taint.of(labels, source))
