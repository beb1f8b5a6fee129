"""Shortening a journal: worked out from the entries that stand, the same for every store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interlock.errors import Refused, Tampered
from interlock.model.chain import Sealed
from interlock.model.checkpoints import read_state, state_body
from interlock.model.entries import decode
from interlock.model.retention import Base, kept_link, stays
from interlock.stores.folds import Fold, Link, advanced


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a journal will begin.

    Attributes:
        fold: of everything that is dropped.
        base: what stands in for it.
        kept: the dropped entries that stay beside, without those that did already.
    """

    fold: Fold
    base: Base
    kept: tuple[Sealed, ...]


def started(base: Base) -> Fold:
    """The fold of what was dropped. Whether it may be believed, the entries behind it tell.

    Raises:
        Tampered: not a state of this version.
    """
    try:
        return Fold(read_state(base.state), base.sequence, base.digest)
    except Tampered as problem:
        raise Tampered(base.sequence + 1, f"can't begin there: {problem.problem}") from None


def cut(base: Base, links: Iterable[Link], through: int) -> Cut:
    """Drop everything up to entry ``through``.

    Args:
        links: those behind the base, in order; none behind ``through`` is looked at.

    Raises:
        Refused: there are not so many entries.
        Tampered: the first link that does not follow.
    """
    fold, keeping, kept = started(base), base.keeping, list[Sealed]()
    for link in links:
        if link.sequence > through:
            break
        fold = advanced(fold, [link])
        if stays(decode(link.body, link.sequence)):
            kept.append(kept_link(link.sequence, keeping, link.body))
            keeping = kept[-1].digest
    if fold.sequence != through:
        raise Refused(f"the journal has no entry {through}: {fold.sequence} is the last")
    return Cut(fold, Base(through, fold.digest, state_body(fold.state), base.kept + len(kept), keeping), tuple(kept))
