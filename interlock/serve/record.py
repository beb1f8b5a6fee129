"""The journal of one conversation as one request sees it: counted, and proof against being asked twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from interlock.errors import Bug, Conflict, JournalUnavailable, Refused
from interlock.model.entries import Entry, Failed, Observed, Ruling
from interlock.model.labels import leg_of
from interlock.model.state import InFlight, State
from interlock.model.transcript import Transcript
from interlock.ports import Namespace
from interlock.serve.calls import Calls
from interlock.serve.meters import Meters
from interlock.serve.problems import Problem

# All of them are remembered by id while it is in use; a longer one is begun anew, or forked.
MAX_CALLS_OF_ONE: Final = 50_000


class Record:
    """Implements :class:`interlock.ports.Journal` over one conversation.

    Attributes:
        repeated: a decision stands under one of the ids that this round was to be decided under. Then nothing is.
        failure: what the store said when it could not be read or written.
    """

    blocks = True

    def __init__(self, view: Namespace, calls: Calls, meters: Meters, fresh: frozenset[str] = frozenset()) -> None:
        """``fresh``: ids under which nothing may have been decided when something is written."""
        self.view = view
        self.calls = calls
        self.repeated = False
        self.failure: Exception | None = None
        self._meters = meters
        self._fresh = fresh

    def open(self, entries: Sequence[Entry]) -> State:
        """See :meth:`interlock.ports.Journal.open`."""
        return self.view.open(entries)

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        try:
            state = self.view.state(conversation)
            if self._fresh:
                if state.calls >= MAX_CALLS_OF_ONE:
                    raise Problem(429, "too_many_calls", f"a conversation has at most {MAX_CALLS_OF_ONE} calls here")
                self.calls.catch_up(self.view, conversation, state)
        except Exception as error:
            self.failure = error
            raise
        if not self._fresh.isdisjoint(self.calls.decided):
            self.repeated = True
            raise Refused("a call of this id was decided already")
        return state

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """See :meth:`interlock.ports.Journal.append`."""
        if self._fresh and expected is None and any(isinstance(entry, Ruling) for entry in entries):
            raise Bug("a decision under a fresh id must commit under a version")
        try:
            state = self.view.append(conversation, entries, expected=expected)
        except Conflict:
            self._meters.conflicts.inc()
            raise
        except Exception as error:
            self.failure = error
            raise
        self.calls.written(entries, expected, state)
        if any(isinstance(entry, Ruling) for entry in entries):
            self._fresh = frozenset()  # decided by this round; what it looks up afterwards (remedies) is no repetition
        for entry in entries:
            # What an entry brings, whether or not it was there before: a rate, and no inventory.
            for one in getattr(entry, "labels", ()):
                self._meters.labels.labels(leg_of(one).value).inc()
        return state


class Again:
    """The journal as it was when a result came that is reported once more. Writes nothing; what is reported must be
    what is on record, or it is refused."""

    blocks = True

    def __init__(self, view: Namespace, decided: Ruling, landed: Observed | Failed) -> None:
        self._view = view
        self._decided = decided
        self._landed = landed

    def open(self, entries: Sequence[Entry]) -> State:
        """Nothing is opened here."""
        raise Bug(f"a result that is reported again was to open a conversation ({len(entries)} entries)")

    def state(self, conversation: str) -> State:
        """See :meth:`interlock.ports.Journal.state`."""
        one = self._decided
        state = self._view.state(conversation)
        flight = InFlight(one.at, one.tool, one.call, one.private, one.untrusted, one.opens, one.voices, one.unheard)
        return replace(state, in_flight=MappingProxyType({**state.in_flight, one.number: flight}))

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:  # noqa: ARG002 - the port's signature
        """See :meth:`interlock.ports.Journal.append`."""
        given, held = entries[-1], self._landed
        if isinstance(given, Observed) and isinstance(held, Observed):
            same = (given.number, given.external, given.content, given.length, given.dropped) == (
                (held.number, held.external, held.content, held.length, held.dropped)
            ) and set(given.labels) <= set(held.labels)
        elif isinstance(given, Failed) and isinstance(held, Failed):
            same = (given.number, given.error) == (held.number, held.error) and not held.doubt
        else:
            same = False
        if not same:
            raise Refused("another result is on record")
        return self.state(conversation)


class NoTranscript:
    """Implements the gate's ``Keeper``: messages stay with the agent, and no request rewrites them."""

    def keep(self, old: Transcript, new: Transcript, entry: Entry) -> None:
        """Nothing is kept here."""
        raise JournalUnavailable(
            f"no transcript is kept here ({len(old.messages)} messages, {len(new.messages)} after {entry.kind})"
        )
