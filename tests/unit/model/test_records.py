"""Proves T10 and T16 of single records: any record reads back as it was written, and nothing else reads as a record.

Mutations that this file catches: NUL or lone surrogates changed on the way; unknown covers read as none; a line taken
in another form than the one written; labels of an entry left out of those that a lost line keeps.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Message
from interlock.errors import Refused, Tampered
from interlock.model import records
from interlock.model.chain import GENESIS, seal
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, ChildJoined, ChildOpened, Decided, Failed, Observed, Opened, Resumed
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Image, Role, Text, ToolAnswer, ToolUse
from interlock.model.records import Change, Record, body_of, labels_in, line_of, read_line, salvaged
from tests.strategies import fewer

AT = "2026-11-29T12:00:00.000000Z"
WEB, MAIL, SHARE = Label("untrusted:web"), Label("private:mail"), Label("egress:share")

# Any text at all: NUL, lone surrogates, line breaks of every kind, private use.
texts = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["", "\0", "\ud800", "\udfff\ud800", "a\u2028b\u2029c\x85", "\r\n\n", "\ufeff", '"\\', "\U0010ffff", "é", "é"]
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
blocks = (
    st.builds(Text, texts)
    | st.builds(ToolUse, texts, texts, plain, texts)
    | st.builds(ToolAnswer, texts, texts, st.booleans())
    | st.builds(Image, texts, st.binary(max_size=8))
)
messages = st.builds(Message, st.sampled_from(Role), st.lists(blocks, max_size=3).map(tuple))
covers = st.none() | st.sets(st.sampled_from([WEB, MAIL, SHARE])).map(lambda found: tuple(sorted(found)))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    pairs = draw(st.lists(st.tuples(messages, covers), max_size=3))
    return Change(draw(st.integers(0, 2**40)), tuple(one for one, _ in pairs), tuple(cover for _, cover in pairs))


ENTRIES = [
    Opened(AT, "c-1", labels=(WEB,)),
    Admitted(AT, "notes", (MAIL,), NO_DIGEST, 3),
    Decided(AT, 1, "a", "", "t", NO_DIGEST, "allow", ("c",), 1, private=(MAIL,), untrusted=(WEB,), opens=(SHARE,)),
    Observed(AT, 1, True, NO_DIGEST, 3, (WEB,)),
    Failed(AT, 1, True, "TimeoutError", (MAIL,), doubt=True),
    Resumed(AT, "loaded", (SHARE,)),
    ChildOpened(AT, "c-2", (MAIL,)),
    ChildJoined(AT, "c-2", (WEB,)),
]
a_record = st.builds(
    Record,
    st.lists(st.sampled_from(ENTRIES), max_size=3).map(tuple),
    st.lists(changes(), max_size=2).map(tuple),
    st.sets(st.sampled_from([WEB, MAIL, SHARE])).map(lambda found: tuple(sorted(found))),
)


def line(record: Record, place: int = 1) -> bytes:
    return line_of(seal(place, GENESIS, body_of(record)))


def with_use(arguments: Any) -> Record:
    return Record((), (Change(0, (Message.assistant("", ToolUse("a", "t", arguments)),), ((),)),))


@given(a_record, st.integers(1, 2**40))
def test_t16_every_record_reads_back_as_it_was_written(record: Record, place: int) -> None:
    sealed, read = read_line(line(record, place), place)
    assert read == record
    assert sealed == seal(place, GENESIS, body_of(record))
    assert b"\n" not in line(record, place)


@pytest.mark.parametrize(
    "arguments",
    [
        math.nan,
        math.inf,
        {"x": [math.nan, -math.inf]},
        -0.0,
        1e308,
        10**400,
        {1: "a", "1": "b", None: "c"},
        {10: "a", 9: "b"},
        (1, (2, 3)),
        {"bytes": b"\xff"},
        {"set": {1}},
        object,
        "\ud800",
    ],
)
def test_arguments_that_no_provider_writes_are_written_once_and_for_all(arguments: Any) -> None:
    """What they become is up to us; but that is read back, and is written the same way again."""
    first = line(with_use(arguments))
    _, read = read_line(first, 1)
    assert line(read) == first


@fewer(2)
@given(a_record, st.data())
def test_t10_another_spelling_of_the_same_json_is_no_record(record: Record, data: st.DataObject) -> None:
    good = line(record)
    value = json.loads(good)
    spellings = [
        json.dumps(value).encode(),
        json.dumps(value, separators=(",", ":"), sort_keys=False, ensure_ascii=True).encode() + b" ",
        b" " + good,
        good + b"\r",
        good.replace(b'"sequence":1', b'"sequence":1,"sequence":1'),
        good[:-1] + b',"x":1}',
    ]
    bad = data.draw(st.sampled_from(spellings))
    if bad != good:
        with pytest.raises(Tampered):
            read_line(bad, 1)


@given(st.binary(max_size=40) | plain.map(lambda value: json.dumps(value).encode()))
def test_t10_any_bytes_are_a_record_or_tampered(data: bytes) -> None:
    with pytest.raises(Tampered) as raised:
        read_line(data, 7)
    assert raised.value.sequence == 7


BROKEN: dict[str, Any] = {
    "keep": {"keep": True, "messages": []},
    "negative": {"keep": -1, "messages": []},
    "more keys": {"keep": 0, "messages": [], "x": 1},
    "role": {"keep": 0, "messages": [{"role": "boss", "blocks": [], "labels": []}]},
    "label": {"keep": 0, "messages": [{"role": "user", "blocks": [], "labels": ["untrusted:Web"]}]},
    "no labels": {"keep": 0, "messages": [{"role": "user", "blocks": []}]},
    "text": {"keep": 0, "messages": [{"role": "user", "blocks": [{"text": 1}], "labels": []}]},
    "unknown block": {"keep": 0, "messages": [{"role": "user", "blocks": [{"video": "x"}], "labels": []}]},
    "is_error": {
        "keep": 0,
        "messages": [{"role": "tool", "blocks": [{"answers": "a", "text": "", "is_error": 1}], "labels": []}],
    },
    "base64": {
        "keep": 0,
        "messages": [{"role": "user", "blocks": [{"image": "image/png", "payload": "A=="}], "labels": []}],
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_t10_what_is_no_change_is_tampered(name: str) -> None:
    body = json.dumps({"changes": [BROKEN[name]], "entries": [], "labels": []}, sort_keys=True, separators=(",", ":"))
    with pytest.raises(Tampered):
        read_line(line_of(seal(1, GENESIS, body.encode())), 1)
    assert salvaged([line_of(seal(1, GENESIS, body.encode()))]) == ()


@pytest.mark.parametrize("number", range(len(ENTRIES)))
def test_t2_a_lost_line_keeps_the_labels_of_every_kind_of_entry(number: int) -> None:
    entry = ENTRIES[number]
    names = ("labels", "private", "untrusted", "opens")
    expected = {one for name in names for one in getattr(entry, name, ())}
    assert expected
    assert labels_in(line(Record((entry,)))) == expected
    assert labels_in(line(Record((entry,), labels=(Label("private:x"),)))) == expected | {"private:x"}


@given(st.binary(max_size=30))
def test_t2_a_lost_line_that_can_not_be_read_may_have_held_anything(data: bytes) -> None:
    assert labels_in(data) == set(EVERY_LEG)


def test_a_record_that_is_too_large_is_refused_and_one_line_that_is_too_long_is_tampered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MAX_LINE", 2000)
    small = Record((), (Change(0, (Message.user("x" * 1000),), ((),)),))
    assert read_line(line(small), 1)[1] == small
    with pytest.raises(Refused, match="more than a session file takes in one write"):
        body_of(Record((), (Change(0, (Message.user("x" * 2000),), ((),)),)))
    monkeypatch.setattr(records, "MAX_BYTES", 10)
    with pytest.raises(Tampered, match="longer than any record"):
        read_line(b" " * 3000, 1)


def test_unknown_covers_stay_unknown_and_empty_ones_stay_empty() -> None:
    record = Record((), (Change(0, (Message.user("a"), Message.user("b")), (None, ())),))
    assert read_line(line(record), 1)[1].changes[0].covers == (None, ())


def test_pixels_are_kept_whatever_they_are() -> None:
    every_byte = bytes(range(256)) * 3
    record = Record((), (Change(0, (Message.user("", Image("image/png", every_byte)),), (None,)),))
    assert base64.b64encode(every_byte) in line(record)
    assert read_line(line(record), 1)[1] == record


def test_salvaged_reads_what_it_can_of_damaged_lines() -> None:
    first = line(Record((), (Change(0, (Message.user("a"), Message.user("b")), ((), ())),)))
    rewritten = line(Record((), (Change(1, (Message.user("c"),), ((),)),)))
    noise = [b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"body":1}', b'{"body":{"changes":[{"keep":9}]}}']
    found = salvaged([*noise, first.replace(b"sha256", b"sha255"), *noise, rewritten, *noise])
    assert [one.text for one in found] == ["a", "c"]
