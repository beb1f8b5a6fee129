"""Case 68: the screen shows the harmless half of a call, and the field that matters is hidden or cut off.

Forty arguments, the receiver in the thirty-ninth, a body of twenty thousand letters, marks that turn the reading order
round, escapes that move the cursor, letters of no width: every path, every length and every character is in the
question, on as many pages as it takes, and so is what the tool fills in by itself. The honest twin is a plain text in
any language, which is shown as it is.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from interlock import Question
from interlock.model.escaping import escaped, hidden
from interlock.model.question_view import lines, pages, summary
from tests.approvals.desk import Person, Sent, locked, reader

HIDDEN = {
    "escape": "\x1b[2J",
    "carriage return": "safe\rrm",
    "backspace": "a\bb",
    "C1": "a\x9bb",
    "right to left": "cod.\u202etxt.exe",
    "isolate": "a\u2066b",
    "zero width": "ro\u200bot",
    "joiner": "a\u2060b",
    "byte order mark": "a\ufeffb",
    "soft hyphen": "a\u00adb",
    "tags": "a\U000e0041b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "private use": "a\ue000b",
    "variation selector": "a\ufe0fb",
    "Hangul filler": "a\u3164b",
    "Braille blank": "a\u2800b",
    "wide space": "a\u3000b",
    "no-break space": "a\u00a0b",
    "unassigned": "a\u0378b",
}


def question(arguments: dict[str, Any], tool: str = "send") -> Question:
    person = Person(None)
    reader(locked(person)).call(tool, arguments, run=Sent())
    return person.asked[0]


def test_attack_forty_arguments_and_a_long_body() -> None:
    fields = {f"x_option_{n}": f"value {n}" for n in range(38)}
    body = "".join(f"line {n} of many\n" for n in range(1200))
    asked = question({**fields, "zz_last": [{"deep": {"er": "b@evil.test"}}], "body": body, "to": "eve@evil.test"})
    whole = lines(asked)
    for path in (*fields, "zz_last[0].deep.er", "body", "to"):
        assert any(one.strip().startswith(f"{path} (") for one in whole), path
    assert any(f"body ({len(body)} characters), in 1200 lines:" in one for one in whole)
    assert sum("of many\\n" in one for one in whole) == 1200
    shown = pages(asked)
    assert len(shown) > 30
    assert [one for page in shown for one in page[1:]] == whole  # nothing is between two pages
    assert shown[4][0] == f"Question {asked.id}, page 5 of {len(shown)}"
    assert all(len(one) < 300 for one in whole)


def test_attack_a_receiver_that_the_tool_fills_in() -> None:
    whole = "\n".join(lines(question({"to": "kim@corp.example", "body": "x"})))
    assert "bcc (20 characters, a default that the call leaves out): archive@corp.example" in whole
    assert "destination bcc: archive@corp.example (email; a default of the tool; nobody named it)" in whole


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_attack_what_could_hide_is_escaped(text: str) -> None:
    whole = "\n".join(lines(question({"to": "kim@corp.example", "body": text, f"k{text}": 1}, "send")))
    assert escaped(text) in whole
    for one in text:
        if not one.isascii() or not one.isprintable():
            assert one not in whole.replace("\n", "")
    assert text == "safe\rrm" or "invisible and escaped here" in whole


def test_attack_no_character_that_acts_is_left() -> None:
    bad = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    # Every character of the first plane and of the tags; the others by each of their blocks.
    for code in (*range(0x10000), *range(0x10000, 0x110000, 97), *range(0xE0000, 0xE0200)):
        character = chr(code)
        shown = escaped(character)
        if unicodedata.category(character) in bad:
            assert shown != character
        assert all(unicodedata.category(one) not in bad for one in shown), hex(code)


def test_attack_an_escape_can_not_be_forged() -> None:
    assert escaped("\\u{202e}") == "\\\\u{202e}"
    assert escaped("\u202e") == "\\u{202e}"
    assert hidden("\\u{202e}") == 0


def test_attack_a_list_says_how_much_it_leaves_out() -> None:
    asked = question({"to": ["a@evil.test", "b@evil.test", "c@evil.test"], "body": "x"})
    assert summary(asked) == "send → archive@corp.example, a@evil.test and 2 more"  # with the default


def test_honest_text_of_any_language_is_shown_as_it_is() -> None:
    for text in ("Grüße, 你好, שלום, नमस्ते, 👋", "a plain line"):
        assert escaped(text) == text
        assert f"body ({len(text)} characters): {text}" in "\n".join(
            lines(question({"to": "k@a.example", "body": text}))
        )
