"""Looking at stored conversations from outside: is everything what its head says, and what is there to hand on?"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, Head, Sealed, authentic, seal
from interlock.model.checkpoints import state_body, state_digest
from interlock.model.digests import Digest
from interlock.model.entries import Checkpointed, Entry, Opened, Trimmed, decode
from interlock.model.labels import Label, label
from interlock.model.retention import Base, begins, kept_link
from interlock.model.state import apply
from interlock.ports import Namespace
from interlock.stores.archive import Archive
from interlock.stores.places import Places
from interlock.stores.trimming import started

PAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class Verified:
    """A conversation whose chain fits its head from the first entry to the last.

    ``dropped`` entries before those are no longer there; a ``trimmed`` entry names what they folded to.
    """

    head: Head
    entries: int
    messages: int
    dropped: int = 0


def chain(view: Namespace, conversation: str, after: int = 0) -> Iterator[Sealed]:
    """The whole chain that stands, page by page."""
    while page := view.entries(conversation, after=after, limit=PAGE):
        yield from page
        after = page[-1].sequence


def verified(view: Namespace, conversation: str, key: bytes = b"") -> Verified:
    """Hold everything that is stored of a conversation against its head (T10): every entry, every checkpoint, every
    message, and what stands in for entries that were dropped. Entries that are written meanwhile are left to the next
    time.

    Raises:
        Tampered: at the first broken place.
        JournalUnavailable: there is none, or it can't be read.
    """
    while True:
        base = view.base(conversation)
        try:
            return _verified(view, conversation, base, key)
        except Tampered:
            if view.base(conversation).sequence <= base.sequence:
                raise
            # It was shortened meanwhile: what was looked at is gone, and has been held against its head by that.


def _verified(view: Namespace, conversation: str, base: Base, key: bytes) -> Verified:
    held = view.head(conversation)
    authentic(held, key)
    fold, places = started(base), _kept(view, conversation, base)
    state, place, previous = fold.state, fold.sequence, fold.digest
    if not places.fits(state):
        raise Tampered(place, "is where the journal begins, with another transcript than the dropped entries give")
    begun: Trimmed | None = None
    newest: tuple[int, Digest] | None = None
    for link in chain(view, conversation):
        if place == held.sequence:
            break
        place += 1
        if link.sequence != place or link.previous != previous:
            raise Tampered(place, f"is missing, or does not follow; number {link.sequence} stands there")
        if seal(place, previous, link.body).digest != link.digest:
            raise Tampered(place, "was changed after it was written")
        entry = decode(link.body, place)
        if isinstance(entry, Opened) != (place == 1):
            raise Tampered(place, "a conversation is opened once, first")
        if isinstance(entry, Checkpointed):
            if entry.state != state_digest(state_body(state)):
                raise Tampered(place, "names another state than the entries give")
            newest = (place, entry.state)
        begun = entry if isinstance(entry, Trimmed) else begun
        places.follow(place, entry)
        state, previous = apply(state, entry), link.digest
    if place < held.sequence:
        raise Tampered(place + 1, f"is missing: the head names {held.sequence} entries")
    if previous != held.digest or tuple(sorted(state.exposure)) != held.labels:
        raise Tampered(place, "is not the entry that the head names")
    begins(base, begun)
    _beside(view, conversation, newest)
    messages, gone = _messages(view, conversation, places, held.sequence)
    # After the messages, since more may be erased meanwhile. A store also finds things by itself here, such as a label
    # version that is not that of the entries.
    if gone > view.state(conversation).erased:
        raise Tampered(0, f"message {gone} was erased, and no entry says so")
    return Verified(held, place - base.sequence, messages, base.sequence)


def _kept(view: Namespace, conversation: str, base: Base) -> Places:
    """Are the dropped entries that messages are held against what the base says? Where they put messages.

    Raises:
        Tampered: at the first broken place.
    """
    places, count, after = Places(), 0, 0
    previous = GENESIS
    while page := view.kept(conversation, after=after, limit=PAGE):
        for one in page:
            link = kept_link(one.sequence, previous, one.body)
            if link.digest != one.digest or one.sequence > base.sequence:
                raise Tampered(one.sequence, "was kept for its messages, and was changed or does not follow")
            places.follow(one.sequence, decode(one.body, one.sequence))
            count, previous, after = count + 1, link.digest, one.sequence
    if (count, previous) != (base.kept, base.keeping):
        raise Tampered(after + 1, f"is missing: {base.kept} dropped entries were kept for their messages")
    return places


def older(view: Namespace, conversation: str, before: str) -> int:
    """The last entry of those at the beginning that were all written before a time, by the clocks of their writers.

    0 when there is nothing that is worth dropping: no entry, or none but what an earlier shortening wrote.

    Raises:
        Tampered, JournalUnavailable: it is damaged, or can't be read.
    """
    last, worth = 0, False
    for link in chain(view, conversation):
        entry = decode(link.body, link.sequence)
        if entry.at >= before:
            break
        last, worth = link.sequence, worth or not isinstance(entry, Trimmed)
    return last if worth else 0


def _beside(view: Namespace, conversation: str, newest: tuple[int, Digest] | None) -> None:
    """The checkpoint that a store keeps is the newest one that its entries name, or one that was written since."""
    asked = getattr(view, "checkpoint", None)
    if asked is None:
        return  # a store without any
    found = asked(conversation)
    if newest is None or (found is not None and found[0] > newest[0]):
        if found is not None and not isinstance(decode(*_named(view, conversation, found[0])), Checkpointed):
            raise Tampered(found[0], "is no checkpoint, and one is kept for it")
        return
    if found is None or found[0] != newest[0] or state_digest(found[1]) != newest[1]:
        raise Tampered(newest[0], "its checkpoint is missing, or another one is kept for it")


def _named(view: Namespace, conversation: str, place: int) -> tuple[bytes, int]:
    links = view.entries(conversation, after=place - 1, limit=1) if place > 0 else ()
    if not links or links[0].sequence != place:
        raise Tampered(place, "is missing, and a checkpoint is kept for it")
    return links[0].body, place


def _messages(view: Namespace, conversation: str, places: Places, until: int) -> tuple[int, int]:
    """Every message that the entries name is there, is what they say, and is in the transcript or not as they say; or
    was erased. There is no other one. How many there are, and the place of the last one that was erased."""
    place = gone = 0
    while page := view.messages_ever(conversation, after=place, limit=PAGE):
        for one in page:
            place += 1
            if place > places.stored and one.entry > until:
                return places.stored, gone  # written since
            if one.place != place:
                raise Tampered(one.entry, f"message {place} is missing")
            if place > places.stored:
                raise Tampered(one.entry, f"message {place} was never stored: there are {places.stored}")
            gone = place if one.message is None else gone
            if one.message is not None and place <= places.erased:
                raise Tampered(one.entry, f"message {place} was erased, and is there again")
            now = one.retired if one.retired <= until else 0
            if now != places.retired.get(place, 0):
                raise Tampered(one.entry, f"message {place} is in the transcript, or is not, against what entries say")
    if place < places.stored:
        raise Tampered(0, f"message {place + 1} is missing")
    return place, gone


def signed_head(head: Head, namespace: str, conversation: str, key: bytes = b"") -> dict[str, Any]:
    """A head to keep somewhere else, as JSON; with a key, signed so that only who has the key can make one."""
    value = {
        "namespace": namespace,
        "conversation": conversation,
        "sequence": head.sequence,
        "digest": head.digest,
        "labels": list(head.labels),
    }
    return {**value, "signature": _signature(value, key)}


def _signature(value: dict[str, Any], key: bytes) -> str:
    if not key:
        return ""
    data = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    return hmac.new(key, b"interlock/kept-head/v1\0" + data, hashlib.sha256).hexdigest()


def reaches(view: Namespace, kept: Any, key: bytes = b"", archive: Archive | None = None) -> None:
    """Is what a head said, that was kept somewhere else, still so? A shorter chain and another past are found.

    Args:
        archive: of entries that were dropped, in which the head's may be; it must have been held against the journal.

    Raises:
        Tampered: it is not, or the head is none, or is not signed with this key.
        JournalUnavailable: the conversation is gone, or can't be read.
    """
    conversation, head = _read(kept, view.name, key)
    dropped = view.base(conversation).sequence
    if head.sequence <= dropped:
        exported = None if archive is None else archive.digest_of(view.name, conversation, head.sequence)
        if exported == head.digest:
            return
        if exported is not None:
            raise Tampered(head.sequence, "is not the entry that a head that was kept names")
        # Whoever forges a beginning behind this head would be found by it only if this counts as broken.
        raise Tampered(
            head.sequence,
            f"was dropped since, with all up to {dropped}; compare it with the archive of that, and keep a new head",
        )
    found = view.entries(conversation, after=head.sequence - 1, limit=1)
    if not found:
        now = view.head(conversation).sequence
        raise Tampered(now + 1, f"is missing: a head that was kept names {head.sequence} entries")
    if found[0].digest != head.digest:
        raise Tampered(head.sequence, "is not the entry that a head that was kept names")


def fits_saved(sealed: Sequence[Sealed], kept: Any, key: bytes = b"") -> None:
    """The same for a journal that was saved to a file, whose heads are kept without a name.

    Raises:
        Tampered: it is shorter than the head says, or another one, or the head is none.
    """
    _, head = _read(kept, "", key)
    if head.sequence > len(sealed):
        raise Tampered(len(sealed) + 1, f"is missing: a head that was kept names {head.sequence} entries")
    if sealed[head.sequence - 1].digest != head.digest:
        raise Tampered(head.sequence, "is not the entry that a head that was kept names")


def _read(kept: Any, namespace: str, key: bytes) -> tuple[str, Head]:
    try:
        value = {name: kept[name] for name in ("namespace", "conversation", "sequence", "digest", "labels")}
        whole = set(kept) == {*value, "signature"} and type(value["sequence"]) is int and value["sequence"] > 0
        signature = str(kept["signature"])
        labels: tuple[Label, ...] = tuple(label(one) for one in value["labels"])
    except (KeyError, TypeError, ValueError):
        whole, value, signature, labels = False, {}, "", ()
    if not whole:
        raise Tampered(0, "the head that was kept is none")
    if key and not hmac.compare_digest(signature.encode(), _signature(value, key).encode()):
        raise Tampered(value["sequence"], "the head that was kept is not signed with this key")
    if value["namespace"] != namespace:
        raise Tampered(value["sequence"], "the head that was kept is of another namespace")
    return str(value["conversation"]), Head(value["sequence"], Digest(str(value["digest"])), labels)


def decoded(view: Namespace, conversation: str) -> Iterator[tuple[str, Entry]]:
    """Every entry with its digest."""
    for link in chain(view, conversation):
        yield link.digest, decode(link.body, link.sequence)
