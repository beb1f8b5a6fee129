"""Case 59: while one conversation uses its approval, another one makes the very same call.

The yes belongs to the first conversation, wherever it stands in the process. The second one is asked for itself, and
before, during and after the first one's call nobody has approved anything there. The honest twin is the first one.
"""

from __future__ import annotations

from typing import Any

from interlock import Call
from tests.approvals.desk import EVE, YES, Person, locked, reader


def test_attack_the_other_conversation_is_asked_for_itself() -> None:
    person = Person(YES, None, YES)
    lock = locked(person)
    one, other = reader(lock), reader(lock)
    seen: list[tuple[bool, str]] = []

    def sending(**_: Any) -> str:
        outcome = other.call("send", EVE, run=lambda **_: "sent")
        seen.append((outcome.executed, outcome.decision.code))
        return "sent"

    assert one.call("send", EVE, run=sending).executed
    assert seen == [(False, "no_answer")]
    assert [asked.conversation for asked in person.asked] == [one.conversation.id, other.conversation.id]


def test_attack_a_yes_that_waits_is_nobody_elses() -> None:
    lock = locked()
    one, other = reader(lock), reader(lock)
    question = one.propose(Call("send", EVE, "a")).questions["a"]
    one.answer(question.id, "approve")
    assert not other.propose(Call("send", EVE, "b")).allowed
    assert one.propose(Call("send", EVE, "c")).allowed


def test_honest_each_conversation_with_its_own_yes() -> None:
    lock = locked(Person(YES, YES))
    for guard in (reader(lock), reader(lock)):
        assert guard.call("send", EVE, run=lambda **_: "sent").executed
