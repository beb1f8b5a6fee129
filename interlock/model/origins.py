"""Origins: who vouches for a destination.

At this stage there are three. ``user``: the whole value stands in text that was journalled as typed. ``operator``:
it stands in the address book of the settings. ``unseen``: nobody; the model made it, or read it somewhere.

What was typed is remembered as digests of normal forms, so the journal holds no prompt text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from interlock.errors import SettingsError
from interlock.model.destinations import Destination, normalised, voice_of
from interlock.model.digests import Digest, digest
from interlock.model.tools import Kind


class Origin(StrEnum):
    """Where a value in the arguments came from."""

    USER = "user"
    OPERATOR = "operator"
    TRUSTED = "trusted"
    METADATA = "metadata"
    MIXED = "mixed"
    UNTRUSTED = "untrusted"
    UNSEEN = "unseen"


GROUNDING: Final = frozenset({Origin.USER, Origin.OPERATOR, Origin.TRUSTED})
MAX_TYPED: Final = 1000

_WORDS: Final = re.compile(r"[^\s<>]+")
_OPENING: Final = "([{<\"'`«“‘"
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_LONGEST: Final = 8192  # nothing longer has a normal form
_CLOSING: Final = ".,;:!?)]}>\"'`»”’"
_PATHLIKE: Final = re.compile(r"(~|\.{1,2})?/.+|[\w.-]+(/[\w.-]+)+|[\w-][\w.-]*\.[A-Za-z0-9]{1,8}")


@lru_cache(maxsize=4096)
def value_digest(kind: Kind, normal: str) -> Digest:
    """Digest of a normal form; the kind is part of it, so a typed path never vouches for an address."""
    return digest("value", f"{kind.value}\0{normal}".encode("utf-8", "surrogatepass"))


def typed_values(text: str) -> tuple[Digest, ...]:
    """Digests of the whole URLs, mail addresses and paths in text that a person typed, at most 1,000.

    A value must stand as a word of its own; punctuation around it is not part of it.
    """
    found: dict[Digest, None] = {}
    for word in _WORDS.findall(text):
        if len(word) > _LONGEST:
            continue
        bare = _bare(word)
        for kind in _kinds(bare):
            normal = normalised(kind, bare)
            if normal is not None:
                found[value_digest(kind, normal)] = None
        if len(found) >= MAX_TYPED:
            break  # what is not remembered is `unseen`: the strict side
    return tuple(found)[:MAX_TYPED]


def parties(source: str) -> tuple[frozenset[str], bool]:
    """Who speaks from a source that a host names: the parties of its URLs and addresses, and whether one of them could
    not be made out."""
    found: set[str] = set()
    unheard = False
    for word in _WORDS.findall(source):
        bare = _bare(word) if len(word) <= _LONGEST else word
        if "://" in bare or "@" in bare:
            kind = Kind.URL if "://" in bare else Kind.EMAIL
            normal = normalised(kind, bare)
            unheard = unheard or normal is None
            found |= set() if normal is None else {voice_of(kind, normal)}
        elif "%40" in bare or bare.casefold().startswith(("www.", "//", "http:", "https:")):
            unheard = True
    return frozenset(found), unheard


def _bare(word: str) -> str:
    """The word without the punctuation around it; a bracket that the word itself opens belongs to it."""
    bare = word.lstrip(_OPENING)
    left = {bracket: bare.count(bracket) for bracket in "()[]{}"}
    end = len(bare)
    while end and bare[end - 1] in _CLOSING:
        closing = bare[end - 1]
        opening = _PAIRS.get(closing)
        if opening:
            if left[opening] >= left[closing]:
                break
            left[closing] -= 1
        end -= 1
    return bare[:end].removeprefix("mailto:")


def _kinds(word: str) -> Iterable[Kind]:
    if "://" in word:
        yield Kind.URL
    elif "@" in word:
        yield Kind.EMAIL
    elif _PATHLIKE.fullmatch(word):
        yield Kind.PATH


def address_book(entries: Mapping[str, Iterable[str]]) -> frozenset[Digest]:
    """The operator's destinations, normalised like those of calls.

    Raises:
        SettingsError: an entry can't be parsed as its kind; it would silently match nothing.
    """
    found = set()
    for name, values in entries.items():
        kind = Kind(name)
        for value in values:
            normal = normalised(kind, value)
            if normal is None:
                raise SettingsError(f"address_book.{name}: {value!r} can't be read as {name}; correct or remove it")
            found.add(value_digest(kind, normal))
    return frozenset(found)


def origin_of(destination: Destination, typed: frozenset[Digest], operator: frozenset[Digest]) -> Origin:
    """The strongest origin that vouches for a destination. Unknown is vouched for by nobody."""
    if destination.kind is Kind.UNKNOWN:
        return Origin.UNSEEN
    value = value_digest(destination.kind, destination.value)
    if value in typed:
        return Origin.USER
    return Origin.OPERATOR if value in operator else Origin.UNSEEN
