"""Case 145: a mail was cut off while it was sent, nobody knows whether it went out, and the agent sends it again.

The very same call is not repeated by itself: it is a question that says that it may have happened already, in a new
process too. A yes from before does not count, since nobody had been told then. The honest twin is the repetition of a
call that ended, and of one that changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Call, Guard
from interlock.model.decisions import Verdict
from interlock.model.question_view import lines
from tests.approvals.desk import KIM, YES, Person, Sent, locked, reader


def cut_off(guard: Guard, name: str = "send", arguments: dict[str, Any] = KIM) -> None:
    async def story() -> None:
        begun = asyncio.Event()

        async def tool(**_: Any) -> str:
            begun.set()
            await asyncio.sleep(60)
            return "never"

        task = asyncio.create_task(guard.acall(name, arguments, run=tool))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


def test_attack_the_same_mail_again() -> None:
    person = Person(YES)
    guard, sent = reader(locked(person, settings={"leak_guard": "off"})), Sent()
    cut_off(guard)
    assert guard.call("send", KIM, run=sent).executed
    (asked,) = person.asked
    assert [code for code, _ in asked.reasons] == ["in_doubt"]
    assert "it may have happened already" in "\n".join(lines(asked))


def test_attack_without_a_person_it_is_not_sent_again() -> None:
    guard, sent = reader(locked(None, approvals=None, settings={"leak_guard": "off"})), Sent()
    cut_off(guard)
    outcome = guard.call("send", KIM, run=sent)
    assert (outcome.verdict, outcome.decision.code, sent.calls) == (Verdict.ASK, "in_doubt", [])
    fork = locked(None, approvals=None, settings={"leak_guard": "off"}).guard(guard.conversation.fork())
    assert fork.call("send", KIM, run=sent).decision.code == "in_doubt"


def test_attack_a_yes_from_before_is_none_for_the_repetition() -> None:
    guard = reader(locked())
    questions = guard.propose(Call("send", KIM, "a"), Call("send", KIM, "b")).questions
    guard.answer(questions["a"].id, "approve")  # for both of them
    ticket = guard.propose(Call("send", KIM, "c"))
    allowed = ticket.allowed["c"]
    guard.observe(ticket, "c", TimeoutError())  # an outcome: it failed, and its labels joined
    assert guard.propose(Call("send", KIM, "d")).allowed
    assert allowed.decision.grant
    cut = reader(locked(Person(YES)))
    cut.answer(cut.propose(Call("send", KIM, "a"), Call("send", KIM, "b")).questions["a"].id, "approve")
    cut_off(cut)
    assert not cut.propose(Call("send", KIM, "e")).allowed  # one use is left, given before the doubt


def test_honest_what_ended_and_what_changes_nothing() -> None:
    guard, sent = reader(locked(None, approvals=None, settings={"leak_guard": "off"})), Sent()
    cut_off(guard, "calc", {})
    assert guard.call("calc", {}, run=sent).executed
    assert guard.call("send", KIM, run=sent).executed
    assert guard.call("send", KIM, run=sent).executed
