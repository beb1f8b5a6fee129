"""Proves that a destination has one normal form or none: what two readers could read differently is unknown.

Mutations that this file catches: matching by prefix; a URL whose user part counts as its host; an empty list of
destinations that grounds; numbers that are no longer unclassified.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Manifest
from interlock.model.destinations import MAX_DESTINATIONS, Destination, find, normalised, parse, unclassified, voice_of
from interlock.model.origins import value_digest
from interlock.model.tools import Kind, ToolId, ToolSpec
from tests.strategies import arguments, json_values, specs, texts


def spec_of(**entry: Any) -> ToolSpec:
    whole = {"returns": [], "egress": "chosen", **entry}
    return Manifest.parse({"version": 1, "tools": {"x": whole}}).spec(ToolId("", "x"))


URLS = {
    "http://corp.example": "http://corp.example/",
    "http://corp.example/": "http://corp.example/",
    "HTTP://Corp.Example/Path": "http://corp.example/Path",
    "https://corp.example:443/": "https://corp.example/",
    "https://corp.example:8443/a?b=c#d": "https://corp.example:8443/a?b=c#d",
    "http://corp.example./x": "http://corp.example/x",
    "http://xn--bcher-kva.example/": "http://xn--bcher-kva.example/",
}
NO_URLS = [
    "",
    "corp.example",
    "//corp.example/",
    "ftp://corp.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/plain,x",
    "http://",
    "http:///x",
    "http:corp.example",
    "http:/corp.example",
    "https://corp.example@evil.example/",
    "https://corp.example:pw@evil.example/",
    "https://@evil.example/",
    "http://evil.example\\@corp.example/",
    "http:\\\\corp.example",
    "http://corp.example /",
    " http://corp.example/",
    "http://corp.example/ ",
    "http://corp.example\t/",
    "http://corp\n.example/",
    "http://corp.example\0/",
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://corp.example:99999/",
    "http://corp.example:/",
    "http://corp.example:8a/",
    "http://c\u043erp.example/",
    "http://corp\u3002example/",
    "http://corp.ex%61mple/",
    "http://corp.example%2f@evil.example/",
    "http://corp.example\u200b/",
    "http://-corp.example/",
    "http://corp..example:80:80/",
    "http://corp.example/a/../b",
    "http://corp.example/%2e%2e/b",
    "http://" + "a" * 8200 + ".example/",
]


@pytest.mark.parametrize("text", URLS)
def test_urls(text: str) -> None:
    assert normalised(Kind.URL, text) == URLS[text]
    assert normalised(Kind.URL, URLS[text]) == URLS[text]


@pytest.mark.parametrize("text", NO_URLS, ids=lambda text: ascii(text)[:40])
def test_no_urls(text: str) -> None:
    assert normalised(Kind.URL, text) is None


EMAILS = {
    "bob@corp.example": "bob@corp.example",
    "Bob@corp.example": "Bob@corp.example",
    "bob@CORP.Example": "bob@corp.example",
    "bob+tag@corp.example": "bob+tag@corp.example",
    "bob@corp.local": "bob@corp.local",
}
NO_EMAILS = [
    "",
    "bob",
    "bob@",
    "@corp.example",
    "bob@corp.example ",
    "bob @corp.example",
    "Bob <bob@corp.example>",
    "bob@corp.example,eve@evil.example",
    "bob@corp.example;eve@evil.example",
    "bob@corp.example\nBcc: eve@evil.example",
    "bob@corp.example?cc=eve@evil.example",
    "bob@c\u043erp.example",
    "bob@corp\u3002example",
    "b\u043eb@corp.example",
    "bob@[127.0.0.1]",
    '"bob@corp.example"@evil.example',
    "bob@corp.example@evil.example",
    "bob@corp.example\0",
    "bob@corp..example",
    "mailto:bob@corp.example",
]


@pytest.mark.parametrize("text", EMAILS)
def test_emails(text: str) -> None:
    assert normalised(Kind.EMAIL, text) == EMAILS[text]


@pytest.mark.parametrize("text", NO_EMAILS, ids=ascii)
def test_no_emails(text: str) -> None:
    assert normalised(Kind.EMAIL, text) is None


PATHS = {"notes/todo.txt": "notes/todo.txt", "./a": "a", "a//b/": "a/b", "//a": "/a", "/": "/", ".": ".", "~/x": "~/x"}
NO_PATHS = ["", "..", "../x", "a/../b", "a/..", "a\\b", "a\nb", "a\0b", "a\u202eb"]


@pytest.mark.parametrize("text", PATHS)
def test_paths(text: str) -> None:
    assert normalised(Kind.PATH, text) == PATHS[text]


@pytest.mark.parametrize("text", NO_PATHS, ids=ascii)
def test_no_paths(text: str) -> None:
    assert normalised(Kind.PATH, text) is None


OPAQUE = [Kind.ACCOUNT, Kind.PHONE, Kind.CHANNEL, Kind.USER, Kind.ID, Kind.NAME]


@pytest.mark.parametrize("kind", OPAQUE)
def test_opaque_kinds_are_compared_as_they_are(kind: Kind) -> None:
    for text in ("#general", "DE00 1234", "x", "\u00e9"):
        assert normalised(kind, text) == text
    for text in (" x", "x ", "", "a\nb", "a\u200bb"):
        assert normalised(kind, text) is None


@given(kind=st.sampled_from(list(Kind)), text=texts(20))
def test_a_normal_form_is_its_own_normal_form(kind: Kind, text: str) -> None:
    normal = normalised(kind, text)
    if normal is not None:
        assert normalised(kind, normal) == normal
        assert kind is not Kind.UNKNOWN


@given(kind=st.sampled_from(list(Kind)), value=json_values())
def test_anything_that_is_no_text_is_unknown(kind: Kind, value: Any) -> None:
    found = parse("to", kind, value)
    assert found.kind in (kind, Kind.UNKNOWN)
    if not isinstance(value, str):
        # Ids and accounts are often plain numbers.
        numbered = type(value) in (int, float) and kind in (Kind.ID, Kind.ACCOUNT, Kind.AMOUNT)
        assert (found.kind is Kind.UNKNOWN) != numbered
    if found.kind is Kind.UNKNOWN:
        assert found.voice == ""


@given(spec=specs(), given_arguments=arguments())
def test_a_sending_call_always_has_a_destination(spec: ToolSpec, given_arguments: dict[str, Any]) -> None:
    found = find(spec, given_arguments)
    assert found or spec.egress.value == "none"
    declared = dict(spec.destinations)
    for one in found:
        assert one.kind in (declared.get(one.argument, Kind.UNKNOWN), Kind.UNKNOWN)


@pytest.mark.parametrize("nobody", [None, "", [], "absent"])
def test_a_sending_call_that_names_nobody_goes_to_an_unknown(nobody: Any) -> None:
    spec = spec_of(destinations={"to": "email"})
    given_arguments = {} if nobody == "absent" else {"to": nobody}
    assert find(spec, given_arguments) == (Destination("", Kind.UNKNOWN, ""),)
    assert find(spec_of(egress="none", destinations={"to": "email"}), given_arguments) == ()


@pytest.mark.parametrize("hole", [None, "", [], 7, {"to": "x"}, ["x"], False])
def test_one_receiver_in_a_list_that_is_none_is_unknown(hole: Any) -> None:
    spec = spec_of(destinations={"to": "email"})
    found = find(spec, {"to": ["bob@corp.example", hole]})
    assert [one.kind for one in found] == [Kind.EMAIL, Kind.UNKNOWN]


def test_too_many_receivers_are_unknown() -> None:
    spec = spec_of(destinations={"to": "email"})
    many = [f"u{number}@corp.example" for number in range(MAX_DESTINATIONS + 50)]
    assert len(find(spec, {"to": many[:MAX_DESTINATIONS]})) == MAX_DESTINATIONS
    found = find(spec, {"to": many})
    assert len(found) == MAX_DESTINATIONS + 1
    assert found[-1].kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ("x", True),
        ("", False),
        (0, True),
        (12345, True),
        (1.5, True),
        (True, False),
        (False, False),
        (None, False),
        ([], False),
        ([""], False),
        ([None, ["x"]], True),
        ([7], True),
        ({}, False),
        ({"a": None}, True),
        ([{}], False),
    ],
    ids=ascii,
)
def test_what_counts_as_smuggled(value: Any, counts: bool) -> None:
    spec = spec_of(destinations={"to": "email"}, content=["body"])
    given_arguments = {"to": "x", "body": "x", "header": value}
    assert unclassified(spec, given_arguments) == (("header",) if counts else ())
    assert unclassified(spec_of(egress="none"), given_arguments) == ()


def test_who_speaks_from_where() -> None:
    assert normalised(Kind.UNKNOWN, "bob@corp.example") is None
    assert voice_of(Kind.URL, "http://evil.example/x") == "evil.example"
    assert voice_of(Kind.EMAIL, "bob@evil.example") == "evil.example"
    assert voice_of(Kind.CHANNEL, "#general") == "channel:#general"
    assert len({value_digest(kind, "x") for kind in Kind}) == len(Kind)
