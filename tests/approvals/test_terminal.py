"""Proves that a terminal takes a yes only from a person who was shown everything: on a real pty, with real keys.

Mutations that this file catches: a pipe that counts as a terminal; a return key typed ahead that approves; a yes before
the last page; end of input or time-out that approves.
"""

from __future__ import annotations

import io
import os
import pty
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import pytest

from interlock import Question
from interlock.approvals.terminal import Terminal
from interlock.errors import ApproverUnavailable
from interlock.model.question_view import pages
from tests.approvals.desk import EVE, NO, Person, Sent, locked, reader


@contextmanager
def terminal() -> Iterator[tuple[int, TextIO, TextIO, Callable[[], str]]]:
    """The keyboard's end of a pseudo-terminal, its two streams, and what stood on the screen so far."""
    master, slave = pty.openpty()
    seen: list[str] = []
    streams = os.fdopen(slave, "r", closefd=False), os.fdopen(os.dup(slave), "w")

    def read() -> None:
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                return
            if not piece:
                return
            seen.append(piece.decode())

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        yield master, *streams, lambda: "".join(seen)
    finally:
        streams[1].close()
        os.close(slave)
        reading.join(5)
        os.close(master)


def question(**more: Any) -> Question:
    person = Person(NO)
    reader(locked(person)).call("send", {**EVE, **more}, run=Sent())
    return person.asked[0]


def typed(master: int, text: Callable[[], str], *keys: tuple[str, str]) -> None:
    """Type each text once the screen shows what it waits for."""
    for wait, key in keys:
        until = time.monotonic() + 10
        while wait not in text() and time.monotonic() < until:
            time.sleep(0.01)
        assert wait in text(), text()
        os.write(master, key.encode())


def answered(asked: Question, *keys: tuple[str, str], seconds: float = 10, ahead: str = "", height: int = 40) -> Any:
    with terminal() as (master, stdin, stderr, text):
        os.write(master, ahead.encode())
        time.sleep(0.05 if ahead else 0)
        typing = threading.Thread(target=typed, args=(master, text, *keys), daemon=True)
        typing.start()
        answer = Terminal(stdin, stderr, height=height).ask(asked, seconds)
        typing.join(10)
        time.sleep(0.05)
        return answer, text()


def test_the_words_yes_and_no() -> None:
    asked = question()
    answer, text = answered(asked, ("Approve?", "y\n"), ("Nothing was decided", "yes\n"))
    assert answer is not None
    assert answer.verdict == "approve"
    assert "to (13 characters): eve@evil.test" in text
    answer, _ = answered(asked, ("Approve?", "No\n"))
    assert answer.verdict == "refuse"


def test_another_call_in_its_place() -> None:
    answer, text = answered(
        question(),
        ("Approve?", "edit\n"),
        ("one line of JSON", "{no\n"),
        ("That is no JSON", "edit\n"),
        ("decided anew:\r\n{no", ""),
        ("edit\r\nArguments of the call that is to be made instead", '{"to": "kim@corp.example"}\n'),
    )
    assert answer.verdict == "edit", text
    assert (answer.instead.name, answer.instead.arguments) == ("send", {"to": "kim@corp.example"})


def test_a_yes_is_taken_when_every_page_was_shown() -> None:
    asked = question(body="line\n" * 60 + "and bob@evil.test")
    count = len(pages(asked, 30))
    assert count > 2
    further = [(f"(page {number} of {count})", "more\n") for number in range(2, count)]
    early = (f"(page 1 of {count})", "yes\n"), ("Nothing was decided", "\n")
    answer, text = answered(asked, *early, *further, (f"page {count} of {count}", "yes\n"), height=30)
    assert answer is not None
    assert answer.verdict == "approve"
    assert "and bob@evil.test" in text


def test_what_was_typed_ahead_approves_nothing() -> None:
    answer, _ = answered(question(), ahead="yes\nyes\n", seconds=0.5)
    assert answer is None


@pytest.mark.parametrize("keys", [(), (("Approve?", "ye"),), (("Approve?", "\x04"),)], ids=["nothing", "half", "end"])
def test_silence_and_the_end_of_input_are_no_yes(keys: tuple[tuple[str, str], ...]) -> None:
    answer, text = answered(question(), *keys, seconds=0.7)
    assert answer is None
    assert "Nobody answered" in text


def test_a_pipe_is_no_terminal() -> None:
    read, write = os.pipe()
    os.write(write, b"yes\n")
    with os.fdopen(read) as stdin, os.fdopen(write, "w") as other:
        for streams in ((stdin, other), (io.StringIO("yes\n"), other), (stdin, io.StringIO())):
            with pytest.raises(ApproverUnavailable, match="no terminal"):
                Terminal(*streams).ask(question(), 1)
    with terminal() as (_, tty, _, _), pytest.raises(ApproverUnavailable):
        Terminal(tty, io.StringIO()).ask(question(), 1)  # a person who types, and can't see


def test_a_headless_run_says_that_nobody_answered() -> None:
    guard, sent = reader(locked(Terminal(io.StringIO("yes\n"), io.StringIO()))), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (sent.calls, outcome.executed) == ([], False)
    assert "nobody answered" in outcome.for_model
    assert "no terminal" in outcome.decision.reasons[0].for_person
