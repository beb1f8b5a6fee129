"""Entries that were exported before they were dropped, as JSON lines: still a chain, and still comparable."""

from __future__ import annotations

from typing import Any, Final

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, Sealed, seal
from interlock.model.digests import Digest
from interlock.ports import Namespace

_TEXTS: Final = ("namespace", "conversation", "previous", "digest", "body")


def archive_line(namespace: str, conversation: str, link: Sealed) -> dict[str, Any]:
    """One entry as JSON, to be kept before it is dropped; read again by :class:`Archive`."""
    return {
        "namespace": namespace,
        "conversation": conversation,
        "sequence": link.sequence,
        "previous": link.previous,
        "digest": link.digest,
        "body": link.body.decode(),
    }


class Archive:
    """What was exported, from any number of files, the oldest first."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], dict[int, Digest]] = {}

    def add(self, value: Any) -> None:
        """One more line.

        Raises:
            Tampered: it is none, was changed, or does not follow the one before it of the same conversation.
        """
        whole = isinstance(value, dict) and set(value) == {*_TEXTS, "sequence"} and type(value["sequence"]) is int
        if not whole or not all(isinstance(value[name], str) for name in _TEXTS):
            raise Tampered(0, "not a line of an archive")
        sequence, conversation = value["sequence"], value["conversation"]
        known = self._digests.setdefault((value["namespace"], conversation), {})
        last, previous = next(reversed(known.items()), (0, GENESIS))
        if (known or sequence == 1) and (sequence != last + 1 or value["previous"] != previous):
            raise Tampered(last + 1, f"of {conversation!r} is missing in the archive, or does not follow")
        body = value["body"].encode("utf-8", "surrogatepass")
        if seal(sequence, Digest(value["previous"]), body).digest != value["digest"]:
            raise Tampered(sequence, f"of {conversation!r} was changed in the archive")
        known[sequence] = Digest(value["digest"])

    def conversations(self) -> tuple[tuple[str, str], ...]:
        """Namespaces and ids of what is in it."""
        return tuple(self._digests)

    def joins(self, view: Namespace, conversation: str) -> None:
        """Does the stored journal begin where the archive ends?

        Raises:
            Tampered: it begins with another past, or the entries between are in neither.
            JournalUnavailable: the conversation is gone, or can't be read.
        """
        base, known = view.base(conversation), self._digests.get((view.name, conversation), {})
        last = next(reversed(known), 0)
        if last < base.sequence:
            raise Tampered(last + 1, f"and all up to {base.sequence} were dropped, and are not in the archive")
        stored = {base.sequence: base.digest}
        if last > base.sequence:  # it was exported, and in the end not dropped
            stored |= {one.sequence: one.digest for one in view.entries(conversation, after=last - 1, limit=1)}
        for sequence, found in stored.items():
            if known.get(sequence, found) != found:
                raise Tampered(sequence, "is another entry than the one in the archive")

    def digest_of(self, namespace: str, conversation: str, sequence: int) -> Digest | None:
        """What an archived entry's digest is, if it is in here."""
        return self._digests.get((namespace, conversation), {}).get(sequence)
