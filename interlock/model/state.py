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
from interlock.model.labels import CLEAN, Label, Source, Taint

MAX_IN_FLIGHT: Final = 256
MAX_TYPED: Final = 10_000
MAX_VOICES: Final = 4096


@dataclass(frozen=True, slots=True)
class InFlight:
    """An allowed call without an outcome: what it may bring, and when it was allowed."""

    at: str
    tool: str
    call: Digest
    private: tuple[Label, ...]
    untrusted: tuple[Label, ...]
    opens: tuple[Label, ...]
    voices: tuple[str, ...]

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
        voices: hosts and mail domains that untrusted content came from.
        deafening: there were more voices than are remembered.
    """

    conversation: str = ""
    namespace: str = "default"
    parent: str = ""
    version: int = 0
    calls: int = 0
    taint: Taint = CLEAN
    in_flight: Mapping[int, InFlight] = field(default_factory=lambda: MappingProxyType({}))
    typed: frozenset[Digest] = frozenset()
    voices: frozenset[str] = frozenset()
    deafening: bool = False

    @property
    def exposure(self) -> Taint:
        """Taint joined with everything in flight. Decisions use this."""
        whole = self.taint
        for number, flight in self.in_flight.items():
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
                taint=state.taint.join(Taint.of(entry.labels, source)),
            )
        case Typed():
            # What is not remembered grounds nothing, so the bound is on the strict side.
            room = MAX_TYPED - len(state.typed)
            return replace(state, typed=state.typed | frozenset(entry.values[:room])) if entry.values else state
        case Admitted():
            source = Source(entry.at, 0, entry.source, entry.content)
            return replace(state, version=state.version + 1, taint=state.taint.join(Taint.of(entry.labels, source)))
        case Decided():
            return _decided(state, entry)
        case Observed():
            return _landed(state, entry.number, entry.at, entry.external, entry.content, entry.labels)
        case Failed():
            return _landed(state, entry.number, entry.at, entry.external or entry.doubt, NO_DIGEST, ())
        case _:
            assert_never(entry)


def _decided(state: State, entry: Decided) -> State:
    # INVARIANT: every decision bumps the version, so two writers can never give two calls the same number.
    calls, version = max(state.calls, entry.number), state.version + 1
    if entry.verdict != "allow":
        return replace(state, calls=calls, version=version)  # a call that does not run adds no label
    tool = f"{entry.server}/{entry.tool}" if entry.server else entry.tool
    flight = InFlight(entry.at, tool, entry.call, entry.private, entry.untrusted, entry.opens, entry.voices)
    taint = state.taint
    in_flight = dict(state.in_flight)
    in_flight[entry.number] = flight
    if len(in_flight) > MAX_IN_FLIGHT:
        # A host that never reports outcomes: the oldest call is joined as if it had happened.
        number = min(in_flight)
        lost = in_flight.pop(number)
        taint = taint.join(Taint.of(lost.labels, Source(lost.at, number, lost.tool)))
    return replace(
        state,
        calls=calls,
        taint=taint,
        in_flight=MappingProxyType(in_flight),
        version=version,
    )


def _landed(state: State, number: int, at: str, external: bool, content: Digest, extra: tuple[Label, ...]) -> State:
    flight = state.in_flight.get(number)
    if flight is None:
        # An outcome that nobody waits for any more: its own labels still join.
        if not extra:
            return state
        taint = state.taint.join(Taint.of(extra, Source(at, number, "late result", content)))
        return replace(state, taint=taint, version=state.version + 1)
    source = Source(at, number, flight.tool, content)
    came = (*flight.private, *flight.opens, *(flight.untrusted if external else ()), *extra)
    left = {other: value for other, value in state.in_flight.items() if other != number}
    changed = replace(state, taint=state.taint.join(Taint.of(came, source)), in_flight=MappingProxyType(left))
    if external and flight.untrusted and not state.voices.issuperset(flight.voices):
        voices = state.voices | frozenset(flight.voices)
        changed = replace(changed, deafening=True) if len(voices) > MAX_VOICES else replace(changed, voices=voices)
    return replace(changed, version=state.version + 1) if came or flight.labels else changed
