"""Proves T1 and T12 of what stored things carry: a join that loses nothing, bytes that come back as they were, and that
whatever is not exactly a record is every leg; and of artifacts, that a label reaches what it concerns.

Mutations that this file catches: a join that keeps one side's `heard`; a record that is read though a key is missing; a
bound that drops labels; an ancestor that is not looked up; a path that is compared by its beginning.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import Refused
from interlock.model import carried as values
from interlock.model.artifacts import above, below, concerns, folder_of_pattern, is_lost, key, places, to_write
from interlock.model.canonical import pack
from interlock.model.carried import CLEAN, LOST, Carried, admissions, decode, joined, written_by
from interlock.model.digests import digest
from interlock.model.entries import Opened
from interlock.model.facts import Selection, fact_of, ranked, words_of
from interlock.model.labels import EVERY_LEG, Label, Source, Taint
from interlock.model.state import State, apply
from tests.strategies import json_values, label_tuples, texts

AT = "2026-11-29T12:00:00.000000Z"
voices = st.lists(st.integers(0, 5).map(lambda n: digest("voice", b"%d" % n)), max_size=3).map(tuple)


@st.composite
def carried(draw: st.DrawFn) -> Carried:
    labels = draw(label_tuples(max_size=4))
    notes = tuple((one, draw(texts(6))) for one in labels if draw(st.booleans()))
    return Carried(labels, notes, draw(voices), draw(st.booleans()))


def covers(one: Carried, other: Carried) -> bool:
    """Is everything of the one in the other?"""
    return (
        set(one.labels) <= set(other.labels)
        and set(one.notes) <= set(other.notes)
        and set(one.voices) <= set(other.voices)
        and one.heard >= other.heard
    )


@given(one=carried(), other=carried(), third=carried())
def test_t1_t12_the_join_loses_nothing(one: Carried, other: Carried, third: Carried) -> None:
    both = one.join(other)
    assert covers(one, both)
    assert covers(other, both)
    assert both == other.join(one)
    assert both.join(third) == one.join(other.join(third)) == joined([third, one, other])
    assert one.join(one) == one == one.join(CLEAN)


@given(one=carried())
def test_what_is_stored_comes_back(one: Carried) -> None:
    assert decode(one.encode()) == one


@given(value=json_values() | carried().map(lambda one: one.labels))
def test_t12_whatever_is_no_record_is_every_leg(value: Any) -> None:
    assert decode(pack(value)) == LOST
    assert set(EVERY_LEG) == set(LOST.labels)
    assert not LOST.heard


@given(one=carried(), cut=st.integers(0, 200), more=st.binary(min_size=1, max_size=3))
def test_t12_a_record_that_was_cut_or_grew_is_every_leg(one: Carried, cut: int, more: bytes) -> None:
    body = one.encode()
    for wrong in (body[: cut % len(body)], body + more, more + body, None, b"null"):
        assert decode(wrong) == LOST


@pytest.mark.parametrize("wrong", ["no label", "trusted:x", "", "untrusted:", 3, None])
def test_no_label_is_carried_that_is_none(wrong: Any) -> None:
    with pytest.raises(Refused):
        Carried((wrong,))


def test_bounds_fall_to_the_strict_side() -> None:
    many = Carried(tuple(Label(f"private:p{n}") for n in range(values.MAX_LABELS + 1)))
    assert many.labels == ("private:unknown",)
    loud = Carried(voices=tuple(digest("voice", b"%d" % n) for n in range(values.MAX_VOICES + 1)))
    assert not loud.heard


@given(one=carried(), name=texts(4), text=st.none() | texts(5))
def test_t12_what_enters_joins_with_all_that_it_carries(one: Carried, name: str, text: str | None) -> None:
    state = apply(State(), Opened(AT, "c-1"))
    for entry in admissions(one, AT, name, text):
        assert entry.source.isprintable()
        state = apply(state, entry)
    assert state.taint.labels == set(one.labels)
    if one.untrusted:
        assert state.deafening or (one.heard and set(one.voices) <= state.voices)


@given(labels=label_tuples(max_size=3).filter(bool), call=st.integers(0, 3), pages=st.booleans())
def test_what_a_conversation_writes_carries_its_exposure_and_says_from_where(
    labels: tuple[Label, ...], call: int, pages: bool
) -> None:
    taint = Taint.of(labels, Source(AT, call, "fetch"))
    found = written_by("c-1", taint, (), True, {call: "https://a.example/"} if pages else {})
    assert found.labels == tuple(sorted(labels))
    assert not found.heard
    for _, note in found.notes:
        assert note.endswith("fetch of c-1)" if pages and call else "fetch of c-1")
        assert ("https://a.example/" in note) == bool(pages and call)
    again = written_by("c-2", Taint.of(labels, Source(AT, 0, found.notes[0][1])), (), False)
    assert again.notes[0][1] == found.notes[0][1]  # a note stays what it is, however far it travels


# --- artifacts --------------------------------------------------------------------------------------------------------

names = st.lists(st.sampled_from(["a", "b", "ab", "a b", "ü"]), max_size=4).map(
    lambda parts: "path:/" + "/".join(parts)
)


def within(inner: str, outer: str) -> bool:
    """The model's own idea: by parts."""
    parts = [one.removeprefix("path:").strip("/").split("/") if len(one) > 6 else [] for one in (inner, outer)]
    return parts[0][: len(parts[1])] == parts[1]


