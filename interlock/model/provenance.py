"""The provenance index: which values of a conversation somebody vouches for, and which a stranger may have written.

A fold of what journal entries say (T11), with bounded memory, and looked up in a time that does not depend on the
length of the conversation (T18). It only ever grants: nothing in it clears content.

What takes away is never forgotten: the words of untrusted content and of this conversation's own arguments stand in
two maps of a million bits, which only ever fill up. What grants may be forgotten: values that results hold stand in
three stacks of layers, each of which loses its oldest layer when it is full, and a value that is not there is `unseen`.
The stacks are apart so that no flood of a stranger's records pushes out what a trusted result said.

::

    typed text  ──►  State.typed                          user
    results     ──►  heard, said   (bits)                 takes away: mixed, untrusted
                     trusted, metadata, records (layers)  grants
    decisions   ──►  said, sent
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias
from zlib import crc32

from interlock.model.digests import Digest
from interlock.model.marks import EVERYTHING, checksums, unpacked

BITS: Final = 20  # 128 KiB a map
MAX_LAYER: Final = 256
MAX_LAYERS: Final = 32  # 8,192 values a stack
MAX_RECEIVERS: Final = 1024
MAX_NAMES: Final = 16


class Voucher(StrEnum):
    """Who vouches for a value in the index. RECORD: whoever typed one of its names. MIXED: nobody any more."""

    TRUSTED = "t"
    METADATA = "m"
    MADE = "c"
    RECORD = "r"
    MIXED = "x"


@dataclass(frozen=True, slots=True)
class Vouch:
    """One value that a result held: who vouches for it, and the number of the call that brought it."""

    voucher: Voucher
    number: int
    names: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A record's name is claimed by one id; an empty one stands for several."""

    record: Digest | None


