"""Proves T9 of one process: a yes means exactly one call, once, in time, under what was shown, and nothing else.

Mutations that this file catches: a grant that is not used up; a binding that leaves out arguments, tool, labels, codes,
revision or time; silence that allows; a refusal that can be asked again without end.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Answer, Call, Conversation, Manifest
from interlock.errors import Refused
from interlock.model.decisions import Verdict, Who
from interlock.model.grants import Status
from tests.approvals.desk import EVE, GONE, KIM, NO, TOOLS, YES, Person, Sent, ToldClock, kinds, locked, reader


def test_a_yes_runs_the_call_once_and_is_on_record_before_it() -> None:
    lock = locked(Person(YES))
    guard, sent = reader(lock), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (outcome.executed, outcome.decision.who, outcome.for_model) == (True, Who.PERSON, "sent")
    assert sent.calls == [EVE]
    # The decision stands behind the grant that it consumes, and before the outcome.
    assert kinds(lock, guard)[3:] == ["decided", "asked", "answered", "granted", "consumed", "decided", "observed"]
    (held,) = guard.conversation.state.questions.values()
    assert (held.status, held.left, held.by) == (Status.USED, 0, "kim")


def test_the_next_call_is_asked_anew() -> None:
    person = Person(YES, None)
    guard, sent = reader(locked(person)), Sent()
    guard.call("send", EVE, run=sent)
    again = guard.call("send", EVE, run=sent)
    assert (again.verdict, again.decision.who, len(sent.calls), len(person.asked)) == (
        Verdict.DENY,
        Who.NOBODY,
        1,
        2,
    )


@pytest.mark.parametrize("answer", [NO, None, GONE, True, "yes", 1, {"verdict": "approve"}], ids=repr)
def test_whatever_is_no_yes_denies(answer: Any) -> None:
    guard, sent = reader(locked(Person(answer))), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (outcome.verdict, outcome.executed, sent.calls) == (Verdict.DENY, False, [])
    assert outcome.decision.who is (Who.PERSON if answer is NO else Who.NOBODY)
    words = "a person refused" if answer is NO else "nobody answered"
    assert words in outcome.for_model
    assert "eve" not in outcome.for_model


def test_an_answer_that_comes_too_late_is_none() -> None:
    clock, person = ToldClock(), Person(YES)
    person.meanwhile = lambda _: clock.jump(seconds=90)
    guard, sent = reader(locked(person, clock=clock)), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (outcome.decision.who, sent.calls) == (Who.NOBODY, [])
    (held,) = guard.conversation.state.questions.values()
    assert held.status is Status.EXPIRED
    with pytest.raises(Refused, match="is expired"):
        guard.answer(next(iter(guard.conversation.state.questions)), "approve")


def test_without_a_channel_the_call_does_not_run_and_says_so() -> None:
    lock = locked(None, approvals=None)
    guard, sent = reader(lock), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (outcome.verdict, outcome.decision.who, sent.calls) == (Verdict.ASK, Who.NOBODY, [])
    assert "nobody has given it" in outcome.for_model
    assert kinds(lock, guard)[-1] == "decided"


def test_a_call_in_place_of_another_is_decided_anew() -> None:
    person = Person(
        Answer("edit", "kim", Call("send", {"to": ""})), YES, Answer("edit", "kim", Call("send", KIM)), None
    )
    guard, sent = reader(locked(person)), Sent()
    outcome = guard.batch([Call("send", EVE, "a")], run=lambda name, given: f"{name} {given}")[0]
    assert (outcome.executed, outcome.result, outcome.call_id) == (True, "send {'to': ''}", "a")
    other = guard.call("send", EVE, run=sent)  # the edited send is asked about itself, and nobody answers
    assert (other.decision.who, sent.calls, len(person.asked)) == (Who.NOBODY, [], 4)
    assert person.asked[3].payload["to"] == "kim@corp.example"


def test_pausing_hosts_answer_and_propose_again() -> None:
    guard = reader(locked())
    ticket = guard.propose(Call("send", EVE, "a"))
    question = ticket.questions["a"]
    assert not ticket.allowed
    assert guard.propose(Call("send", EVE, "b")).questions["b"].id == question.id  # it is asked already
    assert guard.answer(question.id, "approve", by="kim").status is Status.GRANTED
    with pytest.raises(Refused, match="granted"):
        guard.answer(question.id, "approve")
    assert guard.propose(Call("send", KIM, "c")).questions["c"].id != question.id  # other arguments: no yes, none burnt
    assert guard.propose(Call("send", EVE, "d")).allowed.keys() == {"d"}
    assert guard.propose(Call("send", EVE, "e")).questions.keys() == {"e"}


def test_identical_calls_of_one_batch_are_one_question() -> None:
    person = Person(YES)
    guard, sent = reader(locked(person)), Sent()
    calls = [Call("send", EVE, one) for one in "abc"]
    outcomes = guard.batch(calls, run=lambda _, given: sent(**given))
    assert [one.executed for one in outcomes] == [True] * 3
    assert (len(person.asked), person.asked[0].call_ids) == (1, ("a", "b", "c"))
    person = Person(YES, None)
    guard = reader(locked(person))
    guard.batch([*calls[:2]], run=lambda _, given: sent(**given))
    assert not guard.batch(calls[:1], run=lambda _, given: sent(**given))[0].executed


def test_a_batch_is_decided_as_one_though_a_person_comes_between() -> None:
    """The page that is fetched beside it can't have shaped a call that was written before it came."""
    person = Person(YES)
    lock = locked(person, settings={"leak_guard": "ask"})  # the trifecta denies
    guard, sent = reader(lock), Sent()
    outcomes = guard.batch(
        [Call("read_page", {}, "a"), Call("send", EVE, "b")],
        run=lambda name, given: "page" if name == "read_page" else sent(**given),
    )
    assert [one.executed for one in outcomes] == [True, True], outcomes
    assert "read_page (untrusted:web)" in person.asked[-1].beside
    later = guard.call("send", EVE, run=sent)
    assert (later.verdict, later.decision.code) == (Verdict.DENY, "trifecta")
    assert len(sent.calls) == 1


