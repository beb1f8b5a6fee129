"""The provenance index: which values of a conversation somebody vouches for, and which a stranger may have written.

A fold of what journal entries say (T11), with bounded memory, and looked up in a time that does not depend on the
length of the conversation (T18). It only ever grants: nothing in it clears content.

What takes away is never forgotten: the words of untrusted content and of this conversation's own arguments stand in
two maps of a million bits, which only ever fill up. What grants may be forgotten: values that trusted results hold
stand in layers, the oldest of which is dropped when there are too many, and a value that is not there is `unseen`.

::

    typed text  ──►  State.typed                       user
    results     ──►  heard, said   (bits)              takes away: mixed, untrusted
                     layers        (values, ids)       trusted, metadata; names of records
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
MAX_LAYERS: Final = 64  # 16,384 values
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
_NOTHING: Final[Mapping[Digest, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Provenance:
    """The index.

    Attributes:
        heard: bits of words that untrusted content held, or that this conversation's own arguments held.
        said: bits of words that this conversation's own arguments held.
        layers: values, oldest layer first.
        deaf: untrusted content came whose words nobody wrote down; every word counts as heard.
        sent: how often private material left to a receiver that nobody vouched for.
        flooded: there were more such receivers than are counted.
    """

    heard: bytes = b""
    said: bytes = b""
    layers: tuple[Layer, ...] = ()
    deaf: bool = False
    sent: Mapping[Digest, int] = field(default_factory=lambda: _NOTHING)
    flooded: bool = False

    def find(self, value: Digest) -> Vouch | Claim | None:
        """What is remembered of a value; the newest layer knows best."""
        for layer in reversed(self.layers):
            known = layer.get(value)
            if known is not None:
                return known
        return None

    def has_heard(self, words: Iterable[int]) -> bool:
        """Could a stranger's text, or this conversation itself, have held all of these words? No words: yes."""
        return self.deaf or all(_bit(self.heard, one) for one in words)

    def has_said(self, words: Iterable[int]) -> bool:
        """Could this conversation's own arguments have held all of these words?"""
        return all(_bit(self.said, one) for one in words)


EMPTY: Final = Provenance()


def _bit(bits: bytes, word: int) -> bool:
    place = word >> (32 - BITS)
    return bool(bits) and bool(bits[place >> 3] >> (place & 7) & 1)


def _with_words(bits: bytes, words: Iterable[int]) -> bytes:
    changed = bytearray(bits or bytes(1 << (BITS - 3)))
    for word in words:
        place = word >> (32 - BITS)
        changed[place >> 3] |= 1 << (place & 7)
    return bytes(changed)


_FULL: Final = b"\xff" * (1 << (BITS - 3))


def hearing(index: Provenance, heard: str) -> Provenance:
    """After untrusted content with these words; an empty text says that nobody wrote them down."""
    if heard == EVERYTHING or not heard:
        return index if index.deaf else replace(index, deaf=True)
    return replace(index, heard=_with_words(index.heard, unpacked(heard)))


def saying(index: Provenance, said: str) -> Provenance:
    """After a call whose arguments held these words."""
    if not said:
        return index
    if said == EVERYTHING:
        return replace(index, said=_FULL, deaf=True)
    words = unpacked(said)
    return replace(index, said=_with_words(index.said, words), heard=_with_words(index.heard, words))


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
    added: dict[Digest, Vouch | Claim] = {}
    claimed: list[int] = []

    def known(value: Digest) -> Vouch | Claim | None:
        return added[value] if value in added else index.find(value)

    for one in vouched:
        value, words = Digest(one[1:23]), unpacked(one[24:])
        earlier = known(value)
        if isinstance(earlier, Vouch) and earlier.voucher is Voucher.TRUSTED:
            continue  # it was vouched for before anybody else could have written it
        if one[0] == Voucher.METADATA:
            voucher = Voucher.MIXED if index.has_said(words) else Voucher.METADATA
        else:
            voucher = Voucher.MIXED if index.has_heard(words) else Voucher.TRUSTED
        if isinstance(earlier, Vouch) and voucher is not Voucher.TRUSTED:
            continue
        added[value] = Vouch(voucher, number)
    for one in records:
        noun, value, *names = (Digest(part) for part in one.split(" "))
        if names == ["!"]:
            added[value] = Vouch(Voucher.MADE, number)
            continue
        earlier = known(value)
        if not isinstance(earlier, Vouch):
            added[value] = Vouch(Voucher.RECORD, number, tuple(names)[:MAX_NAMES])
        elif earlier.voucher is Voucher.RECORD and not set(names).issubset(earlier.names):
            both = tuple(dict.fromkeys((*earlier.names, *names)))[:MAX_NAMES]
            added[value] = replace(earlier, names=both)
        for name in names:
            if name.startswith("?"):
                continue  # a query is nobody's name: it may find several
            name = claim_mark(noun, name)
            holder = known(name)
            bit = crc32(name.encode())
            # A name that was claimed before, by a record that is forgotten by now, may be anybody's.
            forgotten = holder is None and index.heard != b"" and _bit(index.heard, bit)
            if forgotten or (isinstance(holder, Claim) and holder.record != value):
                added[name] = Claim(None)
            elif holder is None:
                added[name] = Claim(value)
            claimed.append(bit)
    if not added:
        return index
    layers = _layered(index.layers, added)
    heard = _with_words(index.heard, claimed) if claimed else index.heard
    return replace(index, layers=layers, heard=heard)


def claim_mark(noun: str, name: str) -> Digest:
    """Under which the index knows who bears a name, among records of one kind."""
    return Digest(f"{noun or '-'}/{name}")


def _layered(layers: tuple[Layer, ...], added: Mapping[Digest, Vouch | Claim]) -> tuple[Layer, ...]:
    """The newest layer takes what is added until it is full; the oldest goes when there are too many."""
    if layers and len(layers[-1]) + len(added) <= MAX_LAYER:
        return (*layers[:-1], MappingProxyType({**layers[-1], **added}))
    items = list(added.items())
    more = [MappingProxyType(dict(items[start : start + MAX_LAYER])) for start in range(0, len(items), MAX_LAYER)]
    return (*layers, *more)[-MAX_LAYERS:]


def words_in(value: str) -> set[int]:
    """Checksums of the words of a value, for :meth:`Provenance.has_heard`."""
    return checksums(value)
