"""Case 63: whoever approves changes the call, and the changed one runs without any rule having seen it.

A changed call is a new call: it is decided as if the model had proposed it, with the legs of its own tool, asked about
itself where the rules ask, and denied where they deny. The call that was asked about is refused. The honest twin is a
change to something harmless.
"""

from __future__ import annotations

from interlock import Answer, Call
from tests.approvals.desk import EVE, KIM, YES, Person, Sent, entries, locked, reader


def edit(name: str, arguments: dict[str, object]) -> Answer:
    return Answer("edit", "kim", Call(name, arguments))


def test_attack_a_question_about_one_tool_ends_in_another() -> None:
    person = Person(edit("send", EVE))
    lock = locked(person, settings={"leak_guard": "off"})  # the trifecta denies
    guard, sent = reader(lock), Sent()
    guard.admit("a page", labels=["untrusted:web"], source="https://evil.test/")
    outcome = guard.call("write", {"path": "draft.txt", "text": "x"}, run=sent)
    assert (outcome.tool, outcome.verdict.value, outcome.decision.code) == ("send", "deny", "trifecta")
    assert sent.calls == []


def test_attack_a_changed_receiver_is_asked_about_itself() -> None:
    person = Person(edit("send", KIM), None)
    lock = locked(person)
    guard, sent = reader(lock), Sent()
    assert guard.call("send", EVE, run=sent).decision.code == "no_answer"
    assert [one.payload["to"] for one in person.asked] == ["eve@evil.test", "kim@corp.example"]
    assert [one.answer for one in entries(lock, guard) if one.kind == "answered"] == ["edit", "none"]
    assert sent.calls == []


def test_attack_a_malformed_change() -> None:
    guard, sent = reader(locked(Person(edit("no such tool!", {}), edit("send", {"to": float("nan")})))), Sent()
    for _ in range(2):
        assert guard.call("send", EVE, run=sent).decision.code == "invalid_call"
    assert sent.calls == []


def test_honest_a_changed_call_that_was_approved_itself() -> None:
    guard, sent = reader(locked(Person(edit("send", KIM), YES, edit("calc", {})))), Sent()
    assert guard.call("send", EVE, run=sent).executed
    assert guard.call("send", EVE, run=sent).executed
    assert sent.calls == [KIM, {}]
