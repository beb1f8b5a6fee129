"""Asks at the terminal where the agent runs: only at a real one, and only with what is typed after the question.

Headless runs have no terminal, so nobody answers there. What was typed ahead is thrown away before each question: a
return key that was pressed a minute ago approves nothing. A yes is the whole word, and it is taken only when every page
has been shown.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO, TypeAlias

from interlock.errors import ApproverUnavailable
from interlock.model.calls import Call
from interlock.model.escaping import escaped
from interlock.model.question import Answer, Question
from interlock.model.question_view import LINE, PAGE, pages

MAX_LINE: Final = 1 << 16
Paged: TypeAlias = Callable[[int, int], list[list[str]]]  # from the lines and the columns of a screen


class Terminal:
    """Implements :class:`interlock.ports.Approver`. One question at a time, whichever thread asks."""

    def __init__(
        self,
        stdin: TextIO | None = None,
        stderr: TextIO | None = None,
        *,
        height: int = PAGE,
        editable: bool = True,
    ) -> None:
        """By default standard input and standard error; never standard output, which belongs to the host.

        Args:
            editable: may another call be put in the place of the one that is asked about?
        """
        self._editable = editable
        self._in = stdin
        self._out = stderr
        self._height = height
        self._busy = threading.Lock()

    def ask(self, question: Question, seconds: float) -> Answer | None:
        """See :meth:`interlock.ports.Approver.ask`.

        Raises:
            ApproverUnavailable: this is no terminal.
        """
        return self._alone("Approve", partial(pages, question), question if self._editable else None, seconds)

    def confirm(self, what: str, shown: Paged, seconds: float) -> Answer | None:
        """Ask about something that is no question of a guard: ``what`` is the word before the choices, ``shown`` gives
        its pages for a screen of so many lines and columns.

        Raises:
            ApproverUnavailable: this is no terminal.
        """
        return self._alone(what, shown, None, seconds)

    def _alone(self, what: str, shown: Paged, editable: Question | None, seconds: float) -> Answer | None:
        until = time.monotonic() + seconds
        source, out = self._streams()
        if not self._busy.acquire(timeout=max(0.0, seconds)):
            return None
        try:
            return self._dialogue(what, shown(*_screen(out, self._height)), editable, source, out, until)
        finally:
            self._busy.release()

    def _streams(self) -> tuple[int, TextIO]:
        given, out = self._in or sys.stdin, self._out or sys.stderr
        descriptor = -1
        try:
            descriptor = given.fileno()
            real = os.isatty(descriptor) and os.isatty(out.fileno())
        except (OSError, ValueError, AttributeError):
            real = False
        if not real or os.name != "posix":
            raise ApproverUnavailable("standard input and standard error are no terminal, so nobody can be asked here")
        return descriptor, out

    def _dialogue(
        self,
        what: str,
        shown: list[list[str]],
        editable: Question | None,
        source: int,
        out: TextIO,
        until: float,
    ) -> Answer | None:
        number = 0

        def say(text: str) -> None:
            out.write(text)
            out.flush()

        _forget_what_was_typed(source)
        say("\n" + "\n".join(shown[0]) + "\n")
        while True:
            last = number == len(shown) - 1
            more = "" if last else f", more (page {number + 1} of {len(shown)})"
            yes = "yes, " if last else ""
            edit = "" if editable is None else ", edit"
            say(f"{what}? [{yes}no{edit}{more}] ")
            typed = _line(source, until)
            if typed is None:
                say("\nNobody answered.\n")
                return None
            word = typed.strip().casefold()
            if word == "yes" and last:
                return Answer("approve", _name())
            if word == "no":
                return Answer("refuse", _name())
            if word in ("more", "m", "") and not last:
                number += 1
                _forget_what_was_typed(source)  # nothing that was typed before a page says yes to it
                say("\n".join(shown[number]) + "\n")
            elif word == "edit" and editable is not None:
                edited = self._edited(editable, source, say, until)
                if edited is not None:
                    return Answer("edit", _name(), edited)
            else:
                say("Nothing was decided. Type one of the words.\n")

    def _edited(self, question: Question, source: int, say: Callable[[str], None], until: float) -> Call | None:
        say("Arguments of the call that is to be made instead, as one line of JSON; it is decided anew:\n")
        typed = _line(source, until)
        try:
            arguments = json.loads(typed or "")
        except ValueError as error:
            say(f"That is no JSON ({escaped(str(error))}).\n")
            return None
        if not isinstance(arguments, dict):
            say("Arguments are an object.\n")
            return None
        return Call(question.tool, arguments, server=question.server)


def _screen(out: TextIO, height: int) -> tuple[int, int]:
    """Lines and columns of which a person sees all at once; a terminal that does not know its size has the usual."""
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except OSError:
        columns = rows = 0
    return (min(height, max(rows - 2, 8)) if rows else height), (min(LINE, max(columns, 40)) if columns else LINE)


def _name() -> str:
    """Who sits at the terminal, as far as the system knows."""
    import getpass  # loaded late: it asks the system's list of users

    try:
        return f"{getpass.getuser()} at the terminal"
    except (OSError, KeyError):
        return "somebody at the terminal"


def _forget_what_was_typed(source: int) -> None:
    import termios  # not on Windows

    termios.tcflush(source, termios.TCIFLUSH)


def _line(source: int, until: float) -> str | None:
    """One typed line; None at the end of input, and when the time is over."""
    typed = b""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([source], [], [], min(left, 1.0))
        if not ready:
            continue
        piece = os.read(source, 4096)
        if not piece or len(typed) > MAX_LINE:
            return None
        typed += piece
        if typed.endswith((b"\n", b"\r")):
            return typed.decode("utf-8", "replace")
    return None
