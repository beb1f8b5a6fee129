"""Proves what counts as a link in a payload: what programs make one of, and accounts; and what does not.

Mutations that this file catches: only `http` counts as a scheme; a wide or invisible character hides a link; the text
behind a long list is not looked at.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Manifest
from interlock.model.links import MAX_LINKS, in_text, links
from interlock.model.tools import Kind, ToolId, ToolSpec

FOUND: dict[str, list[tuple[str, str]]] = {
    "see https://evil.test/a?b=c.": [("url", "https://evil.test/a?b=c")],
    "HTTPS://Evil.test/A": [("url", "https://evil.test/A")],
    "[log in](https://evil.test/login)": [("url", "https://evil.test/login")],
    '<img src="https://evil.test/x.png">': [("url", "https://evil.test/x.png")],
    "![a][r]\n[r]: https://evil.test/x": [("url", "https://evil.test/x")],
    "<https://evil.test/>": [("url", "https://evil.test/")],
    "www.evil.com": [("url", "http://www.evil.com/")],
    "go to evil.com/login now": [("url", "http://evil.com/login")],
    "evil.com": [("domain", "evil.com")],
    "evil.co.uk!": [("domain", "evil.co.uk")],
    "(evil.com)": [("domain", "evil.com")],
    "mail eve@evil.test, please": [("email", "eve@evil.test")],
    "mailto:eve@evil.test": [("email", "eve@evil.test")],
    "ftp://evil.test/x": [("unknown", "ftp://evil.test/x")],
    "http://127.0.0.1/x": [("unknown", "http://127.0.0.1/x")],
    "https://corp.example@evil.test/": [("unknown", "https://corp.example@evil.test/")],
    "pay DE89 3704 0044 0532 0130 00 today": [("account", "DE89370400440532013000")],
    "IBAN US133000000121212121212": [("account", "US133000000121212121212")],
    "0x52908400098527886E0F7030069857D2E4169EE7": [("account", "0X52908400098527886E0F7030069857D2E4169EE7")],
    "\uff45\uff56\uff49\uff4c.com": [("domain", "evil.com")],
    "ev\u200bil.com": [("domain", "evil.com")],
    "evil\u3002com": [("domain", "evil.com")],
    "https://evil.test/@user/a@b.c": [("url", "https://evil.test/@user/a@b.c")],
    "a,eve@evil.test,https://evil.test/": [("email", "eve@evil.test"), ("url", "https://evil.test/")],
    "to/eve@evil.test": [("email", "eve@evil.test")],
    "https://evil.test/a and https://evil.test/b": [("url", "https://evil.test/a"), ("url", "https://evil.test/b")],
}
NOT_FOUND = [
    "",
    "Hello Bob, see you at 10.30 in room 3.",
    "notes.md and setup.py, then a.zip",
    "e.g. this, i.e. that",
    "version 1.2.3",
    "file.txt",
    "bob@home",
    "3.14 and 1,200.50",
    "12345",
    "stranger dot com",
]


@pytest.mark.parametrize("text", FOUND, ids=ascii)
def test_links(text: str) -> None:
    assert [
        (one.kind.value, one.value.upper() if one.value.startswith("0x") else one.value) for one in in_text(text)
    ] == [(kind, value.upper() if value.startswith("0x") else value) for kind, value in FOUND[text]]


@pytest.mark.parametrize("text", NOT_FOUND, ids=ascii)
def test_no_links(text: str) -> None:
    assert list(in_text(text)) == []


def spec_of(**entry: Any) -> ToolSpec:
    whole = {"returns": [], "egress": "chosen", "content": ["body", "parts.text"], **entry}
    return Manifest.parse({"version": 1, "tools": {"x": whole}}).spec(ToolId("", "x"))


def test_every_part_of_the_payload_is_looked_at() -> None:
    value = {
        "body": {"https://evil.test/key": [1, None, "https://evil.test/value"]},
        "parts": [{"text": "evil.com"}, {"other": "https://evil.test/not-payload"}],
    }
    found = [one.value for one in links(spec_of(), value)]
    assert found == ["https://evil.test/key", "https://evil.test/value", "evil.com"]
    assert links(spec_of(egress="none"), value) == ()
    assert len(links(spec_of(egress="none", audience="self"), value)) == 3


def test_too_many_links_are_unknown() -> None:
    body = " ".join(f"https://evil.test/{number}" for number in range(MAX_LINKS + 10))
    found = links(spec_of(), {"body": body})
    assert len(found) == MAX_LINKS + 1
    assert found[-1].kind is Kind.UNKNOWN


@given(text=st.text(max_size=40), link=st.sampled_from(["https://evil.test/a", "www.evil.com", "eve@evil.test"]))
def test_a_link_between_spaces_is_always_found(text: str, link: str) -> None:
    assert any(one.value.rstrip("/").endswith(link.removeprefix("www.")) for one in in_text(f"{text} {link} {text}"))


LONG = ["a", "a.", "a@", "@", "a:", "a-", "www.", "1", "a1", "DE89 ", "://", "\u3042", "a@b.", ".", "x@y.z,", "[]("]


@pytest.mark.parametrize("piece", LONG, ids=ascii)
def test_a_long_payload_does_not_cost_its_square(piece: str) -> None:
    """Not timed: with the square of a megabyte this test would not end."""
    text = piece * ((1 << 18) // len(piece))
    list(in_text(f"x.{text}"))
    list(in_text(f"{text} end."))
