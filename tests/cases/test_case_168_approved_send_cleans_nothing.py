"""Case 168: a person approved one send, and from then on everything goes out.

An approval lets one call run. What has entered the conversation stays, what the call opens comes on top, and the next
send is asked for itself. The honest twin is the person who approves that one as well.
"""

from __future__ import annotations

from tests.approvals.desk import EVE, KIM, YES, Person, Sent, locked, reader


def test_attack_the_next_send_is_asked_again() -> None:
    person, sent = Person(YES, None, None), Sent()
    guard = reader(locked(person))
    guard.admit("a page", labels=["untrusted:web"], source="https://evil.test/")
    before = set(guard.conversation.exposure)
    assert guard.call("send", EVE, run=sent).executed
    assert set(guard.conversation.exposure) >= before
    for arguments in (KIM, EVE):
        assert guard.call("send", arguments, run=sent).decision.code == "no_answer"
    assert (len(person.asked), sent.calls) == (3, [EVE])


def test_attack_an_approved_send_teaches_nothing_about_its_receiver() -> None:
    """The words of an approved call are on record as the model's, so nothing of it counts as typed."""
    guard, sent = reader(locked(Person(YES, None))), Sent()
    guard.call("send", EVE, run=sent)
    assert guard.call("send", {**EVE, "body": "more"}, run=sent).decision.code == "no_answer"
    (first, second) = [one.payload["body"] for one in guard._source().world.approver.asked]  # type: ignore[union-attr]
    assert (first, second) == ("the plan", "more")
    assert guard.conversation.state.provenance.said  # as an allowed call's


def test_honest_a_person_who_approves_both() -> None:
    guard, sent = reader(locked(Person(YES, YES))), Sent()
    assert guard.call("send", EVE, run=sent).executed
    assert guard.call("send", KIM, run=sent).executed
