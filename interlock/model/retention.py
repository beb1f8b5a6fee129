"""Where a journal begins once its oldest entries were dropped (T2, T10, T11).

The *base* stands in for everything up to one entry: the state after it, the digest of that entry, and the few dropped
entries that messages are held against. It is stored beside the journal and is never believed for itself: a ``trimmed``
entry behind it names every part of it by digest, and that entry is a link of the chain, so the head covers it. What was
dropped can't be made less tainted afterwards without breaking the chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, Sealed
from interlock.model.checkpoints import state_body, state_digest
from interlock.model.digests import Digest, digest
from interlock.model.entries import Entry, Erased, Transcribed, Trimmed
from interlock.model.state import State


@dataclass(frozen=True, slots=True)
class Base:
    """What stands in for the entries up to ``sequence``, whose digest is ``digest``.

    Attributes:
        state: bytes of the state after that entry (:func:`interlock.model.checkpoints.state_body`).
        kept: how many of those entries stay beside.
        keeping: digest of the last of these, each of which covers the one before (:func:`kept_link`).
    """

    sequence: int
    digest: Digest
    state: bytes
    kept: int = 0
    keeping: Digest = GENESIS


BARE: Final = Base(0, GENESIS, state_body(State()))


def stays(entry: Entry) -> bool:
    """Is this an entry that messages are held against? It is kept beside when it is dropped from the chain."""
    return isinstance(entry, Transcribed | Erased)


def kept_link(sequence: int, previous: Digest, body: bytes) -> Sealed:
    """One dropped entry that stays beside, linked to the one before it that did."""
    data = b"%d\0%b\0%b" % (sequence, previous.encode("utf-8", "surrogatepass"), body)
    return Sealed(sequence, previous, body, digest("kept", data))


def trimmed(at: str, base: Base) -> Trimmed:
    """The entry that says where a journal begins from now on."""
    return Trimmed(at, base.sequence, base.digest, state_digest(base.state), base.kept, base.keeping)


def begins(base: Base, newest: Trimmed | None) -> None:
    """Does a journal begin where the newest ``trimmed`` entry of its chain says?

    Raises:
        Tampered: it begins somewhere else, or in another state, or nothing says where.
    """
    if newest is None:
        if base != BARE:
            raise Tampered(base.sequence + 1, "is where the journal begins, and no entry says so")
    elif newest != trimmed(newest.at, base):
        raise Tampered(newest.through + 1, "does not begin with what the entry says that dropped all before it")
