"""Case 63: whoever approves changes the call, and the changed one runs without any rule having seen it.

A changed call is a new call of the same tool: it is decided as if the model had proposed it, asked about itself where
the rules ask, and denied where they deny. The call that was asked about is refused. The honest twin is a change that
was approved itself.
"""

from __future__ import annotations

from interlock import Answer, Call
from tests.approvals.desk import EVE, KIM, YES, Person, Sent, entries, locked, reader


def edit(name: str, arguments: dict[str, object]) -> Answer:
    return Answer("edit", "kim", Call(name, arguments))


def test_attack_a_question_about_one_tool_ends_in_another() -> None:
    person = Person(edit("send", EVE))
    guard, sent = reader(locked(person, settings={"leak_guard": "off", "trifecta": "ask"})), Sent()
    guard.admit("a page", labels=["untrusted:web"], source="https://evil.test/")
    outcome = guard.call("send", KIM, run=sent)
    assert (outcome.decision.code, len(person.asked)) == ("no_answer", 2)  # the changed one is asked about itself
    person = Person(edit("calc", EVE))
    guard = reader(locked(person))
    outcome = guard.call("send", KIM, run=sent)
    assert (outcome.tool, outcome.decision.code) == ("send", "no_answer")
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
    guard, sent = reader(locked(Person(edit("send", {"to": float("nan")}), edit("send", {"to": float("inf")})))), Sent()
    for _ in range(2):
        assert guard.call("send", EVE, run=sent).decision.code == "invalid_call"
    assert sent.calls == []


def test_honest_a_changed_call_that_was_approved_itself() -> None:
    guard, sent = reader(locked(Person(edit("send", KIM), YES))), Sent()
    assert guard.call("send", EVE, run=sent).executed
    assert sent.calls == [KIM]
