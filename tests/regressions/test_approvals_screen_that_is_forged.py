"""What a person was shown could be made to say something else, by nothing but printable characters.

* A receiver that was long enough was broken by the screen, wherever its author wanted: what stood at the beginning of
  the next line read as a line of the question, such as another receiver that the person had typed.
* An argument's *name* could hold a colon, a length and a value, or a dot, and so play another argument.
* A heap of combining marks is drawn over the lines above and below.
* A page had forty lines on a terminal of twenty-four, and on a narrow one each took two: who is named had gone by.
* Return keys and a yes that were typed before the pages were shown went through all of them.
* A host in its ASCII form (``xn--``) had no warning that its letters may look like others.

Found by review.
"""

from __future__ import annotations

import fcntl
import struct
import termios
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Question
from interlock.approvals.terminal import Terminal
from interlock.model.escaping import AGAIN, MAX_MARKS, cells, escaped, wrapped
from interlock.model.question_view import LINE, lines, pages
from tests.approvals.desk import NO, Person, Sent, locked, reader
from tests.approvals.test_terminal import terminal, typed


def question(**arguments: Any) -> Question:
    person = Person(NO)
    reader(locked(person)).call("send", {"body": "x", "to": "eve@evil.test", **arguments}, run=Sent())
    return person.asked[0]


@pytest.mark.parametrize("columns", [40, 80, LINE])
def test_a_long_receiver_makes_no_line_of_its_own(columns: int) -> None:
    forged = "destination to: kim@corp.example (email; you typed it)"
    for filler in (" ", "x", "好"):
        for count in range(columns - 36, columns - 18):  # the forged words begin a line in one of them
            to = "a" + filler * count + forged + "@evil.test"
            shown = lines(question(to=to), columns)
            assert all(cells(line) <= columns for line in shown)
            assert not any(line.strip().startswith("destination to: kim") for line in shown)
        whole = "".join(line.removeprefix(AGAIN) for line in shown)
        assert forged in whole  # nothing is cut off


@given(st.text(max_size=300), st.integers(20, 120))
def test_wrapping_keeps_every_character(text: str, columns: int) -> None:
    line = escaped(text)
    pieces = wrapped(line, columns)
    assert pieces[0] + "".join(piece.removeprefix(AGAIN) for piece in pieces[1:]) == line
    assert all(piece.startswith(AGAIN) for piece in pieces[1:])
    assert all(cells(piece) <= columns for piece in pieces)


def test_a_name_can_not_play_another_argument() -> None:
    shown = lines(question(**{"to (16 characters): kim@corp.example": "", "a.b": 1, "a": {"b": 2}, 'q"': 3}))
    assert not any(line.strip().startswith("to (16") for line in shown)
    for line in ("a.b: 2", '"a.b": 1', '"q\\\\""' + ": 3"):
        assert f"  {line}" in shown, shown


def test_marks_do_not_pile_up() -> None:
    heap = "a" + "\u0301" * 40
    assert escaped(heap) == "a" + "\u0301" * MAX_MARKS + "\\u{301}" * (40 - MAX_MARKS)
    assert escaped("\u0301a") == "\\u{301}a"
    assert escaped("a\u0301") == "a\u0301"  # a letter that is written in two


def test_a_host_in_its_other_form_is_pointed_out() -> None:
    for to, warned in (("kim@xn--crp-0na.example", True), ("kim@corp.example", False)):
        assert ("look like others" in " ".join(lines(question(to=to), 400))) is warned


def sized(asked: Question, rows: int, columns: int, *keys: tuple[str, str], seconds: float = 10) -> tuple[Any, str]:
    with terminal() as (master, stdin, stderr, text):
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        typing = threading.Thread(target=typed, args=(master, text, *keys), daemon=True)
        typing.start()
        answer = Terminal(stdin, stderr).ask(asked, seconds)
        typing.join(10)
        time.sleep(0.05)
        return answer, text()


def test_a_page_fits_the_terminal() -> None:
    asked = question(body="line\n" * 30)
    count = len(pages(asked, 22, 60))
    keys = [(f"(page {number} of {count})", "more\n") for number in range(1, count)]
    answer, text = sized(asked, 24, 60, *keys, (f"page {count} of {count}\r\n", ""), ("[yes, no", "yes\n"))
    assert answer.verdict == "approve"
    for page in text.split("Approve?")[:-1]:
        shown = page.split("\r\n")
        assert len(shown) <= 25
        assert all(len(line) <= 60 for line in shown)


def test_keys_that_were_typed_before_the_pages_say_nothing() -> None:
    asked = question(body="line\n" * 100)
    count = len(pages(asked))
    assert count > 2
    answer, text = sized(asked, 0, 0, ("Approve?", "\n" * count + "yes\n"), seconds=1)
    assert answer is None
    assert f"page {count} of {count}" not in text
