"""Case 153: three identical calls are three questions, all of them come at the end, and a retry asks them all again.

Identical calls of one batch are one question that says how many there are, and each of them is good for one yes. Each
gets its own result. A question that is still open is not asked a second time. The honest twin is two calls that differ.
"""

from __future__ import annotations

from interlock import Call
from interlock.model.question_view import lines
from tests.approvals.desk import EVE, KIM, NO, YES, Person, Sent, locked, reader

SAME = [Call("send", EVE, one) for one in "abc"]


def test_attack_three_identical_calls_are_one_question() -> None:
    person, sent = Person(YES), Sent()
    outcomes = reader(locked(person)).batch(SAME, run=lambda _, given: sent(**given))
    assert [(one.call_id, one.executed) for one in outcomes] == [("a", True), ("b", True), ("c", True)]
    assert (len(person.asked), len(sent.calls)) == (1, 3)
    assert "3 identical calls; a yes lets each of them run once." in "\n".join(lines(person.asked[0]))


def test_attack_one_no_is_for_all_of_them() -> None:
    person, sent = Person(NO), Sent()
    outcomes = reader(locked(person)).batch(SAME, run=lambda _, given: sent(**given))
    assert [one.decision.code for one in outcomes] == ["refused"] * 3
    assert (len(person.asked), sent.calls) == (1, [])


def test_attack_three_uses_are_not_four() -> None:
    guard = reader(locked())
    guard.answer(guard.propose(*SAME).questions["a"].id, "approve")
    assert len(guard.propose(*SAME, Call("send", EVE, "d")).allowed) == 3


def test_attack_what_has_a_yes_already_is_not_in_the_next_question() -> None:
    guard = reader(locked())
    guard.answer(guard.propose(SAME[0]).questions["a"].id, "approve")
    ticket = guard.propose(*SAME)
    assert ticket.allowed.keys() == {"a"}
    assert ticket.questions["b"].call_ids == ("b", "c")
    guard.answer(ticket.questions["b"].id, "approve")
    assert len(guard.propose(*SAME).allowed) == 2


def test_attack_a_retry_asks_nothing_again() -> None:
    guard = reader(locked())
    first = guard.propose(*SAME).questions
    assert {one.id for one in guard.propose(*SAME).questions.values()} == {first["a"].id}
    assert guard.conversation.state.asks == 1


def test_honest_calls_that_differ_are_asked_one_by_one() -> None:
    person, sent = Person(YES, NO), Sent()
    calls = [Call("send", EVE, "a"), Call("send", KIM, "b")]
    outcomes = reader(locked(person)).batch(calls, run=lambda _, given: sent(**given))
    assert [one.executed for one in outcomes] == [True, False]
    assert sent.calls == [EVE]
