"""Proves who vouches for a destination: whole typed values and the address book, and nobody for what is unknown.

Mutations that this file catches: matching on substrings; a kind left out of the digest; unknown kinds that are vouched
for; text that was pasted and counts as typed.
"""

from __future__ import annotations

import pytest

from interlock import Conversation
from interlock.errors import SettingsError
from interlock.model.destinations import Destination, parse
from interlock.model.origins import MAX_TYPED, Origin, address_book, origin_of, typed_values, value_digest
from interlock.model.tools import Kind

BOB = value_digest(Kind.EMAIL, "bob@corp.example")
PAGE = value_digest(Kind.URL, "http://corp.example/a")
NOTE = value_digest(Kind.PATH, "notes/todo.txt")

TYPED = {
    "write to bob@corp.example": {BOB},
    "write to bob@corp.example.": {BOB},
    "(bob@corp.example), please": {BOB},
    "<bob@corp.example>": {BOB},
    "Bob <bob@corp.example>;": {BOB},
    "mailto:bob@corp.example": {BOB},
    "'bob@corp.example'": {BOB},
    "bob@CORP.example": {BOB},
    "read http://corp.example/a, then stop": {PAGE},
    "read http://corp.example/a!": {PAGE},
    "[a](http://corp.example/a)": set(),
    "change notes/todo.txt.": {NOTE},
    "change `notes/todo.txt`": {NOTE},
    "bob@corp.example http://corp.example/a notes/todo.txt": {BOB, PAGE, NOTE},
    "": set(),
    "nothing here": set(),
    "xbob@corp.example": {value_digest(Kind.EMAIL, "xbob@corp.example")},
    "http://corp.example/ab": {value_digest(Kind.URL, "http://corp.example/ab")},
    "http://corp.example/a_(b)": {value_digest(Kind.URL, "http://corp.example/a_(b)")},
    "http://corp.example/a@evil.example": {value_digest(Kind.URL, "http://corp.example/a@evil.example")},
    "https://corp.example@evil.example/": set(),
    "bob@corp.example\u200b": set(),
    "bob@corp.example,eve@evil.example": set(),
}


@pytest.mark.parametrize("text", TYPED, ids=ascii)
def test_whole_values_in_typed_text(text: str) -> None:
    assert set(typed_values(text)) == TYPED[text]


def test_no_more_than_a_thousand_values_are_remembered() -> None:
    text = " ".join(f"u{number}@corp.example" for number in range(MAX_TYPED + 100))
    found = typed_values(text)
    assert len(found) == MAX_TYPED
    assert value_digest(Kind.EMAIL, "u0@corp.example") in found


@pytest.mark.parametrize(
    ("kind", "value", "origin"),
    [
        (Kind.EMAIL, "bob@corp.example", Origin.USER),
        (Kind.EMAIL, "bob@CORP.example", Origin.USER),
        (Kind.EMAIL, "Bob@corp.example", Origin.UNSEEN),
        (Kind.EMAIL, "bob@corp.example.evil.example", Origin.UNSEEN),
        (Kind.EMAIL, "xbob@corp.example", Origin.UNSEEN),
        (Kind.EMAIL, "ops@corp.example", Origin.OPERATOR),
        (Kind.USER, "bob@corp.example", Origin.UNSEEN),
        (Kind.ID, "bob@corp.example", Origin.UNSEEN),
        (Kind.URL, "bob@corp.example", Origin.UNSEEN),
        (Kind.EMAIL, "bob", Origin.UNSEEN),
    ],
)
def test_only_the_whole_value_of_the_same_kind_is_vouched_for(kind: Kind, value: str, origin: Origin) -> None:
    operator = address_book({"email": ["ops@corp.example"]})
    assert origin_of(parse("to", kind, value), frozenset({BOB}), operator) is origin


def test_an_unknown_destination_is_vouched_for_by_nobody() -> None:
    everything = frozenset({value_digest(Kind.UNKNOWN, "x"), value_digest(Kind.UNKNOWN, "")})
    for value in ("x", ""):
        assert origin_of(Destination("to", Kind.UNKNOWN, value), everything, everything) is Origin.UNSEEN


def test_the_person_comes_before_the_operator() -> None:
    assert origin_of(parse("to", Kind.EMAIL, "bob@corp.example"), frozenset({BOB}), frozenset({BOB})) is Origin.USER


@pytest.mark.parametrize("entry", [{"email": ["bob"]}, {"url": ["corp.example"]}, {"path": ["../x"]}, {"id": [" x"]}])
def test_an_address_that_would_match_nothing_is_an_error(entry: dict[str, list[str]]) -> None:
    with pytest.raises(SettingsError):
        address_book(entry)


def test_only_what_was_typed_is_remembered() -> None:
    conversation = Conversation.new()
    conversation.say("bob@corp.example", pasted=True)
    assert not conversation.state.typed
    conversation.say("bob@corp.example")
    assert BOB in conversation.state.typed