@pytest.mark.parametrize("way", ["labels", "rewind", "rewrite", "expiry", "clock put back", "policy", "manifest"])
def test_a_grant_is_void_when_what_it_was_given_under_is_gone(way: str) -> None:
    clock = ToldClock()
    lock = locked(clock=clock)
    guard = reader(lock)
    before = guard.conversation.snapshot()
    ticket = guard.propose(Call("send", EVE, "a"))
    question = ticket.questions["a"].id
    guard.answer(question, "approve")
    if way == "labels":
        guard.admit("x", labels=["private:calendar"], source="calendar")
    elif way == "rewind":
        guard.conversation.roll_back_failed_turn(before)
    elif way == "rewrite":
        guard.conversation.rewrite([])
    elif way == "expiry":
        clock.jump(seconds=601)
    elif way == "clock put back":
        clock.jump(seconds=-1)
    elif way == "policy":
        lock = locked(journal=lock.journal, clock=clock, settings={"leak_guard": "ask"})
        guard = lock.guard(guard.conversation)
    else:
        more = Manifest.parse({"version": 1, "tools": {**TOOLS, "more": {"returns": [], "egress": "none"}}})
        lock = locked(journal=lock.journal, clock=clock, manifest=more)
        guard = lock.guard(guard.conversation)
    again = guard.propose(Call("send", EVE, "b"))
    assert not again.allowed
    if way == "clock put back":
        clock.jump(seconds=2)
        assert guard.propose(Call("send", EVE, "c")).allowed  # nothing was burnt
    elif way not in ("policy", "manifest"):
        state = guard.conversation.state.questions[question].status
        assert state is (Status.EXPIRED if way == "expiry" else Status.VOID)


def test_a_clock_that_is_put_back_revives_nothing() -> None:
    clock = ToldClock()
    guard = reader(locked(clock=clock))
    question = guard.propose(Call("send", EVE, "a")).questions["a"].id
    guard.answer(question, "approve")
    clock.jump(seconds=700)
    guard.call("calc", {}, run=lambda: 1)  # the journal has seen a later time
    clock.jump(seconds=-690)
    assert not guard.propose(Call("send", EVE, "b")).allowed
    assert guard.conversation.state.questions[question].status is Status.EXPIRED


