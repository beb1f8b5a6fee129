"""Parcels: work for later, and messages between agents, with everything that was on whoever sent them (T2, T12).

A parcel may lie in a database, a queue or a schedule for as long as it likes. What is opened from it begins with its
labels, before its text can be seen. One that is damaged is every leg. Without a key that is found out of accidents, and
of whoever does not know this format; with one, of everybody who does not have the key.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import NotCanonical, Refused
from interlock.model.canonical import pack, parse
from interlock.model.carried import LOST, Carried, decode
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.names import conversation_name, namespace_name

MIN_KEY: Final = 16


@dataclass(frozen=True, slots=True)
class Parcel:
    """A text with the exposure that it was written under.

    Attributes:
        conversation: that sent it.
        doubts: digests of calls of which the sender does not know whether they happened: whoever goes on with its work
            must not take them for calls that nobody made.
    """

    id: str
    namespace: str
    conversation: str
    text: str
    carried: Carried
    doubts: tuple[Digest, ...] = ()

    def encode(self, *, key: bytes | None = None) -> bytes:
        """As bytes, to be kept anywhere; :func:`read_parcel` reads them.

        Args:
            key: of the operator, at least 16 bytes: then nobody who lacks it can make a parcel or change one.

        Raises:
            Refused: the key is short, or the text is larger than a parcel may be.
        """
        parts = self._parts()
        return pack([*parts, _seal(parts, key)])

    def _parts(self) -> list[str]:
        carried = self.carried.encode().decode()
        return [self.id, self.namespace, self.conversation, self.text, carried, " ".join(self.doubts)]

    def seen_from(self, namespace: str) -> Carried:
        """What it brings to somebody: in another namespace its labels, and nothing about who that was."""
        if namespace == self.namespace:
            return self.carried
        return Carried(self.carried.labels, (), self.carried.voices, self.carried.heard)


def read_parcel(body: bytes, *, namespace: str, key: bytes | None = None) -> Parcel:
    """Read a stored parcel. Labels that are not exactly those that were sent with this text are lost: every leg.

    Args:
        namespace: where it was found. A parcel that says something else is not trusted to say anything.
        key: that it was sealed with. One that was sealed with another, or with none, is not trusted either.

    Raises:
        Refused: not a parcel, so there is no text either; or the key is short.
    """
    try:
        value: Any = parse(body)
    except NotCanonical as error:
        raise Refused(f"not a parcel: {error}") from None
    if not isinstance(value, list) or len(value) != 7 or not all(type(one) is str for one in value):
        raise Refused("not a parcel: send it anew")
    *parts, seal = value
    conversation_name(parts[0])
    conversation_name(parts[2])
    # Guards against parcels that an agent writes into a queue: tests/regressions/test_parcels_forged.py.
    same = hmac.compare_digest(seal.encode("utf-8", "surrogatepass"), _seal(parts, key).encode())
    whole = same and parts[1] == namespace_name(namespace)
    carried = decode(parts[4].encode()) if whole else LOST
    doubts = tuple(map(Digest, parts[5].split())) if whole else (NO_DIGEST,)
    return Parcel(parts[0], namespace, parts[2], parts[3], carried, doubts)


def _seal(parts: list[str], key: bytes | None) -> str:
    if key is None:
        return digest("parcel", pack(parts))
    if len(key) < MIN_KEY:
        raise Refused(f"the key of parcels has at least {MIN_KEY} bytes; without one say key=None")
    return hmac.new(key, b"interlock/parcel/v1\0" + pack(parts), hashlib.sha256).hexdigest()
