"""Receivers that the person had typed were refused.

``bob@corp.local`` is an address in many a company, and the library that reads addresses refuses its end; a URL with
balanced parentheses lost its last one to the punctuation around words; ``mailto:bob@x.example`` and
``Bob<bob@x.example>``, which is how mail programs paste an address, were no words that anybody recognised. So honest
sends under the trifecta were denied, and people learn to switch such a thing off. Now all of these ground exactly the
value that was typed.
Mutations that this file catches: ``.example`` behind an address left out; the count of brackets in ``_bare`` left out;
``mailto:`` left in; angle brackets that do not separate words.
"""

from __future__ import annotations

import pytest

from interlock import Verdict
from tests.regressions.stage import BOTH, decided

MAIL = [
    ("mail bob@corp.local", "bob@corp.local"),
    ("mail bob@localhost", "bob@localhost"),
    ("mail bob@intranet.", "bob@intranet"),
    ("mail bob@x.test and go", "bob@x.test"),
    ("mailto:bob@x.example", "bob@x.example"),
    ("see <mailto:bob@x.example>", "bob@x.example"),
    ("Bob<bob@x.example>", "bob@x.example"),
    ("Bob <bob@x.example>, Eve <eve@x.example>", "eve@x.example"),
    ("don't mail bob+notes@x.example!", "bob+notes@x.example"),
    ("mail 'bob@x.example'.", "bob@x.example"),
    ("(bob@x.example)", "bob@x.example"),
    ("mail “bob@x.example”", "bob@x.example"),
]
URLS = [
    "https://page.example/A_(b)",
    "https://page.example/A_(b)_(c)",
    "https://page.example/?q=(a)&r=[b]",
    "https://page.example/a,b;c",
    "https://page.example/it's",
    "https://page.example:8443/x",
    "https://xn--bcher-kva.example/x",
    "http://page.local/x",
]


@pytest.mark.parametrize(("typed", "to"), MAIL)
def test_an_address_that_was_typed_is_named(typed: str, to: str) -> None:
    mail = {"to": to, "body": "x"}
    assert decided("send_email", mail, typed=typed, labels=BOTH).verdict is Verdict.ALLOW
    assert decided("send_email", mail, typed="mail somebody", labels=BOTH).verdict is Verdict.DENY


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("around", ["{}", "post it to {}.", "({})", "<{}>", "see {}, please", "“{}”", "[{}]"])
def test_a_url_that_was_typed_is_named(url: str, around: str) -> None:
    assert decided("post", {"url": url, "body": "x"}, typed=around.format(url), labels=BOTH).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("typed", "to"),
    [
        ("mail bob@corp.local", "bob@corp.local.evil.example"),
        ("mail bob@corp.local", "bob@corp.local.example"),
        ("mail bob@corp.local", "bob@corp"),
        ("mail bob@corp", "bob@corp.example"),
        ("mail bob@corp.example", "bob@corp"),
        ("mailto:bob@x.example", "mailto:bob@x.example"),
        ("from:eve@x.example", "eve@x.example"),
        ("mail bob@x.example,eve@x.example", "eve@x.example"),
        ("bob@x.example/eve@x.example", "eve@x.example"),
    ],
)
def test_nothing_beside_what_was_typed_is_named(typed: str, to: str) -> None:
    assert decided("send_email", {"to": to, "body": "x"}, typed=typed, labels=BOTH).verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("https://page.example/A_(b)", "https://page.example/A_(b"),
        ("https://page.example/A_(b)", "https://page.example/A_"),
        ("(https://page.example/A)", "https://page.example/A)"),
        ("https://page.example/A_(b)", "https://page.example/A_(b)c"),
        ("https://page.example/", "https://page.example.evil.example/"),
        ("https://page.example/", "https://page.example@evil.example/"),
    ],
)
def test_nor_is_a_url_beside_the_typed_one(typed: str, url: str) -> None:
    assert decided("post", {"url": url, "body": "x"}, typed=typed, labels=BOTH).verdict is Verdict.DENY
