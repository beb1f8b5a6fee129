"""Proves that a URL or a field of mail addresses that two readers take differently is unknown.

The readers are independent of ours and of each other: for URLs ada (WHATWG), the standard library and yarl; for mail
the standard library's two readers, a search for anything with an `@`, and email-validator. Wherever one of them sees
another host, another scheme or another set of addresses, the destination must be unknown.
Mutations that this file catches: user parts in an authority accepted; a comment in a mail field skipped; a group read
as its first member.
"""

from __future__ import annotations

import re
from email import policy
from email.headerregistry import HeaderRegistry
from email.utils import getaddresses
from urllib.parse import urlsplit

import ada_url
import pytest
import yarl
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.model.destinations import mail_addresses, normalised
from interlock.model.tools import Kind

HOSTS = [
    "corp.example",
    "evil.test",
    "CORP.example",
    "corp.example.",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "[::1]",
    "a",
]
GLUE = [
    "",
    "@",
    "\\",
    "/",
    "//",
    "#",
    "?",
    ":",
    ":80",
    ":443",
    ".",
    "..",
    "%40",
    "%2e",
    "%00",
    "\t",
    "\n",
    " ",
    ";",
    ",",
]
GLUE += [
    "\u3002",
    "\uff0f",
    "\u200b",
    "\u00ad",
    "&",
    "|",
    "<",
    ">",
    "^",
    "[",
    "]",
    "user:pw@",
    "\u0430",
    "xn--",
    "\x7f",
]


@st.composite
def urls(draw: st.DrawFn) -> str:
    """Pieces that parsers are known to disagree about, in any order."""
    scheme = draw(
        st.sampled_from(["http://", "https://", "HTTP://", "http:", "https:/", "http:\\\\", "//", "ftp://", ""])
    )
    some = st.sampled_from([*HOSTS, *GLUE, "path", "a=b", "www.corp.example"])
    return scheme + "".join(draw(st.lists(some, min_size=1, max_size=6)))


def seen_by_ada(text: str) -> tuple[str, str] | None:
    try:
        url = ada_url.URL(text)
    except ValueError:
        return None
    return url.protocol.rstrip(":"), url.hostname.rstrip(".").lower()


def seen_by_library(text: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(text)
        return parts.scheme, (parts.hostname or "").rstrip(".")
    except ValueError:
        return None


def seen_by_yarl(text: str) -> tuple[str, str] | None:
    try:
        url = yarl.URL(text)
        return url.scheme, (url.host or "").rstrip(".").lower()
    except ValueError:
        return None


@given(text=urls() | st.text(max_size=20))
@example("https://api.corp.example@evil.test/")
@example("https://api.corp.example\\@evil.test/")
@example("https://evil.test\\.api.corp.example/")
@example("http://corp.example#@evil.test/")
@example("http://evil.test?@corp.example/")
@example("http://corp.example:80@evil.test/")
def test_a_url_that_readers_take_differently_is_unknown(text: str) -> None:
    normal = normalised(Kind.URL, text)
    if normal is None:
        return
    written = text if "://" in text else f"http://{text}"
    readings = {seen_by_ada(written), seen_by_library(written), seen_by_yarl(written)}
    assert len(readings) == 1, "two readers see another place"
    # And they all see in the normal form what they see in the text.
    assert {seen_by_ada(normal), seen_by_library(normal), seen_by_yarl(normal)} == readings
    (place,) = readings
    assert place is not None
    assert re.fullmatch(r"[a-z0-9.-]+", place[1])
    assert not re.fullmatch(r"(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", place[1]), "a number in any spelling"


ADDRESSES = [
    "bob@corp.example",
    "eve@evil.test",
    "Bob@CORP.example",
    "b+t@corp.example",
    "bob",
    "@corp.example",
    "a@b@c.example",
]
BETWEEN = [
    ", ",
    ",",
    ";",
    " ",
    "\n",
    "\r\nBcc: ",
    "<",
    ">",
    '"',
    "(",
    ")",
    ":",
    "group: ",
    "\\",
    "@",
    "\u3002",
    "\t",
    "=?utf-8?q?",
]
BETWEEN += [
    "Bob ",
    "Bob, ",
    '"Bob" ',
    '"bob@corp.example" ',
    "(x)",
    "<bob@corp.example>",
    "%0aBcc:",
    "\u200b",
    "mailto:",
    "?cc=",
]


@st.composite
def fields(draw: st.DrawFn) -> str:
    return "".join(draw(st.lists(st.sampled_from([*ADDRESSES, *BETWEEN]), min_size=1, max_size=6)))


def bare(addresses: list[str]) -> set[str]:
    """With the domain in lower case, as ours are."""
    found = set()
    for one in addresses:
        local, _, domain = one.rpartition("@")
        found.add(f"{local}@{domain.lower()}")
    return found


@given(text=fields() | st.text(max_size=20) | st.emails())
@example('"kim@corp.example" <eve@evil.test>')
@example("kim@corp.example (eve@evil.test)")
@example("team: kim@corp.example;")
@example("kim@corp.example\nBcc: eve@evil.test")
@example('"kim@corp.example"@evil.test')
@example("Kim <kim@corp.example>, Eve <eve@evil.test>")
def test_a_mail_field_that_readers_take_differently_is_unknown(text: str) -> None:
    ours = mail_addresses(text)
    if ours is None:
        return
    assert bare([address for _, address in getaddresses([text])]) == set(ours)
    header = HeaderRegistry()("to", text)
    assert bare([one.addr_spec for one in header.addresses]) == set(ours)
    assert not any(group.display_name for group in header.groups if len(group.addresses) != 1)
    everything = re.findall(r"[^\s<>,;:\"()\[\]\\]*@[^\s<>,;:\"()\[\]\\]*", text)
    assert bare(everything) == set(ours)
    for one in ours:
        try:
            validate_email(f"{one}.example", check_deliverability=False)
        except EmailNotValidError:
            pytest.fail("an address that a strict reader refuses")
    assert "\n" not in text
    assert policy.default.header_factory("to", text).defects == ()


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("bob@corp.example", ("bob@corp.example",)),
        ("Bob <bob@CORP.example>", ("bob@corp.example",)),
        ('"Bob, K." <bob@corp.example>', ("bob@corp.example",)),
        ("Bob <bob@corp.example>, eve@evil.test", ("bob@corp.example", "eve@evil.test")),
        ("bob@corp.example,eve@evil.test", ("bob@corp.example", "eve@evil.test")),
    ],
)
def test_what_every_reader_takes_alike_is_read(text: str, addresses: tuple[str, ...]) -> None:
    assert mail_addresses(text) == addresses
