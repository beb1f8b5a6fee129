"""A round ended, its calls were denied, and yet a yes to one of them was still good.

* A person refused at the terminal while somebody else approved elsewhere: the call was denied, the grant lived on, and
  the next identical call of the model ran without a question. The same after an answer that came too late to be
  recorded, and after a cancelled round: its question stayed open, and a later yes was kept for whoever came next.
* A turn with twenty calls of one shape was twenty questions, though three denials are to be the last.
* After eight answers in a row the ticket said that a person was still being asked. Nobody was.
* The ticket of a refused round still held its questions.
* Whatever a channel's error said went into the journal, at any length.

Found by review.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Answer, Call
from interlock.errors import ApproverUnavailable
from interlock.gate.conversation import Ledger
from interlock.model.grants import Status
from tests.approvals.desk import EVE, KIM, NO, YES, Person, Sent, entries, locked, reader


@pytest.mark.parametrize("answer", [NO, Answer("edit", "kim", Call("send", KIM))], ids=["no", "edit"])
def test_a_no_here_outweighs_a_yes_elsewhere(answer: Answer) -> None:
    person, sent = Person(answer), Sent()
    guard = reader(locked(person))
    person.meanwhile = lambda one: guard.answer(one.id, "approve", by="somebody else")
    outcome = guard.call("send", EVE, run=sent)
    assert (outcome.executed, outcome.decision.code) == (False, "refused")
    person.meanwhile = lambda _: None
    assert not guard.call("send", EVE, run=sent).executed  # asked again, and nobody answers
    assert (sent.calls, len(person.asked)) == ([], 2)


def test_a_yes_in_the_last_moment_is_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the journal and the record that nobody answered."""
    person, sent = Person(None), Sent()
    guard = reader(locked(person))
    states, state = 0, Ledger.state

    def late(self: Ledger, conversation: str) -> Any:
        nonlocal states
        now = state(self, conversation)
        if person.asked and any(one.status is Status.PENDING for one in now.questions.values()):
            states += 1
            if states == 1:
                guard.answer(person.asked[0].id, "approve", by="somebody else")
        return now

    monkeypatch.setattr(Ledger, "state", late)
    assert guard.call("send", EVE, run=sent).executed
    assert not any(one.open for one in guard.conversation.state.questions.values())


class Away(KeyboardInterrupt):
    """The person pressed Ctrl-C."""


def test_a_question_of_a_cancelled_round_is_closed() -> None:
    person = Person(YES, Away())
    guard = reader(locked(person))
    calls = [Call("send", EVE, "a"), Call("send", KIM, "b")]
    with pytest.raises(Away):
        guard.batch(calls, run=lambda *_: "sent")
    assert {one.status for one in guard.conversation.state.questions.values()} == {Status.VOID}
    assert not guard.propose(*calls).allowed


def test_three_denials_are_the_last_within_one_turn_too() -> None:
    person = Person(*[NO] * 20)
    guard = reader(locked(person))
    calls = [Call("send", {"to": f"{place}@evil.test", "body": "x"}, f"c{place}") for place in range(20)]
    outcomes = guard.batch(calls, run=lambda *_: "sent")
    assert (len(person.asked), len(outcomes)) == (3, 20)
    assert {one.decision.code for one in outcomes[3:]} == {"asked_enough"}
    assert all(one.decision.terminal for one in outcomes[2:])
    assert not any(one.open for one in guard.conversation.state.questions.values())


def test_nothing_waits_after_many_answers_or_a_no() -> None:
    edits = [Answer("edit", "kim", Call("send", {"to": f"{n}@x.example", "k" * (n + 1): ""})) for n in range(9)]
    for answers in (edits, [NO]):
        guard = reader(locked(Person(*answers)))
        ticket = guard.propose_and_ask(Call("send", EVE, "a"))
        assert (ticket.questions, ticket.allowed) == ({}, {})
        assert ticket.outcomes["a"].verdict.value == "deny"
        assert not any(one.open for one in guard.conversation.state.questions.values())


def test_a_question_shown_anew_is_about_no_more_than_it_shows() -> None:
    """A question about two identical calls was left open by a crash, and one call was proposed. The person was shown
    one call, and their yes was good for two."""
    guard = reader(locked())
    two = guard.propose(Call("send", EVE, "a"), Call("send", EVE, "b")).questions["a"]
    one = guard.propose(Call("send", EVE, "c")).questions["c"]
    assert (len(two.call_ids), len(one.call_ids)) == (2, 1)
    guard.answer(one.id, "approve", by="kim")
    assert [bool(guard.propose(Call("send", EVE, name)).allowed) for name in "de"] == [True, False]

    guard = reader(locked())  # and the same with what came beside it
    beside = guard.propose(Call("send", EVE, "a"), Call("read_page", {}, "b")).questions["a"]
    alone = guard.propose(Call("send", KIM, "x")).questions["x"]
    assert "untrusted:web" in beside.labels
    assert beside.id != alone.id


def test_what_a_channel_says_goes_on_record_escaped_and_short() -> None:
    lock = locked(Person(ApproverUnavailable("\x1b[2J" + "the plan " * 1000)))
    guard = reader(lock)
    guard.call("send", EVE, run=Sent())
    (answered,) = [one for one in entries(lock, guard) if one.kind == "answered"]
    assert answered.by.isprintable()
    assert len(answered.by) <= 256