@pytest.mark.parametrize("way", ["fork", "child", "restart", "another"])
def test_a_grant_is_of_no_use_in_another_conversation(way: str) -> None:
    lock = locked()
    guard = reader(lock, "hello")
    question = guard.propose(Call("send", EVE, "a")).questions["a"].id
    guard.answer(question, "approve")
    conversation = guard.conversation
    other = {
        "fork": lambda: conversation.fork(),
        "child": lambda: conversation.child("c"),
        "restart": lambda: conversation.restart_from_trusted(),
        "another": lambda: Conversation.new(),
    }
    theirs = lock.guard(other[way]())
    theirs.call("read_mail", {}, run=lambda: "mail")
    ticket = theirs.propose(Call("send", EVE, "b"))
    assert not ticket.allowed
    assert ticket.questions["b"].id != question
    with pytest.raises(Refused, match="no question"):
        theirs.answer(question, "approve")
    # And there it was not burnt; only a child may bring more than was shown.
    assert bool(guard.propose(Call("send", EVE, "c")).allowed) is (way != "child")


def test_three_denials_of_one_shape_are_the_last() -> None:
    person = Person(NO, NO, NO)
    guard, sent = reader(locked(person)), Sent()
    texts = [guard.call("send", {"to": f"eve{n}@evil.test", "body": "x"}, run=sent).for_model for n in range(4)]
    assert ["Do not call it again" in one for one in texts] == [False, False, True, True]
    assert len(person.asked) == 3
    assert guard.call("send", {"to": "a@evil.test", "body": "x", "bcc": "b@evil.test"}, run=sent).decision.code != (
        "asked_enough"
    )
    guard.conversation.say("do send it")
    assert guard.call("send", EVE, run=sent).decision.code == "no_answer"  # the person speaks: it may be asked again


def test_nobody_is_asked_what_could_change_nothing() -> None:
    person = Person(YES, YES)
    lock = locked(person, settings={"leak_guard": "ask"})
    guard, sent = reader(lock), Sent()
    guard.admit("a page", labels=["untrusted:web"], source="https://evil.test/")
    outcome = guard.call("send", EVE, run=sent)  # the leak guard asks, and the trifecta denies
    assert (outcome.verdict, outcome.decision.who, person.asked) == (Verdict.DENY, Who.RULE, [])
    assert {"trifecta", "leak_guard"} <= set(outcome.decision.codes)


def test_asynchronous_guards_ask_without_holding_up_the_loop() -> None:
    class Later(Person):
        async def ask(self, question: Any, seconds: float) -> Any:
            await asyncio.sleep(0)
            return Person.ask(self, question, seconds)

    async def story() -> None:
        for kind in (Person, Later):
            guard, sent = reader(locked(kind(YES, NO))), Sent()
            assert (await guard.acall("send", EVE, run=sent)).executed
            assert (await guard.acall("send", EVE, run=sent)).decision.who is Who.PERSON
            assert sent.calls == [EVE]

    asyncio.run(story())
    guard, sent = reader(locked(Later(YES))), Sent()
    assert guard.call("send", EVE, run=sent).decision.who is Who.NOBODY  # a coroutine that nobody awaited is no yes


def test_t17_a_round_that_is_cancelled_while_a_person_is_asked() -> None:
    """Nothing of it was made, so nothing of it is in flight or in doubt; the question waits for its end."""
    begun: list[asyncio.Event] = []

    class Slow(Person):
        async def ask(self, question: Any, seconds: float) -> Any:
            begun[0].set()
            await asyncio.sleep(seconds)

    async def story() -> None:
        begun.append(asyncio.Event())
        guard = reader(locked(Slow()))
        calls = [Call("read_page", {}, "a"), Call("send", EVE, "b")]
        ran: list[str] = []
        task = asyncio.create_task(guard.abatch(calls, run=lambda name, _: ran.append(name)))
        await begun[0].wait()
        assert len(guard.conversation.state.in_flight) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        state = guard.conversation.state
        assert (ran, state.in_flight, state.doubts) == ([], {}, frozenset())
        assert "untrusted:web" not in guard.conversation.exposure
        assert [one.status for one in state.questions.values()] == [Status.VOID]  # nobody waits for it any more

    asyncio.run(story())
