"""Labels and taint (T1, T2).

A *label* is a leg with a category, such as ``untrusted:web``. A *taint* is the set of labels that have entered
a conversation, each with the source that brought it first. Its only operation is :meth:`Taint.join`: there is
no way, private or public, to make one smaller. ``<leg>:unknown`` is the top of its leg: every question about a
category of that leg is answered yes under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NewType

from interlock.errors import Refused

Label = NewType("Label", str)

# Lower case only: `private:Credentials` beside `private:credentials` would be a label that no control knows.
_LABEL: Final = re.compile(r"(untrusted|private|egress):[a-z0-9][a-z0-9_.@/:-]{0,119}")


class Leg(StrEnum):
    """One side of the lethal trifecta."""

    UNTRUSTED = "untrusted"
    PRIVATE = "private"
    EGRESS = "egress"


def label(text: str) -> Label:
    """Parse a label.

    Raises:
        Refused: ``text`` is not ``<leg>:<category>`` in lower-case ASCII.
    """
    if type(text) is not str or not _LABEL.fullmatch(text):
        raise Refused(
            f"{text!r} is not a label; write untrusted:<category>, private:<category> or egress:<category>"
            " in lower-case letters, digits and _.@/:-"
        )
    return Label(text)


def _checked(text: str) -> Label:
    return _known_label(text) if type(text) is str else label(text)


@lru_cache(maxsize=4096)
def _known_label(text: str) -> Label:
    return label(text)


@lru_cache(maxsize=4096)
def leg_of(one: Label) -> Leg:
    return Leg(one.partition(":")[0])


def category_of(one: Label) -> str:
    return one.partition(":")[2]


EVERY_LEG: Final = (
    Label("egress:unknown"),
    Label("private:unknown"),
    Label("untrusted:unknown"),
)


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where a label came from. Ordered by time first, so that the first source of a join is the earliest.

    Attributes:
        at: UTC time, ``2026-11-29T12:00:00.000000Z``; fixed width, so that text order is time order.
        call: number of the call in its conversation, from 1; 0 when no tool was involved.
        tool: name of the tool, or where else the content came from.
        digest: digest of the content, or empty when there was none.
    """

    at: str
    call: int
    tool: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Taint:
    """The labels of a conversation with their first sources, sorted by label.

    Equal taints have equal ``items``. Immutable, hashable, picklable.
    """

    items: tuple[tuple[Label, Source], ...] = ()

    def __post_init__(self) -> None:
        first: dict[Label, Source] = {}
        for one, source in self.items:
            _checked(one)
            known = first.get(one)
            if known is None or source < known:
                first[one] = source
        object.__setattr__(self, "items", tuple(sorted(first.items())))

    @staticmethod
    def of(labels: Iterable[str], source: Source) -> Taint:
        """All of ``labels``, each brought by ``source``.

        Raises:
            Refused: one of them is not a label.
        """
        return Taint(tuple((_checked(one), source) for one in labels))

    def join(self, other: Taint) -> Taint:
        """Both together; a label in both keeps its earlier source. ``self ⊑ self.join(other)`` (T1)."""
        if not other.items or other is self:
            return self
        if not self.items:
            return other
        known = dict(self.items)
        if all(one in known and known[one] <= source for one, source in other.items):
            return self  # nothing new, and nothing earlier: by far the most frequent case
        return Taint(self.items + other.items)

    def __le__(self, other: Taint) -> bool:
        """Are all labels of this in the other?"""
        return self.labels <= other.labels

    @property
    def labels(self) -> frozenset[Label]:
        return frozenset(one for one, _ in self.items)

    def source(self, one: str) -> Source | None:
        """The first source of exactly this label, or None."""
        return next((source for known, source in self.items if known == one), None)

    def categories(self, leg: Leg) -> list[str]:
        """Sorted categories of a leg; empty when the leg is absent."""
        return categories((one for one, _ in self.items), leg)

    def __contains__(self, one: object) -> bool:
        """Does the conversation hold this label, or the unknown of its leg?"""
        if not isinstance(one, str):
            return False
        wanted = label(one)
        top = f"{leg_of(wanted)}:unknown"
        return any(known in (wanted, top) for known, _ in self.items)

    def __iter__(self) -> Iterator[Label]:
        return (one for one, _ in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)


CLEAN: Final = Taint()


@lru_cache(maxsize=4096)
def _split(one: Label) -> tuple[str, str]:
    leg, _, category = one.partition(":")
    return leg, category


def categories(labels: Iterable[Label], leg: Leg) -> list[str]:
    """Sorted categories, each once, of those labels that belong to ``leg``."""
    return sorted({category for name, category in map(_split, labels) if name == leg.value})
