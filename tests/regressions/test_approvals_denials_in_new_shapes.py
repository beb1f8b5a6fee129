"""Three denials of one shape are the last, and one argument more, which means nothing to the tool, made another shape.
So a model could have a person asked as often as it liked.

Found by review. Nine denials of one tool, in whatever shapes, are the last as well.
"""

from __future__ import annotations

from interlock import Call
from interlock.model.checkpoints import read_state, state_body
from interlock.model.grants import ENOUGH_OF_TOOL
from tests.approvals.desk import EVE, NO, Person, Sent, locked, reader


def test_a_new_argument_is_no_new_beginning() -> None:
    person, sent = Person(*[NO] * 50, None), Sent()
    guard = reader(locked(person))
    codes = [guard.call("send", {**EVE, f"x{n}": ""}, run=sent).decision.code for n in range(20)]
    assert codes == ["refused"] * ENOUGH_OF_TOOL + ["asked_enough"] * (20 - ENOUGH_OF_TOOL)
    assert (len(person.asked), sent.calls) == (ENOUGH_OF_TOOL, [])
    batch = guard.batch([Call("send", {**EVE, f"y{n}": ""}, f"c{n}") for n in range(5)], run=lambda *_: "sent")
    assert {one.decision.code for one in batch} == {"asked_enough"}
    state = guard.conversation.state
    assert read_state(state_body(state)) == state
    guard.conversation.say("Go on.")
    assert guard.call("send", EVE, run=sent).decision.code == "refused"  # asked anew
    assert len(person.asked) == ENOUGH_OF_TOOL + 1


def test_a_host_that_pauses_is_given_no_question_either() -> None:
    guard = reader(locked())
    for n in range(3):
        question = guard.propose(Call("send", {**EVE, "body": str(n)}, "a")).questions["a"]
        guard.answer(question.id, "refuse", by="kim")
    ticket = guard.propose(Call("send", EVE, "a"))
    assert (ticket.questions, ticket.outcomes["a"].decision.code) == ({}, "asked_enough")
