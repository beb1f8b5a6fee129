"""Facts: what agents write down for other conversations, with the labels of whoever wrote it (T12).

A fact is never trusted: whoever recalls it gets its stored labels and ``untrusted:memory``. Its text is that of its
newest revision; its labels are those of all revisions together, also of those whose text is gone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from interlock.errors import Refused
from interlock.model.canonical import pack
from interlock.model.carried import Carried
from interlock.model.digests import Digest, content_digest, digest
from interlock.model.labels import Label

MEMORY: Final = Label("untrusted:memory")
MAX_TEXT: Final = 8192
MAX_ID: Final = 128
MAX_WORDS: Final = 32
MAX_WORD: Final = 100
MAX_FOUND: Final = 32
MAX_DIMENSIONS: Final = 4096
_WORDS: Final = re.compile(r"\w+")

Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact as stored.

    Attributes:
        revision: from 1; a change names the revision that it was made from.
        text: None when it was deleted. Its labels stay.
        content: digest of the text.
        conversation: that wrote this revision.
        first, end: places in its transcript that it was made from.
        carried: labels of all revisions, and where they came from.
    """

    id: str
    revision: int
    at: str
    text: str | None
    content: Digest
    conversation: str
    first: int
    end: int
    carried: Carried

    @property
    def recalled(self) -> Carried:
        """What it brings to a conversation that recalls it."""
        return self.carried.under(MEMORY)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which facts of a namespace to forget: those for which everything holds that is given here.

    Attributes:
        ids: these.
        before: not written or changed since; a time as entries have it.
        conversation: written by this conversation, or holding labels that came from it.
        everything: all of the namespace. Nothing given and this not set selects nothing.
    """

    ids: tuple[str, ...] = ()
    before: str = ""
    conversation: str = ""
    everything: bool = False

    def takes(self, fact: Fact) -> bool:
        if not (self.ids or self.before or self.conversation or self.everything):
            return False
        if self.ids and fact.id not in self.ids:
            return False
        if self.before and fact.at >= self.before:
            return False
        named = re.compile(rf"(?<![\w-]){re.escape(self.conversation)}(?![\w-])")
        return (
            not self.conversation
            or fact.conversation == self.conversation
            or any(named.search(note) for _, note in fact.carried.notes)
        )


def fact_of(
    id: str, revision: int, at: str, text: str, conversation: str, place: tuple[int, int], carried: Carried
) -> Fact:
    """A fact to store.

    Raises:
        Refused: no name for a fact, no text, or more of it than a fact takes.
    """
    if type(id) is not str or not id or len(id) > MAX_ID or not id.isprintable():
        raise Refused(f"the id of a fact is printable text of 1 to {MAX_ID} characters")
    if type(text) is not str or not text.strip() or len(text) > MAX_TEXT:
        raise Refused(f"a fact is text of 1 to {MAX_TEXT} characters; write several, or a shorter one")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("a fact holds no lone surrogates") from None
    if "\0" in text:
        raise Refused("a fact holds no NUL")
    first, end = place
    return Fact(id, revision, at, text, content_digest(text), conversation, first, end, carried)


def seal(namespace: str, fact: Fact) -> Digest:
    """Binds the labels of a fact to its text: whoever exchanges one of them in a store leaves a fact of every leg."""
    place = [namespace, fact.id, fact.revision, fact.content, fact.conversation, fact.at]
    return digest("fact", pack([*place, fact.carried.encode().decode()]))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a query, each once. Nothing in it is an operator of any search language."""
    found = (word.casefold() for word in _WORDS.findall(text) if len(word) <= MAX_WORD)
    return tuple(dict.fromkeys(found))[:MAX_WORDS]


def ranked(facts: Iterable[Fact], words: Sequence[str], limit: int) -> tuple[Fact, ...]:
    """The facts that hold most of the words, and of equals the newest; the same in every store."""
    wanted = set(words)

    def score(fact: Fact) -> int:
        return len(wanted.intersection(words_in(fact.text or "")))

    scored = [(score(fact), fact) for fact in facts]
    found = sorted((one for one in scored if one[0]), key=lambda one: (one[0], one[1].at, one[1].id), reverse=True)
    return tuple(fact for _, fact in found[:limit])


def words_in(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORDS.findall(text) if len(word) <= MAX_WORD)


def nearest(
    facts: Iterable[tuple[Fact, Vector]], wanted: Vector, limit: int, least: float = 0.0
) -> tuple[tuple[Fact, float], ...]:
    """The facts whose vectors point most in the wanted direction, with the cosine; of equals the newest."""
    found = [(fact, _cosine(vector, wanted)) for fact, vector in facts if len(vector) == len(wanted)]
    found.sort(key=lambda one: (one[1], one[0].at, one[0].id), reverse=True)
    return tuple(one for one in found[:limit] if one[1] > least)


def vector_of(numbers: Iterable[float]) -> Vector:
    """What an embedder gave, checked.

    Raises:
        Refused: not 1 to 4096 finite numbers, or all of them 0.
    """
    # One more than is taken, so that an embedder which never ends is found out.
    vector = tuple(float(one) for one in islice(numbers, MAX_DIMENSIONS + 1))
    if not 0 < len(vector) <= MAX_DIMENSIONS or not all(map(math.isfinite, vector)) or not any(vector):
        raise Refused(f"an embedding is 1 to {MAX_DIMENSIONS} finite numbers, not all of them 0")
    return vector


def _cosine(one: Vector, other: Vector) -> float:
    # Scaled first: huge components would overflow to a cosine that is no number, and no order holds for that.
    one, other = scaled(one), scaled(other)
    length = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else 0.0


def scaled(vector: Vector) -> Vector:
    """The same direction, with 1 as the largest component."""
    largest = max(map(abs, vector), default=0.0)
    return tuple(one / largest for one in vector) if largest and math.isfinite(largest) else (0.0,) * len(vector)
