"""What a process remembers of stored conversations: the fold of their entries, up to a place that it has verified.

A fold is only ever a start: whoever uses one first asks the store what has come since. Bounded, and forgetting costs
one more reading. Pure bookkeeping; the store does the asking.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from interlock.errors import Tampered
from interlock.locks import LEAF
from interlock.model.chain import GENESIS, seal
from interlock.model.checkpoints import read_state, state_digest
from interlock.model.digests import Digest
from interlock.model.entries import Checkpointed, Opened, Trimmed, decode
from interlock.model.state import State, apply

# In remembered values (digests, labels, calls), each some 150 bytes: together at most about 75 MB.
MAX_REMEMBERED: Final = 500_000
# Folding so many entries takes some ten milliseconds; a checkpoint is due after as many.
CHECKPOINT_EVERY: Final = 1000


@dataclass(frozen=True, slots=True)
class Fold:
    """The state after entry ``sequence``, whose digest is ``digest``.

    ``trimmed`` is the newest entry among those that were folded here which says where the journal begins.
    """

    state: State
    sequence: int
    digest: Digest
    trimmed: Trimmed | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An entry as a store has it."""

    sequence: int
    body: bytes
    digest: Digest


BEGINNING: Final = Fold(State(), 0, GENESIS)


def advanced(fold: Fold, links: Iterable[Link]) -> Fold:
    """The fold after more entries, each held against the one before it (T10).

    Raises:
        Tampered: the first link that does not follow.
    """
    state, place, previous, trimmed = fold.state, fold.sequence, fold.digest, fold.trimmed
    for link in links:
        place += 1
        if link.sequence != place:
            raise Tampered(place, f"is missing; number {link.sequence} follows")
        if seal(place, previous, link.body).digest != link.digest:
            raise Tampered(place, "was changed after it was written, or does not follow from the entry before it")
        entry = decode(link.body, place)
        if isinstance(entry, Opened) != (place == 1):
            raise Tampered(place, "a conversation is opened once, first")
        if isinstance(entry, Trimmed):
            trimmed = entry
        state, previous = apply(state, entry), link.digest
    return Fold(state, place, previous, trimmed)


def from_checkpoint(body: bytes, before: Link, checkpoint: Link) -> Fold | None:
    """The fold at a checkpoint, or None when it can't be believed; then the entries tell.

    Args:
        body: of the state.
        before, checkpoint: the link that the checkpoint's entry follows, and that entry.
    """
    try:
        entry = decode(checkpoint.body, checkpoint.sequence)
        followed = seal(checkpoint.sequence, before.digest, checkpoint.body).digest == checkpoint.digest
        named = isinstance(entry, Checkpointed) and entry.state == state_digest(body)
        if not followed or not named or before.sequence != checkpoint.sequence - 1:
            return None
        return Fold(read_state(body), checkpoint.sequence, checkpoint.digest)
    except Tampered:
        return None


class Folds:
    """The folds of many conversations, the least recently used ones forgotten first. Safe between threads and forks."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = limit
        self._weight = 0
        self._known: OrderedDict[tuple[str, str], Fold] = OrderedDict()

    def known(self, key: tuple[str, str]) -> Fold:
        """What is remembered, or the beginning."""
        with LEAF:
            found = self._known.get(key)
            if found is None:
                return BEGINNING
            self._known.move_to_end(key)
            return found

    def remember(self, key: tuple[str, str], fold: Fold) -> None:
        """Keep a fold, unless another thread has got further."""
        with LEAF:
            old = self._known.get(key)
            if old is not None:
                if old.sequence >= fold.sequence:
                    return
                self._weight -= _weight(old.state)
            self._known[key] = fold
            self._known.move_to_end(key)
            self._weight += _weight(fold.state)
            while self._weight > self._limit and len(self._known) > 1:
                _, forgotten = self._known.popitem(last=False)
                self._weight -= _weight(forgotten.state)

    def forget(self, key: tuple[str, str]) -> None:
        with LEAF:
            old = self._known.pop(key, None)
            if old is not None:
                self._weight -= _weight(old.state)

    def __len__(self) -> int:
        return len(self._known)


def _weight(state: State) -> int:
    sets = len(state.typed) + len(state.texts) + len(state.voices) + len(state.doubts)
    index = state.provenance
    layers = sum(map(len, (*index.trusted, *index.metadata, *index.records))) + len(index.sent)
    bits = (len(index.heard) + len(index.said)) // 150
    asked = 16 * (len(state.questions) + len(state.standing)) + len(state.denials)
    return 16 + asked + sets + 4 * len(state.taint) + 8 * (len(state.in_flight) + len(state.children)) + layers + bits