@given(written=names, read=names)
def test_t12_a_label_reaches_what_lies_in_it_and_what_it_lies_in(written: str, read: str) -> None:
    assert concerns(written, read) == (within(written, read) or within(read, written))
    assert concerns("path:*", read)
    assert concerns(written, "path:*")
    assert not concerns(written.replace("path:", "key:", 1), read)
    assert written in above(written)
    assert all(within(written, one) for one in above(written) if not one.endswith("*"))
    inside = below(read)
    assert written.startswith(inside) == (within(written, read) and written != read) or read == written


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("path", "/a//b/./c", "path:/a/b/c"),
        ("path", "//a", "path:/a"),
        ("path", "a/../b", "path:?"),
        ("path", "a\\b", "path:?"),
        ("url", "HTTPS://A.example:443/x?y#z", "url:https://a.example/x"),
        ("url", "nonsense", "url:?"),
        ("url", "http://A.example/%58y/", "url:https://a.example/xy/"),
        ("table", ' "Public"."Notes" ', "table:notes"),
        ("table", "`my project.Data.Notes`", "table:notes"),
        ("table", "''", "table:?"),
        ("table", "notes n", "table:?"),
        ("table", "notes--", "table:?"),
        ("table", "notes#", "table:?"),
        ("table", "notes\n", "table:notes"),
        ("table", 'a"b', "table:?"),
        ("table", "e\u0301" * 31, "table:?"),
        ("table", "x" * 64, "table:?"),
        ("path", "a", "path:?"),
        ("path", "~/a", "path:?"),
        ("path", "/A/\u212b", "path:/a/\u00e5"),
        ("path", "file:///a", "path:?"),
        ("key", " Exactly ", "key: Exactly "),
        ("key", "*", "key:*"),
        ("key", "x" * 5000, "key:?"),
    ],
)
def test_keys(kind: str, text: str, wanted: str) -> None:
    assert key(kind, text) == wanted
    assert is_lost(wanted) == wanted.endswith("?")


def test_a_path_is_where_it_leads() -> None:
    assert key("path", "a/../b", "/srv/b") == "path:/srv/b"
    assert key("path", "File:///srv/b", "/srv/File:/srv/b") == "path:?"  # an address to some tools


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("notes.txt", ""),
        ("a/*.txt", "a"),
        ("a/b[1]/c", "a"),
        ("/?", "/"),
        ("{a,b}", "."),
        ("a/b/**/c*", "a/b"),
    ],
)
def test_t12_a_pattern_reads_its_folder(text: str, wanted: str) -> None:
    assert folder_of_pattern(text) == wanted


@pytest.mark.parametrize(
    ("path", "arguments", "wanted"),
    [
        ("file.path", {"file": {"path": "a"}}, ["a"]),
        ("file.path", {"file.path": "a"}, ["a"]),
        ("file.path", {"file.path": "a", "file": {"path": "b"}}, ["a", "b"]),
        ("file.path", {"file": {}}, ["?"]),
        ("file.path", {"file": "a"}, ["?"]),
        ("file.path", {}, ["?"]),
        ("edits.path", {"edits": [{"path": "a"}, {"path": ["b", "c"]}]}, ["a", "b", "c"]),
        ("edits.path", {"edits": [{"path": "a"}, {"text": "b"}]}, ["a", "?"]),
        ("edits.path", {"edits": []}, ["?"]),
        ("files.*", {"files": {"x": "a", "y": "b"}}, ["a", "b"]),
        ("files.*", {"files": {}}, ["?"]),
        ("path", {"path": ["a", ["b"]]}, ["a", "?"]),
        ("path", {"path": []}, ["?"]),
    ],
)
def test_t12_a_path_of_keys_names_what_stands_there(path: str, arguments: dict[str, Any], wanted: list[str]) -> None:
    assert [text for _, text in places(((path, "key"),), arguments)] == wanted


@given(value=json_values())
def test_t12_what_names_nothing_is_everything_when_written_and_lost_when_read(value: Any) -> None:
    found = places((("path", "path"),), {"path": value})
    assert found
    named = value if isinstance(value, list) else [value]
    good = [one for one in named if isinstance(one, str) and one and one not in ("*", "?")]
    keys = [key(*one) for one in found]
    if len(good) < len(named) or not named:
        assert any(map(is_lost, keys))
        assert "path:*" in to_write(keys)
    assert not any(map(is_lost, to_write(keys)))


def test_too_many_artifacts_are_any_of_their_kind() -> None:
    found = places((("path", "path"),), {"path": [f"f{n}" for n in range(100)]})
    assert found == (("path", "?"),)
    assert places((("*", "path"), ("x", "key")), {"x": ["a", "a"]}) == (("path", "*"), ("key", "a"))


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "x"),
        ("a\n", "x"),
        ("x" * 129, "x"),
        ("m", ""),
        ("m", " "),
        ("m", "x" * 8193),
        ("m", "a\0"),
        ("m", "\ud800"),
    ],
)
def test_what_is_no_fact(name: str, text: str) -> None:
    with pytest.raises(Refused):
        fact_of(name, 1, AT, text, "c-1", (0, 0), CLEAN)


def test_nothing_that_is_named_selects_nothing() -> None:
    fact = fact_of("m", 1, AT, "text", "c-1", (0, 0), CLEAN)
    assert not Selection().takes(fact)
    assert not Selection(conversation="c-").takes(fact)
    assert not Selection(ids=("m",), conversation="c-2").takes(fact)
    assert Selection(ids=("m",), conversation="c-1", before="2027").takes(fact)
    assert Selection(everything=True).takes(fact)


@given(query=texts(30))
def test_a_query_is_words(query: str) -> None:
    words = words_of(query)
    assert all(word and not set(word) & set("\"'*:()&|!<>- \0") for word in words)
    fact = fact_of("m", 1, AT, f"x {query}", "c-1", (0, 0), CLEAN)
    assert ranked([fact], words, 9) == ((fact,) if words else ())
