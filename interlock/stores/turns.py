"""What the end of a turn writes: worked out from the state that stands, the same for every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from interlock.errors import Refused, TurnConflict
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, Entry, Opened, Rewritten, RolledBack, Transcribed, Trimmed
from interlock.model.messages import Role
from interlock.model.records import Change, message_body, message_digest
from interlock.model.state import State, apply

# Digests in one entry; an entry must stay below its size limit.
MAX_CONTENTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """A message to store. ``entry`` is its entry's place among the plan's entries, ``slot`` its own in that entry."""

    entry: int
    slot: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """The newest ``drop`` messages of the transcript retire, before row number ``row`` is stored."""

    row: int
    entry: int
    drop: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What one write does. ``conflict`` is raised after it has been done."""

    entries: tuple[Entry, ...]
    rows: tuple[Row, ...] = ()
    cuts: tuple[Cut, ...] = ()
    conflict: TurnConflict | None = None


def bodies_of(changes: Sequence[Change]) -> tuple[tuple[bytes, ...], ...]:
    """The new messages of each change as bytes. Done before anything is locked.

    Raises:
        Refused: a change is none; or a message is too large, or in the system role: instructions come from the
            operator, each time anew. Kept in a transcript, they would come from whoever can write to the store.
    """
    if any(one.keep < 0 or len(one.messages) != len(one.covers) for one in changes):
        raise Refused("a change keeps so many messages, and brings others with one cover each")
    if any(message.role is Role.SYSTEM for one in changes for message in one.messages):
        raise Refused("a transcript keeps no message in the system role; give the model its instructions each time")
    return tuple(tuple(map(message_body, one.messages, one.covers)) for one in changes)


def planned(
    state: State,
    changes: Sequence[Change],
    bodies: Sequence[Sequence[bytes]],
    entries: Sequence[Entry],
    at: str,
    turn: int,
) -> Plan:
    """The end of a turn that began at turn number ``turn``, on the state as it stands now.

    Raises:
        Refused: a change keeps messages that are not there.
    """
    facts = [*entries, *_learnt(state, changes, entries, at)]
    if turn != state.turn:
        # What did not come about is not on record as if it had: the winner's messages were not rewritten.
        facts = [one for one in facts if not isinstance(one, Rewritten | RolledBack)]
        message = f"the conversation is at turn {state.turn}, this one began at {turn}; its labels have joined"
        for entry in facts:
            state = apply(state, entry)
        return Plan(tuple(facts), conflict=TurnConflict(message, version=state.version, turn=state.turn))
    rows: list[Row] = []
    cuts: list[Cut] = []
    length = state.length
    for change, new in zip(changes, bodies, strict=True):
        if change.keep > length:
            raise Refused(f"a change keeps {change.keep} messages, there are {length}")
        if change.keep < length:
            cuts.append(Cut(len(rows), len(facts), length - change.keep))
        keep = change.keep
        for start in range(0, len(new) or 1, MAX_CONTENTS):
            part = new[start : start + MAX_CONTENTS]
            rows += [Row(len(facts), slot, body) for slot, body in enumerate(part)]
            place = state.places + 1 + len(rows) - len(part)
            facts.append(Transcribed(at, state.turn + 1, keep, tuple(map(message_digest, part)), place))
            keep += len(part)
        length = keep
    return Plan(tuple(facts), tuple(rows), tuple(cuts))


def _learnt(state: State, changes: Sequence[Change], entries: Sequence[Entry], at: str) -> list[Entry]:
    """Labels in the covers that nobody has journalled: they join, whoever wins (T2)."""
    for entry in entries:
        state = apply(state, entry)
    exposure = state.exposure
    covers = {one for change in changes for cover in change.covers if cover is not None for one in cover}
    new = tuple(sorted(one for one in covers if one not in exposure))
    return [Admitted(at, "the covers of a turn", new, NO_DIGEST, 0, unheard=True)] if new else []


def first_of(entries: Sequence[Entry], namespace: str) -> Opened:
    """The entry that opens a conversation in this namespace.

    Raises:
        Refused: there is none, or it opens one of another namespace.
    """
    first = entries[0] if entries else None
    if not isinstance(first, Opened):
        raise Refused("a conversation begins with an `opened` entry")
    if first.namespace != namespace:
        raise Refused(f"the conversation belongs to another namespace than {namespace!r}; it is not stored here")
    return first


def later(entries: Sequence[Entry]) -> None:
    """Entries for a conversation that exists.

    Raises:
        Refused: one would open it again, or says that entries were dropped, which only dropping them says.
    """
    if any(isinstance(entry, Opened) for entry in entries):
        raise Refused("a conversation is opened once, first")
    if any(isinstance(entry, Trimmed) for entry in entries):
        raise Refused("a journal is shortened by `trim`, which writes its own entry")
