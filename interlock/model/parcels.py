"""Parcels: work for later, and messages between agents, with everything that was on whoever sent them (T2, T12).

A parcel may lie in a database, a queue or a schedule for as long as it likes. What is opened from it begins with its
labels, before its text can be seen. One that is damaged is every leg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.errors import NotCanonical, Refused
from interlock.model.canonical import pack, parse
from interlock.model.carried import LOST, Carried, decode
from interlock.model.digests import digest
from interlock.model.names import conversation_name, namespace_name


@dataclass(frozen=True, slots=True)
class Parcel:
    """A text with the exposure that it was written under.

    Attributes:
        conversation: that sent it.
    """

    id: str
    namespace: str
    conversation: str
    text: str
    carried: Carried

    def encode(self) -> bytes:
        """As bytes, to be kept anywhere; :func:`read_parcel` reads them."""
        return pack([*self._parts(), _seal(self._parts())])

    def _parts(self) -> list[str]:
        return [self.id, self.namespace, self.conversation, self.text, self.carried.encode().decode()]

    def seen_from(self, namespace: str) -> Carried:
        """What it brings to somebody: in another namespace its labels, and nothing about who that was."""
        if namespace == self.namespace:
            return self.carried
        return Carried(self.carried.labels, (), self.carried.voices, self.carried.heard)


def read_parcel(body: bytes, *, namespace: str) -> Parcel:
    """Read a stored parcel. Labels that are not exactly those that were sent with this text are lost: every leg.

    Args:
        namespace: where it was found. A parcel that says something else is not trusted to say anything.

    Raises:
        Refused: not a parcel, so there is no text either.
    """
    try:
        value: Any = parse(body)
    except NotCanonical as error:
        raise Refused(f"not a parcel: {error}") from None
    if not isinstance(value, list) or len(value) != 6 or not all(type(one) is str for one in value):
        raise Refused("not a parcel: send it anew")
    *parts, seal = value
    conversation_name(parts[0])
    conversation_name(parts[2])
    whole = seal == _seal(parts) and parts[1] == namespace_name(namespace)
    return Parcel(parts[0], namespace, parts[2], parts[3], decode(parts[4].encode()) if whole else LOST)


def _seal(parts: list[str]) -> str:
    return digest("parcel", pack(parts))