Layer: TypeAlias = Mapping[Digest, "Vouch | Claim"]
Stack: TypeAlias = tuple[Layer, ...]
_NOTHING: Final[Mapping[Digest, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Provenance:
    """The index.

    Attributes:
        heard: bits of words that untrusted content held, or that this conversation's own arguments held.
        said: bits of words that this conversation's own arguments held.
        trusted: values that trusted results held, oldest layer first.
        metadata: values that fields of metadata held.
        records: ids of records with their names, and whose each name is.
        deaf: untrusted content came whose words nobody wrote down; every word counts as heard.
        sent: how often private material left to a receiver that nobody vouched for.
        flooded: there were more such receivers than are counted.
    """

    heard: bytes = b""
    said: bytes = b""
    trusted: Stack = ()
    metadata: Stack = ()
    records: Stack = ()
    deaf: bool = False
    sent: Mapping[Digest, int] = field(default_factory=lambda: _NOTHING)
    flooded: bool = False

    def vouch(self, value: Digest) -> Vouch | None:
        """What results say of a value. Each stack speaks for itself, so that forgetting in one improves nothing."""
        trusted, metadata = _find(self.trusted, value), _find(self.metadata, value)
        known = [one for one in (trusted, metadata) if isinstance(one, Vouch)]
        return next((one for one in known if one.voucher is not Voucher.MIXED), known[0] if known else None)

    def record(self, value: Digest) -> Vouch | None:
        """What is known of the record with an id of this mark."""
        found = _find(self.records, value)
        return found if isinstance(found, Vouch) else None

    def holder(self, name: Digest) -> Claim | None:
        """Whose name it is, by the mark of :func:`claim_mark`."""
        found = _find(self.records, name)
        return found if isinstance(found, Claim) else None

    def has_heard(self, words: Iterable[int]) -> bool:
        """Could a stranger's text, or this conversation itself, have held all of these words? No words: yes."""
        return self.deaf or all(_bit(self.heard, one) for one in words)

    def has_said(self, words: Iterable[int]) -> bool:
        """Could this conversation's own arguments have held all of these words?"""
        return all(_bit(self.said, one) for one in words)


EMPTY: Final = Provenance()


def _find(stack: Stack, value: Digest) -> Vouch | Claim | None:
    """The newest layer knows best."""
    for layer in reversed(stack):
        known = layer.get(value)
        if known is not None:
            return known
    return None


def _bit(bits: bytes, word: int) -> bool:
    place = word >> (32 - BITS)
    return bool(bits) and bool(bits[place >> 3] >> (place & 7) & 1)


def _with_words(bits: bytes, words: Iterable[int]) -> bytes:
    # Conversations repeat themselves, and a copy of the map takes longer than looking.
    missing = [word >> (32 - BITS) for word in words if not _bit(bits, word)]
    if not missing:
        return bits
    changed = bytearray(bits or bytes(1 << (BITS - 3)))
    for place in missing:
        changed[place >> 3] |= 1 << (place & 7)
    return bytes(changed)


_FULL: Final = b"\xff" * (1 << (BITS - 3))


def hearing(index: Provenance, heard: str) -> Provenance:
    """After untrusted content with these words; an empty text says that nobody wrote them down."""
    if heard == EVERYTHING or not heard:
        return index if index.deaf else replace(index, deaf=True)
    bits = _with_words(index.heard, unpacked(heard))
    return index if bits is index.heard else replace(index, heard=bits)


def saying(index: Provenance, said: str) -> Provenance:
    """After a call whose arguments held these words."""
    if not said:
        return index
    if said == EVERYTHING:
        return replace(index, said=_FULL, deaf=True)
    words = unpacked(said)
    own, heard = _with_words(index.said, words), _with_words(index.heard, words)
    return index if own is index.said and heard is index.heard else replace(index, said=own, heard=heard)


def sending(index: Provenance, receivers: Iterable[Digest]) -> Provenance:
    """After private material left to receivers that nobody vouched for."""
    sent = dict(index.sent)
    for one in receivers:
        sent[one] = sent.get(one, 0) + 1
    if sent == index.sent:
        return index
    if len(sent) > MAX_RECEIVERS:
        return replace(index, flooded=True)
    return replace(index, sent=MappingProxyType(sent))


def vouching(index: Provenance, number: int, vouched: Iterable[str], records: Iterable[str]) -> Provenance:
    """After a result that held these values.

    Args:
        vouched: ``t`` or ``m``, a mark, a space, and the packed words of the value.
        records: the noun of an id, its mark, and each mark of its names, with spaces between them; ``!`` instead of
            names for a record that the call has made; with ``?`` before it, the mark of a query that found it.
    """
    trusted = dict[Digest, Vouch | Claim]()
    metadata = dict[Digest, Vouch | Claim]()
    for one in vouched:
        value, words = Digest(one[1:23]), unpacked(one[24:])
        if one[0] == Voucher.TRUSTED:
            # What was vouched for before anybody else could have written it stays so.
            if value not in trusted and _find(index.trusted, value) is None:
                trusted[value] = Vouch(Voucher.MIXED if index.has_heard(words) else Voucher.TRUSTED, number)
        elif value not in metadata and _find(index.metadata, value) is None:
            metadata[value] = Vouch(Voucher.MIXED if index.has_said(words) else Voucher.METADATA, number)
    known, bits = _recorded(index, number, records)
    if not (trusted or metadata or known):
        return index
    return replace(
        index,
        heard=_with_words(index.heard, bits) if bits else index.heard,
        trusted=_layered(index.trusted, trusted),
        metadata=_layered(index.metadata, metadata),
        records=_layered(index.records, known),
    )


def _recorded(index: Provenance, number: int, records: Iterable[str]) -> tuple[dict[Digest, Vouch | Claim], list[int]]:
    """Records with their names, and the bits of all names that were claimed."""
    added: dict[Digest, Vouch | Claim] = {}
    bits: list[int] = []
    for one in records:
        noun, value, *names = (Digest(part) for part in one.split(" "))
        if names == ["!"]:
            added[value] = Vouch(Voucher.MADE, number)
            continue
        earlier = added.get(value) or index.record(value)
        if earlier is None:
            added[value] = Vouch(Voucher.RECORD, number, tuple(names)[:MAX_NAMES])
        elif (
            isinstance(earlier, Vouch) and earlier.voucher is Voucher.RECORD and not set(names).issubset(earlier.names)
        ):
            both = tuple(dict.fromkeys((*earlier.names, *names)))[:MAX_NAMES]
            added[value] = replace(earlier, names=both)
        # A query is nobody's name: it may find several.
        for name in (claim_mark(noun, each) for each in names if not each.startswith("?")):
            holder = added.get(name) or index.holder(name)
            bit = crc32(name.encode())
            # A name that was claimed before, by a record that is forgotten by now, may be anybody's.
            forgotten = holder is None and _bit(index.heard, bit)
            if forgotten or (isinstance(holder, Claim) and holder.record != value):
                added[name] = Claim(None)
            elif holder is None:
                added[name] = Claim(value)
            bits.append(bit)
    return added, bits


def claim_mark(noun: str, name: str) -> Digest:
    """Under which the index knows who bears a name, among records of one kind."""
    return Digest(f"{noun or '-'}/{name}")


def _layered(layers: Stack, added: Mapping[Digest, Vouch | Claim]) -> Stack:
    """The newest layer takes what is added until it is full; the oldest goes when there are too many."""
    if not added:
        return layers
    if layers and len(layers[-1]) + len(added) <= MAX_LAYER:
        return (*layers[:-1], MappingProxyType({**layers[-1], **added}))
    items = list(added.items())
    more = [MappingProxyType(dict(items[start : start + MAX_LAYER])) for start in range(0, len(items), MAX_LAYER)]
    return (*layers, *more)[-MAX_LAYERS:]


def words_in(value: str) -> set[int]:
    """Checksums of the words of a value, for :meth:`Provenance.has_heard`."""
    return checksums(value)
