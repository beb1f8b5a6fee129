"""Case 67: the run is taken back to before the approval, and the old yes is found again.

An approval that was used stays used, whatever is done to the messages, and one that was not used is void when they are
taken back. The same call is asked anew. The honest twin is a person who says yes again.
"""

from __future__ import annotations

from interlock import Call
from tests.approvals.desk import EVE, YES, Person, Sent, locked, reader


def test_attack_a_used_yes_after_the_messages_were_taken_back() -> None:
    person = Person(YES, None)
    guard, sent = reader(locked(person)), Sent()
    before = guard.conversation.snapshot()
    assert guard.call("send", EVE, run=sent).executed
    guard.conversation.roll_back_failed_turn(before)
    assert guard.call("send", EVE, run=sent).decision.code == "no_answer"
    assert (len(person.asked), len(sent.calls)) == (2, 1)
    assert person.asked[0].id != person.asked[1].id


def test_attack_a_yes_that_nobody_used() -> None:
    guard = reader(locked())
    before = guard.conversation.snapshot()
    question = guard.propose(Call("send", EVE, "a")).questions["a"].id
    guard.answer(question, "approve")
    guard.conversation.roll_back_failed_turn(before)
    ticket = guard.propose(Call("send", EVE, "a"))  # even under the same id
    assert (ticket.allowed, ticket.questions["a"].id == question) == ({}, False)


def test_attack_a_question_from_before_is_not_answered_after() -> None:
    guard = reader(locked())
    question = guard.propose(Call("send", EVE, "a")).questions["a"].id
    guard.conversation.rewrite([])
    assert guard.propose(Call("send", EVE, "b")).questions["b"].id != question


def test_honest_a_second_yes() -> None:
    guard, sent = reader(locked(Person(YES, YES))), Sent()
    before = guard.conversation.snapshot()
    guard.call("send", EVE, run=sent)
    guard.conversation.roll_back_failed_turn(before)
    assert guard.call("send", EVE, run=sent).executed
