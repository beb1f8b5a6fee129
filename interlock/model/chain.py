"""The hash chain over entries, and the head that is held apart from it (T10).

Each link is the digest of the one before, its place and its body, so an edit, removal, insertion or change of order
shows at the first broken place. A chain alone can't show a cut tail: the *head* (sequence, digest, labels), kept
somewhere else and keyed when the operator gives a key, can.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from interlock.errors import NotCanonical, Tampered
from interlock.model.canonical import pack
from interlock.model.digests import Digest, digest
from interlock.model.labels import Label

GENESIS: Final = Digest("sha256:" + "0" * 64)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A stored entry: its place (from 1), the digest before it, its canonical bytes and its own digest."""

    sequence: int
    previous: Digest
    body: bytes
    digest: Digest


@dataclass(frozen=True, slots=True)
class Head:
    """What must be true of a journal: how long it is, what its last entry is, which labels it holds.

    ``mac`` is HMAC-SHA256 over the rest, in hex; empty when the operator gave no key.
    """

    sequence: int
    digest: Digest
    labels: tuple[Label, ...]
    mac: str = ""


def seal(sequence: int, previous: Digest, body: bytes) -> Sealed:
    """Link one entry to the chain."""
    return Sealed(sequence, previous, body, _link(sequence, previous, body))


def _link(sequence: int, previous: Digest, body: bytes) -> Digest:
    # What stands where a digest should may be anything that a database can hold.
    return digest("entry", b"%d\0%b\0%b" % (sequence, previous.encode("utf-8", "surrogatepass"), body))


def head(sequence: int, last: Digest, labels: Sequence[Label], key: bytes = b"") -> Head:
    """The head of a chain that ends at entry ``sequence`` with digest ``last``."""
    sorted_labels = tuple(sorted(labels))
    return Head(sequence, last, sorted_labels, _mac(sequence, last, sorted_labels, key))


def _mac(sequence: int, last: Digest, labels: tuple[Label, ...], key: bytes) -> str:
    if not key:
        return ""
    return hmac.new(key, b"interlock/head/v1\0" + pack([sequence, last, labels]), hashlib.sha256).hexdigest()


def authentic(held: Head, key: bytes = b"") -> None:
    """Was the head made with this key?

    Raises:
        Tampered: it was not.
    """
    try:
        expected = _mac(held.sequence, held.digest, held.labels, key)
    except (TypeError, ValueError, NotCanonical):
        raise Tampered(held.sequence, "the head holds what no head holds") from None
    if not hmac.compare_digest(held.mac.encode("utf-8", "surrogatepass"), expected.encode()):
        raise Tampered(held.sequence, "the head was not made with this key")


def verify(
    entries: Sequence[Sealed], held: Head, key: bytes = b"", *, after: int = 0, previous: Digest = GENESIS
) -> None:
    """Check a chain against the head that was held apart.

    Args:
        after, previous: place and digest of the last entry that was dropped, when the journal was shortened. Whether
            they are what the chain says is the caller's to check (:func:`interlock.model.retention.begins`).

    Raises:
        Tampered: with the first broken place. A chain that is shorter or longer than its head, and a head that was
            made with another key, are broken too.
    """
    authentic(held, key)
    for place, entry in enumerate(entries, after + 1):
        if entry.sequence != place:
            raise Tampered(place, f"holds number {entry.sequence}")
        if entry.previous != previous:
            raise Tampered(place, "does not follow from the entry before it")
        if entry.digest != _link(place, previous, entry.body):
            raise Tampered(place, "was changed after it was written")
        if place == held.sequence and entry.digest != held.digest:
            raise Tampered(place, "is not the entry that the head names")
        if place > held.sequence:
            raise Tampered(place, "stands after the head")
        previous = entry.digest
    if after + len(entries) < held.sequence:
        raise Tampered(after + len(entries) + 1, f"is missing: the head names {held.sequence} entries")
