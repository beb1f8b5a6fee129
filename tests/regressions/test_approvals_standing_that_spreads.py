"""A standing approval answered more than what the person had been shown.

* It was given while the conversation held mail, and let the tool send files that were read afterwards: a grant is void
  by then, and the object that is to be weaker in all but number was not.
* The person had approved a send to one receiver with an empty ``bcc``. Calls without that argument, for which the tool
  fills in a receiver of its own, went as well.

Found by review.
"""

from __future__ import annotations

from interlock import Call, Guard
from tests.approvals.desk import KIM, Sent, ToldClock, locked, reader

TYPED = "Send kim@corp.example what is needed."


def stood() -> Guard:
    guard = reader(locked(clock=ToldClock()), TYPED)
    question = guard.propose(Call("send", {**KIM, "bcc": ""}, "a")).questions["a"]
    guard.answer(question.id, "approve")
    guard.stand(question, seconds=300, by="kim")
    assert goes(guard, {**KIM, "bcc": "", "body": "one"})
    return guard


def goes(guard: Guard, arguments: dict[str, object]) -> bool:
    return bool(guard.propose(Call("send", arguments, "x")).allowed)


def test_it_ends_with_private_data_that_was_not_shown() -> None:
    guard = stood()
    guard.call("read_mail", {}, run=Sent())  # of the kind that was there
    assert goes(guard, {**KIM, "bcc": "", "body": "two"})
    guard.call("read_files", {}, run=Sent())
    assert not goes(guard, {**KIM, "bcc": "", "body": "three"})
    assert guard.conversation.state.standing == {}


def test_a_receiver_that_the_tool_fills_in_is_another_one() -> None:
    assert not goes(stood(), KIM)
