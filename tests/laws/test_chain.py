"""Proves T10: whatever is done to a stored chain, at whatever place, is found at the first broken place.

Edited, removed, swapped, inserted, truncated, continued, another head, a head under another key; and that what was
sealed is read back as it was (`decode(encode(e)) == e`) or not at all.
Mutations that this file catches: digests without their domain; a link that leaves out its place or the one before it;
a head that is not compared; a lax `decode`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import MemoryJournal
from interlock.errors import Tampered
from interlock.model.chain import GENESIS, Head, Sealed, head, seal, verify
from interlock.model.digests import KINDS, Digest, digest
from interlock.model.entries import Entry, Opened, Typed, decode, encode
from interlock.model.labels import Label
from interlock.model.state import State, apply
from tests.strategies import entries, enumerating, json_values, label_tuples

KEY = b"the operator's key"
LABELS = (Label("private:mail"), Label("untrusted:web"))


def chain_of(bodies: list[bytes]) -> list[Sealed]:
    links: list[Sealed] = []
    previous = GENESIS
    for place, body in enumerate(bodies, 1):
        links.append(seal(place, previous, body))
        previous = links[-1].digest
    return links


def head_of(links: list[Sealed], key: bytes = b"") -> Head:
    return head(len(links), links[-1].digest if links else GENESIS, LABELS, key)


def broken_at(links: list[Sealed], held: Head, key: bytes = b"") -> int | None:
    """The first broken place; None when the chain holds."""
    try:
        verify(links, held, key)
    except Tampered as error:
        return error.sequence
    return None


def bodies() -> st.SearchStrategy[list[bytes]]:
    return st.lists(entries().map(encode), min_size=1, max_size=6)


KEYS = pytest.mark.parametrize("key", [b"", KEY], ids=["plain", "keyed"])


@KEYS
@given(found=bodies())
def test_t10_an_untouched_chain_holds(key: bytes, found: list[bytes]) -> None:
    links = chain_of(found)
    assert broken_at(links, head_of(links, key), key) is None
    assert broken_at([], head_of([], key), key) is None


@KEYS
@enumerating(3)
@given(found=bodies(), other=entries().map(encode))
def test_t10_every_change_at_every_place_is_found_there(key: bytes, found: list[bytes], other: bytes) -> None:
    links = chain_of(found)
    held = head_of(links, key)
    for place in range(1, len(links) + 1):
        before, one, after = links[: place - 1], links[place - 1], links[place:]
        # An edit of any field, of the body by one byte at any end, or of the whole entry with a fresh digest.
        for edited in (
            dataclasses.replace(one, body=one.body[:-1]),
            dataclasses.replace(one, body=one.body + b" "),
            dataclasses.replace(one, body=b"x" + one.body[1:]),
            dataclasses.replace(one, digest=digest("entry", b"other")),
            dataclasses.replace(one, digest=Digest(one.digest.upper())),
            dataclasses.replace(one, previous=digest("entry", b"other")),
            dataclasses.replace(one, sequence=one.sequence + 1),
            dataclasses.replace(one, sequence=0),
        ):
            assert broken_at([*before, edited, *after], held, key) == place, edited
        if other != one.body:
            fresh = seal(place, one.previous, other)
            # A resealed entry is found where the next one no longer follows, or at the head.
            assert broken_at([*before, fresh, *after], held, key) == min(place + 1, len(links))
        # Removed: the next stands in its place, or the end is missing.
        assert broken_at([*before, *after], held, key) == place
        # Inserted, doubled, and cut off.
        assert broken_at([*before, seal(place, one.previous, other), one, *after], held, key) in (place, place + 1)
        assert broken_at([*before, one, one, *after], held, key) == place + 1
        assert broken_at(links[: place - 1], held, key) == place
        for further in range(place + 1, len(links) + 1):
            swapped = list(links)
            swapped[place - 1], swapped[further - 1] = swapped[further - 1], swapped[place - 1]
            assert broken_at(swapped, held, key) == place


@KEYS
@given(found=bodies(), more=bodies())
def test_t10_a_chain_that_went_on_after_its_head_is_found(key: bytes, found: list[bytes], more: list[bytes]) -> None:
    longer = chain_of(found + more)
    held = head_of(longer[: len(found)], key)
    assert broken_at(longer, held, key) == len(found) + 1


@KEYS
@given(found=bodies(), other=bodies())
def test_t10_a_whole_chain_that_was_written_anew_is_found_at_its_head(
    key: bytes, found: list[bytes], other: list[bytes]
) -> None:
    forged, honest = chain_of(other), chain_of(found)
    place = broken_at(forged, head_of(honest, key), key)
    assert (place is None) == (found == other)
    if len(found) == len(other) and found != other:
        assert place == len(found)


@given(found=bodies(), labels=label_tuples(max_size=4))
def test_t10_a_head_under_another_key_is_found(found: list[bytes], labels: tuple[Label, ...]) -> None:
    links = chain_of(found)
    held = head_of(links, KEY)
    for key in (b"", b"another key", KEY + b"!"):
        assert broken_at(links, held, key) == len(links)
    assert broken_at(links, head_of(links), KEY) == len(links)
    # With a key no field of the head can be changed, its labels among them.
    for forged in (
        dataclasses.replace(held, labels=labels),
        dataclasses.replace(held, sequence=held.sequence - 1),
        dataclasses.replace(held, digest=links[0].previous),
        dataclasses.replace(held, mac=""),
        dataclasses.replace(held, mac=held.mac[:-1]),
        dataclasses.replace(held, mac=held.mac.upper() if held.mac.upper() != held.mac else "x"),
    ):
        if forged != held:
            assert broken_at(links, forged, KEY) is not None


@given(found=st.lists(entries(), max_size=6), key=st.sampled_from([b"", KEY]))
def test_t10_the_journal_in_memory_keeps_a_chain_that_holds(found: list[Entry], key: bytes) -> None:
    journal = MemoryJournal(key=key)
    opened = Opened("2026-11-29T12:00:00.000000Z", "c-1")
    journal.open([opened])
    for entry in found:
        journal.append("c-1", [entry])
        verify(journal.entries("c-1"), journal.head("c-1"), key)
    assert journal.head("c-1").labels == tuple(sorted(journal.state("c-1").taint))


# --- digests say what they are of -------------------------------------------------------------------------------------


@given(left=st.binary(max_size=40), right=st.binary(max_size=40))
def test_a_digest_of_one_kind_never_stands_for_another(left: bytes, right: bytes) -> None:
    found = {(kind, data): digest(kind, data) for kind in KINDS for data in (left, right)}
    assert len(set(found.values())) == len(found)
    assert all(len(one) == 71 and one.startswith("sha256:") for one in found.values())


def test_a_digest_of_an_unknown_kind_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        digest("grantt", b"")


@given(bodies=st.lists(st.binary(max_size=5), min_size=1, max_size=3), cut=st.integers(0, 5))
def test_a_link_keeps_its_parts_apart(bodies: list[bytes], cut: int) -> None:
    """Place, digest before and body: moving bytes from one to the next gives another digest."""
    assert seal(1, GENESIS, b"1x").digest != seal(11, GENESIS, b"x").digest
    one = seal(1, GENESIS, bodies[0])
    assert one.digest != seal(2, GENESIS, bodies[0]).digest
    assert one.digest != seal(1, one.digest, bodies[0]).digest
    assert one.digest != digest("entry", bodies[0])


# --- bodies -----------------------------------------------------------------------------------------------------------


@given(entry=entries())
def test_t11_an_entry_is_read_back_as_it_was(entry: Entry) -> None:
    body = encode(entry)
    again = decode(body)
    assert again == entry
    assert type(again) is type(entry)
    assert encode(again) == body
    assert hash(again) == hash(entry)


@given(entry=entries(), data=st.data())
def test_t10_a_body_that_was_changed_is_tampered_or_another_entry(entry: Entry, data: st.DataObject) -> None:
    body = bytearray(encode(entry))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    place, again = 7, None
    try:
        again = decode(bytes(body), place)
    except Tampered as error:
        place = error.sequence
    assert place == 7
    if again is None:
        return
    # What is still an entry is the canonical form of exactly that entry; the chain finds that it is another one.
    assert encode(again) == bytes(body)
    assert (again == entry) == (bytes(body) == encode(entry))


@given(entry=entries(), value=json_values(), data=st.data())
def test_t10_any_json_in_a_stored_entry_is_read_strictly(entry: Entry, value: Any, data: st.DataObject) -> None:
    whole = orjson.loads(encode(entry))
    key = data.draw(st.sampled_from([*sorted(whole), "new"]))
    action = data.draw(st.sampled_from(["set", "delete"]))
    if action == "delete":
        whole.pop(key, None)
    else:
        whole[key] = value
    body = orjson.dumps(whole)  # in the order of the entry's own fields, which is its canonical form
    if body == encode(entry):
        return
    try:
        again = decode(body)
    except Tampered:
        return
    assert encode(again) == body


WHOLE = encode(Typed("t", digest("content", b""), 1, (digest("value", b""),)))
CHANGED: dict[str, bytes] = {
    "nothing": b"",
    "no object": b"null",
    "empty object": b"{}",
    "empty array": b"[]",
    "a word": b'"typed"',
    "only a kind": b'{"kind":"typed"}',
    "no UTF-8": b"\xff\xfe",
    "deep": b"[" * 10_000,
    "cut": WHOLE[:-1],
    "doubled": WHOLE + WHOLE,
    "another kind": WHOLE.replace(b'"kind":"typed"', b'"kind":"opened"'),
    "unknown kind": WHOLE.replace(b'"kind":"typed"', b'"kind":"nothing_that_exists"'),
    "kind in other case": WHOLE.replace(b'"kind":"typed"', b'"kind":"Typed"'),
    "null kind": WHOLE.replace(b'"kind":"typed"', b'"kind":null'),
    "no kind": WHOLE.replace(b',"kind":"typed"', b""),
    "two kinds": WHOLE.replace(b'"kind":"typed"', b'"kind":"typed","kind":"typed"'),
    "NaN": WHOLE.replace(b'"length":1', b'"length":NaN'),
    "text for a number": WHOLE.replace(b'"length":1', b'"length":"1"'),
    "boolean for a number": WHOLE.replace(b'"length":1', b'"length":true'),
    "float for an integer": WHOLE.replace(b'"length":1', b'"length":1.0'),
    "another spelling of a number": WHOLE.replace(b'"length":1', b'"length":1e0'),
    "null for a number": WHOLE.replace(b'"length":1', b'"length":null'),
    "NUL": WHOLE.replace(b'"at":"t"', b'"at":"t\\u0000"'),
    "an escape that need not be": WHOLE.replace(b'"at":"t"', b'"at":"\\u0074"'),
    "lone surrogate": WHOLE.replace(b'"at":"t"', b'"at":"\\ud800"'),
    "one key more": WHOLE.replace(b'"kind"', b'"more":1,"kind"'),
    "a key left out": WHOLE.replace(b'"length":1,', b""),
    "a default left out": encode(Typed("t", digest("content", b""), 1)).replace(b'"values":[],', b""),
    "another order": b'{"kind":"typed",' + WHOLE[1:].replace(b',"kind":"typed"', b""),
    "a space before": b" " + WHOLE,
    "a space inside": WHOLE.replace(b'"length":1', b'"length": 1'),
    "a line break after": WHOLE + b"\n",
    "a byte order mark": b"\xef\xbb\xbf" + WHOLE,
}


@pytest.mark.parametrize("name", CHANGED)
def test_t10_what_is_no_canonical_entry_is_tampered(name: str) -> None:
    assert CHANGED[name] != WHOLE
    with pytest.raises(Tampered):
        decode(CHANGED[name])
    assert encode(decode(WHOLE)) == WHOLE


@given(found=st.lists(entries(), max_size=4))
def test_t11_what_was_written_can_be_folded(found: list[Entry]) -> None:
    straight = again = State()
    for entry in found:
        straight, again = apply(straight, entry), apply(again, decode(encode(entry)))
    assert straight == again
