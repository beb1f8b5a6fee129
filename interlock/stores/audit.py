"""Looking at stored conversations from outside: is everything what its head says, and what is there to hand on?"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, Head, Sealed, authentic, seal
from interlock.model.checkpoints import state_body, state_digest
from interlock.model.digests import Digest
from interlock.model.entries import Checkpointed, Entry, Opened, Transcribed, decode
from interlock.model.labels import Label, label
from interlock.model.state import State, apply
from interlock.ports import Namespace

PAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class Verified:
    """A conversation whose chain fits its head from the first entry to the last."""

    head: Head
    entries: int
    messages: int


def chain(view: Namespace, conversation: str) -> Iterator[Sealed]:
    """The whole chain, page by page."""
    after = 0
    while page := view.entries(conversation, after=after, limit=PAGE):
        yield from page
        after += len(page)


def verified(view: Namespace, conversation: str, key: bytes = b"") -> Verified:
    """Hold everything that is stored of a conversation against its head (T10): every entry, every checkpoint, every
    message. Entries that are written meanwhile are left to the next time.

    Raises:
        Tampered: at the first broken place.
        JournalUnavailable: there is none, or it can't be read.
    """
    held = view.head(conversation)
    authentic(held, key)
    state, place, previous = State(), 0, GENESIS
    newest: tuple[int, Digest] | None = None
    present: list[int] = []
    retired: dict[int, int] = {}
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
        if isinstance(entry, Transcribed):
            if not 0 <= entry.keep <= len(present) or entry.place != state.places + 1:
                raise Tampered(place, "changes another transcript than the one before it")
            retired.update(dict.fromkeys(present[entry.keep :], place))
            present[entry.keep :] = range(entry.place, entry.place + len(entry.contents))
        state, previous = apply(state, entry), link.digest
    if place < held.sequence:
        raise Tampered(place + 1, f"is missing: the head names {held.sequence} entries")
    if previous != held.digest or tuple(sorted(state.exposure)) != held.labels:
        raise Tampered(place, "is not the entry that the head names")
    _beside(view, conversation, newest)
    found = _messages(view, conversation, state, retired, held.sequence)
    view.state(conversation)  # what a store finds by itself, such as a label version that is not that of the entries
    return Verified(held, place, found)


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


def _messages(view: Namespace, conversation: str, state: State, retired: dict[int, int], until: int) -> int:
    """Every message that the entries name is there, is what they say, and is in the transcript or not as they say; or
    was erased on record. There is no other one."""
    place = 0
    while page := view.messages_ever(conversation, after=place, limit=PAGE):
        for one in page:
            place += 1
            if place > state.places and one.entry > until:
                return state.places  # written since
            if one.place != place:
                raise Tampered(one.entry, f"message {place} is missing")
            if place > state.places:
                raise Tampered(one.entry, f"message {place} was never stored: there are {state.places}")
            now = one.retired if one.retired <= until else 0
            if now != retired.get(place, 0):
                raise Tampered(one.entry, f"message {place} is in the transcript, or is not, against what entries say")
    if place < state.places:
        raise Tampered(0, f"message {place + 1} is missing")
    return place


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


def reaches(view: Namespace, kept: Any, key: bytes = b"") -> None:
    """Is what a head said, that was kept somewhere else, still so? A shorter chain and another past are found.

    Raises:
        Tampered: it is not, or the head is none, or is not signed with this key.
        JournalUnavailable: the conversation is gone, or can't be read.
    """
    conversation, head = _read(kept, view.name, key)
    found = view.entries(conversation, after=head.sequence - 1, limit=1)
    if not found:
        now = view.head(conversation).sequence
        raise Tampered(now + 1, f"is missing: a head that was kept names {head.sequence} entries")
    if found[0].digest != head.digest:
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
