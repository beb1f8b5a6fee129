"""Proves that whichever conversation a host may mean, it gets one that holds at least as much (T2).

A machine notes, forgets and recognises conversations of two principals whose call ids repeat, and remembers everything
itself. Mutations that this file catches: an unknown id that starts a fresh conversation; only the last of several
conversations joined; a conversation that is forgotten with its labels; one principal's conversation given to another;
results without their calls that are overlooked.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Conversation, Identities, Message, ToolUse
from interlock.gate import identity
from interlock.gate.identity import MAX_OWNERS, calls_in
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.entries import Admitted
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Role, ToolAnswer

AT = "2026-11-29T12:00:00.000000Z"


def uses(*ids: str) -> Message:
    return Message.assistant("", *(ToolUse(one, "calc", {}) for one in ids))


def results(*ids: str) -> Message:
    return Message(Role.TOOL, tuple(ToolAnswer(one, "4") for one in ids))


def holding(*labels: str) -> Conversation:
    return Conversation(labels=labels)


def holds(conversation: Conversation, labels: Iterable[str]) -> bool:
    return all(one in conversation.taint for one in labels)


# --- by call ids ------------------------------------------------------------------------------------------------------


def test_calls_are_found_in_uses_and_in_results() -> None:
    assert calls_in([Message.user("hello"), uses("a", "b"), results("b", "c")]) == {"a", "b", "c"}
    assert calls_in([]) == set()


def test_a_conversation_is_known_by_the_ids_of_its_calls() -> None:
    known, one, other = Identities(), holding("private:mail"), holding("untrusted:web")
    one.push(uses("toolu_1"))
    known.note(one)
    known.note(other, ["toolu_2"])
    assert known.recognise([uses("toolu_1"), results("toolu_1")]) is one
    assert known.recognise(call_ids=["toolu_2"]) is other
    assert set(one.taint) == {"private:mail"}
    assert set(other.taint) == {"untrusted:web"}


def test_a_delta_is_enough() -> None:
    """A host that sends only what is new sends the result of a call that it does not repeat."""
    known, one = Identities(), holding("private:mail")
    known.note(one, ["a"])
    known.note(holding(), ["b"])
    assert known.recognise([results("a")]) is one
    assert known.recognise([Message.user("and now?"), results("a")]) is one


def test_a_host_that_forks_its_transcript_gets_one_that_holds_both() -> None:
    known, one = Identities(), holding("private:mail")
    one.push(uses("a"))
    one.push(results("a"))
    known.note(one)
    fork = one.fork()
    fork.record(Admitted(AT, "test", (Label("untrusted:web"),), NO_DIGEST, 0))
    known.note(fork, ["b"])
    assert known.recognise(call_ids=["a"]) is fork
    assert holds(fork, ["private:mail", "untrusted:web"])
    assert known.recognise([*one.messages, uses("b")]) is fork
    assert set(one.taint) == {"private:mail"}


def test_the_one_that_was_active_last_is_meant() -> None:
    known, one, other = Identities(), holding("private:a"), holding("private:b")
    known.note(one, ["call_0"])
    known.note(other, ["call_0"])
    assert known.recognise(call_ids=["call_0"]) is other
    assert holds(other, ["private:a", "private:b"])
    known.note(one)
    assert known.recognise(call_ids=["call_0"]) is one
    assert holds(one, ["private:a", "private:b"])


def test_ids_of_two_conversations_mean_both() -> None:
    known, one, other = Identities(), holding("private:a"), holding("private:b")
    known.note(one, ["a"])
    known.note(other, ["b"])
    assert holds(known.recognise(call_ids=["a", "b"]), ["private:a", "private:b"])


# --- what is not known ------------------------------------------------------------------------------------------------


def test_an_unknown_call_had_every_leg() -> None:
    known, one = Identities(), holding("private:mail")
    known.note(one, ["a"])
    assert known.recognise(call_ids=["a", "x"]) is one
    assert holds(one, EVERY_LEG)
    other = known.recognise(call_ids=["x"])
    assert other is known.bucket()
    assert holds(other, [*EVERY_LEG, "private:mail"])


def test_without_an_id_it_may_be_any() -> None:
    known = Identities()
    assert not known.recognise().taint
    for label in ("private:a", "untrusted:b"):
        known.note(holding(label), [label])
    assert known.recognise([Message.user("hello")]) is known.bucket()
    assert set(known.bucket().taint) == {"private:a", "untrusted:b"}


def test_ids_that_come_again_in_every_conversation() -> None:
    known, all_of_them = Identities(), [holding(f"private:n{number}") for number in range(MAX_OWNERS)]
    for one in all_of_them:
        known.note(one, ["call_0"])
    last = known.recognise([uses("call_0")])
    assert last is all_of_them[-1]
    assert set(last.taint) == {f"private:n{number}" for number in range(MAX_OWNERS)}
    known.note(holding("private:one_more"), ["call_0"])
    # Too many to tell apart: whichever there was.
    assert holds(known.recognise([uses("call_0")]), [*EVERY_LEG, "private:one_more", "private:n0"])


@pytest.mark.parametrize("limits", [{"conversations": 2}, {"calls": 2}])
def test_what_is_forgotten_is_in_the_bucket(limits: dict[str, int]) -> None:
    known = Identities(**limits)
    made = [holding(f"private:n{number}") for number in range(6)]
    for number, one in enumerate(made):
        known.note(one, [f"id_{number}"])
    assert holds(known.recognise(call_ids=["id_0"]), [*EVERY_LEG, "private:n0"])
    assert holds(known.recognise(), [f"private:n{number}" for number in range(6)])
    assert known.recognise(call_ids=["id_5"]) is made[5]
    assert len(known._known) <= limits.get("conversations", 6)
    assert len(known._owners) <= limits.get("calls", 6)


def test_who_comes_back_is_known_again() -> None:
    known, one = Identities(conversations=1), holding("private:a")
    known.note(one, ["a"])
    known.note(holding("private:b"), ["b"])
    known.note(one)
    assert known.recognise(call_ids=["a"]) is one
    assert holds(known.recognise(call_ids=["b"]), [*EVERY_LEG, "private:b"])


def test_buckets_are_bounded_too() -> None:
    known = Identities(conversations=3)
    for number in range(10):
        known.note(holding(f"private:n{number}"), principal=f"p{number}")
        known.recognise(principal=f"p{number}")
    assert len(known._buckets) <= 3
    assert holds(known.bucket("p0"), ["private:n0"])


# --- whose ------------------------------------------------------------------------------------------------------------


def test_nothing_of_another_principal_is_handed_out() -> None:
    known, alices = Identities(), holding("private:of_alice")
    alices.push(Message.user("alice's secret"))
    known.note(alices, ["a"], principal="alice")
    for asked in (known.recognise(call_ids=["a"], principal="bob"), known.recognise(principal="bob")):
        assert asked is not alices
        assert asked is known.bucket("bob")
        assert asked.is_empty()
        assert "private:of_alice" not in asked.taint.labels
    assert known.bucket("bob") is not known.bucket("alice")
    assert known.recognise(call_ids=["a"], principal="alice") is alices
    assert set(alices.taint) == {"private:of_alice"}


def test_names_of_principals_and_ids_are_not_put_together() -> None:
    known, one, other = Identities(), holding("private:one"), holding("private:other")
    known.note(one, ["b:c"], principal="a")
    known.note(other, ["c"], principal="a:b")
    assert known.recognise(call_ids=["b:c"], principal="a") is one
    assert known.recognise(call_ids=["c"], principal="a:b") is other
    assert known.recognise(call_ids=["*"], principal="a") is known.bucket("a")  # no id stands for all


def test_a_copy_is_another_conversation() -> None:
    known, one = Identities(), holding("private:mail")
    known.note(one, ["a"])
    copied = copy.deepcopy(one)
    known.note(copied, ["b"])
    assert known.recognise(call_ids=["a"]) is one
    assert known.recognise(call_ids=["b"]) is copied


# --- the machine ------------------------------------------------------------------------------------------------------


IDS = ["call_0", "call_1", "x"]
PRINCIPALS = ["alice", "bob"]
VOICES = [digest("voice", bytes([number])) for number in range(4)]


@dataclass
class Known:
    """Everything that there ever was of one conversation."""

    conversation: Conversation
    principal: str
    ids: set[str] = field(default_factory=set)


class Hosts(RuleBasedStateMachine):
    """Hosts of two principals, and an index that forgets early."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Identities(conversations=3, calls=2)
        self.all: list[Known] = []
        self.labels: dict[str, set[str]] = {name: set() for name in PRINCIPALS}

    @precondition(lambda self: len(self.all) < 8)
    @rule(principal=st.sampled_from(PRINCIPALS), ids=st.lists(st.sampled_from(IDS), max_size=2))
    def begun(self, principal: str, ids: list[str]) -> None:
        conversation = holding(f"private:{principal}_{len(self.all)}")
        self.labels[principal] |= set(conversation.taint)
        self.all.append(Known(conversation, principal))
        self.noted(len(self.all) - 1, ids)

    @precondition(lambda self: self.all)
    @rule(place=st.integers(0, 9), ids=st.lists(st.sampled_from(IDS), max_size=2))
    def noted(self, place: int, ids: list[str]) -> None:
        one = self.all[place % len(self.all)]
        one.ids |= set(ids)
        self.known.note(one.conversation, ids, principal=one.principal)

    @precondition(lambda self: self.all)
    @rule(place=st.integers(0, 9), number=st.integers(0, 3), voice=st.sampled_from(VOICES))
    def learned(self, place: int, number: int, voice: Digest) -> None:
        """A page is read, and the host says so, as it does after every turn."""
        one = self.all[place % len(self.all)]
        label = Label(f"untrusted:{one.principal}_{number}")
        one.conversation.record(Admitted(AT, "page", (label,), NO_DIGEST, 0, (voice,)))
        self.labels[one.principal].add(label)
        self.noted(place, [])

    @rule(principal=st.sampled_from(PRINCIPALS), ids=st.lists(st.sampled_from(IDS), max_size=2), deltas=st.booleans())
    def recognised(self, principal: str, ids: list[str], deltas: bool) -> None:
        if deltas:
            found = self.known.recognise([results(*ids)], principal=principal)
        else:
            found = self.known.recognise([uses(*ids)], ids, principal=principal)
        theirs = [one for one in self.all if one.principal == principal]
        meant = [one for one in theirs if one.ids & set(ids)] if ids else theirs
        for one in meant:
            assert holds(found, one.conversation.taint)
            voices, state = one.conversation.state.voices, found.state
            assert voices <= state.voices or state.deafening
        if set(ids) - {call_id for one in theirs for call_id in one.ids}:
            assert holds(found, EVERY_LEG)
        if not ids:
            assert found is self.known.bucket(principal)
        assert found in [self.known.bucket(principal), *(one.conversation for one in theirs)]

    @invariant()
    def nothing_is_handed_to_others(self) -> None:
        for one in self.all:
            self.only_theirs(one.conversation, one.principal)
        for principal in PRINCIPALS:
            self.only_theirs(self.known.bucket(principal), principal)

    def only_theirs(self, conversation: Conversation, principal: str) -> None:
        """Labels of the principal's conversations, or the unknown; and none of the messages of others."""
        assert set(conversation.taint) <= self.labels[principal] | set(EVERY_LEG)
        assert conversation.is_empty()

    @invariant()
    def it_is_bounded(self) -> None:
        assert len(self.known._known) <= 3
        assert len(self.known._owners) <= 2


TestHosts = Hosts.TestCase
TestHosts.settings = settings(stateful_step_count=20)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_many_threads() -> None:
    known, errors, begin = Identities(conversations=8, calls=16), list[BaseException](), threading.Barrier(4)

    def work(name: int) -> None:
        begin.wait(30)
        try:
            for number in range(60):
                one = holding(f"private:n{name}_{number}")
                known.note(one, ["call_0", f"id_{name}_{number}"])
                assert holds(known.recognise(call_ids=["call_0"]), one.taint)
                assert holds(known.recognise(), one.taint)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(known._known) <= 8
    assert holds(known.recognise(), [f"private:n{name}_{number}" for name in range(4) for number in range(60)])


def test_the_limits_are_what_they_say() -> None:
    assert identity.MAX_CONVERSATIONS == 10_000
    assert identity.MAX_CALLS == 1_000_000
