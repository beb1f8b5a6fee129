"""The head of a chain as a file beside it.

An export has one head. A file that is written to has two places for it, which take turns: a write that a crash cuts off
spoils the older head and never the newer one, and costs one flush instead of the renaming of a file.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from interlock.errors import NotCanonical, Tampered
from interlock.model.canonical import pack, parse
from interlock.model.chain import Head
from interlock.model.digests import Digest
from interlock.model.labels import Label


def head_of(file: Path) -> Path:
    """Where the head of a file stands."""
    return file.with_name(file.name + ".head")


def head_bytes(head: Head) -> bytes:
    return pack(asdict(head)) + b"\n"


def read_head(data: bytes) -> Head:
    """Parse a head.

    Raises:
        Tampered: not one of this version.
    """
    try:
        value: Any = parse(data)
    except NotCanonical as error:
        raise Tampered(0, f"the head is none: {error}") from None
    well_formed = (
        isinstance(value, dict)
        and set(value) == {"sequence", "digest", "labels", "mac"}
        and type(value["sequence"]) is int
        and isinstance(value["labels"], list)
        and all(isinstance(one, str) for one in (value["digest"], value["mac"], *value["labels"]))
    )
    if not well_formed:
        raise Tampered(0, "the head is not one of this version")
    labels = tuple(Label(one) for one in value["labels"])
    return Head(value["sequence"], Digest(value["digest"]), labels, value["mac"])


SLOT: Final = 1 << 16  # bytes; the labels of a conversation are bounded, and fill half of it at most


def slot_of(sequence: int) -> int:
    """Offset of the place that a head of this number is written to."""
    return SLOT * (sequence % 2)


def slot_bytes(head: Head) -> bytes:
    """A head with its checksum, so that half of one is not taken for another."""
    data = head_bytes(head)
    return hashlib.sha256(data).hexdigest().encode() + b" " + data


def read_slots(data: bytes) -> tuple[Head, bool]:
    """The newest whole head of two, and whether the other one is the head before it, as it must be.

    Raises:
        Tampered: there is no whole head.
    """
    slots = [_slot(data[:SLOT]), _slot(data[SLOT:])]
    whole = [one for one in slots if one is not None]
    if len(data) > 2 * SLOT or not whole:
        raise Tampered(0, "there is no whole head")
    newest = max(whole, key=lambda one: one.sequence)
    if len(whole) == 2:
        return newest, abs(slots[0].sequence - slots[1].sequence) == 1  # type: ignore[union-attr]  # both are whole
    first = newest.sequence == 1 and not data[:SLOT].strip(b"\0")
    return newest, first


def _slot(data: bytes) -> Head | None:
    checksum, found, rest = data.partition(b" ")
    line = rest.partition(b"\n")[0] + b"\n"
    if not found or hashlib.sha256(line).hexdigest().encode() != checksum:
        return None
    return read_head(line)
