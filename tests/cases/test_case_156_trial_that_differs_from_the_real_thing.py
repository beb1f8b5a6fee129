"""Case 156: the dry run says yes and the real call no, or the dry run leaves something behind.

A preview goes the way of a proposal up to the record: the same document, the same controls, the same answer, for calls
that are allowed, asked, denied, malformed and refused by a failure, alone and beside siblings. It writes nothing, puts
nothing in flight and runs nothing. The honest twin previews, acts, and gets what was promised.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock import Call, Guard, Interlock, MemoryJournal
from interlock.assembly import FixedClock
from interlock.model.decisions import Decision
from tests.cases.desk import EVIL, MANIFEST, Engine, armed, fresh, locked

CALLS: dict[str, Call] = {
    "allowed": Call("calc", {"expression": "1"}),
    "denied": Call("send_email", EVIL),
    "asked": Call("delete_mail", {"id": "m-1"}),
    "unknown": Call("nobody", {}),
    "malformed": Call("Send_Email", {}),
    "arguments that are none": Call("calc", "x"),  # type: ignore[arg-type]
    "a protected file": Call("write_file", {"path": "interlock.toml", "text": "x"}),
}


def essence(decision: Decision) -> Any:
    return decision.verdict, decision.reasons, decision.causes, decision.revision, decision.document


def written(guard: Guard, lock: Interlock) -> Any:
    assert isinstance(lock.journal, MemoryJournal)
    return lock.journal.head(guard.conversation.id), guard.conversation.state


def fixed() -> Interlock:
    """Under a clock that stands still, so that two documents can be the same."""
    return locked(clock=FixedClock(datetime(2026, 11, 30, 12, tzinfo=UTC)))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_attack_a_preview_decides_alike_and_leaves_nothing(call: Call) -> None:
    lock = fixed()
    guard = armed(lock)
    before = written(guard, lock)
    promised = [guard.preview(call) for _ in range(3)]
    assert written(guard, lock) == before
    decided = guard.propose(call)
    (outcome,) = decided.outcomes.values()
    assert {essence(one) for one in promised} == {essence(outcome.decision)}


def test_attack_beside_siblings() -> None:
    lock = locked(clock=FixedClock(datetime(2026, 11, 30, 12, tzinfo=UTC)), settings={"preset": "trifecta-only"})
    guard = fresh(lock)
    guard.admit("x", labels=["untrusted:web"], source="x")
    send, read = Call("send_email", EVIL, "send"), Call("read_file", {"path": "x"}, "read")
    assert guard.preview(send).verdict.value == "allow"
    promised = guard.preview(send, read)
    assert promised.verdict.value == "deny"
    assert essence(promised) == essence(guard.propose(read, send).outcomes["send"].decision)


def test_attack_a_failure_is_told_in_the_preview_too() -> None:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: None))
    guard = fresh(lock)
    assert guard.preview(CALLS["allowed"]).code == "engine_error"
    assert guard.propose(CALLS["allowed"]).allowed == {}


def test_attack_a_preview_is_no_permission() -> None:
    """What it was about may have changed meanwhile; there is nothing in a decision that could run anything."""
    guard = fresh()
    promised = guard.preview(CALLS["denied"])
    assert promised.verdict.value == "allow"
    assert not hasattr(promised, "allowed")
    guard.admit("x", labels=["untrusted:web", "private:files"], source="x")
    assert guard.propose(CALLS["denied"]).allowed == {}


def test_honest_what_was_promised_happens() -> None:
    guard = fresh()
    assert guard.preview(CALLS["allowed"]).verdict.value == "allow"
    assert guard.call("calc", {"expression": "1"}, run=lambda expression: expression).result == "1"
