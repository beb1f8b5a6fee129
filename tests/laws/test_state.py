"""Proves T2 and T11 of the fold: no sequence of entries, in any order, makes a conversation cleaner; replay agrees.

Two things leave the *exposure* on purpose: the `untrusted` labels of a call in flight whose result did not touch the
outside, and what delegated work might have brought and did not. They never leave the *taint*. The law is stated with
exactly these exceptions, so that no other can hide in it.
Mutations that this file catches: `external` ignored; in-flight labels left out of the exposure; an overflow that
forgets; a decision that replaces another's labels; a result that counts as clean because nobody waited for it.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import MemoryJournal
from interlock.errors import Conflict, InterlockError, JournalUnavailable
from interlock.model import state as states
from interlock.model.digests import digest
from interlock.model.entries import (
    Admitted,
    ChildJoined,
    ChildOpened,
    Decided,
    Entry,
    Failed,
    Observed,
    Opened,
    Resumed,
    Ruling,
    Typed,
    decode,
)
from interlock.model.labels import Label, Leg, leg_of
from interlock.model.state import State, apply, inherited
from tests.strategies import entries, label_tuples

AT = "2026-11-29T12:00:00.000000Z"
CALL = digest("call", b"x")


def fold(found: list[Entry], state: State | None = None) -> State:
    state = state or State()
    for entry in found:
        state = apply(state, entry)
    return state


def allowed(number: int, **labels: Any) -> Decided:
    return Decided(AT, number, f"id-{number}", "", "fetch", CALL, "allow", (), 0, **labels)


def observed(number: int, *, external: bool = True, labels: tuple[Label, ...] = ()) -> Observed:
    return Observed(AT, number, external, digest("content", b""), 0, labels)


def released(state: State, entry: Entry) -> set[Label]:
    """The labels that may leave the exposure with this entry: see the head of this file."""
    if isinstance(entry, ChildJoined):
        child = state.children.get(entry.conversation)
        return set(child.labels) if child else set()
    if not isinstance(entry, Observed | Failed) or entry.external or getattr(entry, "doubt", False):
        return set()
    flight = state.in_flight.get(entry.number)
    return set(flight.untrusted) if flight else set()


@given(found=st.lists(entries(), max_size=25))
def test_t2_no_entry_makes_taint_or_exposure_smaller(found: list[Entry]) -> None:
    state = State()
    for entry in found:
        after = apply(state, entry)
        assert all(one in after.taint for one in state.taint), f"the taint shrank at {entry}"
        for one in state.exposure.labels - released(state, entry):
            assert one in after.exposure, f"{one} left the exposure at {entry}"
        assert state.typed <= after.typed
        assert state.voices <= after.voices or after.deafening
        assert after.deafening >= state.deafening
        assert after.calls >= state.calls
        assert state.texts <= after.texts
        assert state.doubts <= after.doubts
        state = after


@given(found=st.lists(entries(), max_size=25))
def test_t2_whatever_makes_a_decision_stricter_bumps_the_version(found: list[Entry]) -> None:
    state = State()
    for entry in found:
        after = apply(state, entry)
        assert after.version >= state.version
        stricter = not after.exposure <= state.exposure or after.voices != state.voices
        if stricter or after.deafening != state.deafening or after.calls != state.calls:
            assert after.version > state.version, f"{entry} can make a decision stricter"
        state = after


@given(found=st.lists(entries(), max_size=20), seed=st.randoms(use_true_random=False))
def test_t2_every_order_ends_with_the_labels_of_what_certainly_happened(found: list[Entry], seed: Any) -> None:
    """Admitted labels, and the private and egress labels of every allowed call, are there in every order."""
    seed.shuffle(found)
    held = fold(found).exposure
    for entry in found:
        if isinstance(entry, Admitted | Opened | Observed | Resumed | ChildJoined):
            assert all(one in held for one in entry.labels)
        if isinstance(entry, Ruling) and entry.runs:
            assert all(one in held for one in (*entry.private, *entry.opens))


@given(found=st.lists(entries(), max_size=20))
def test_t2_untrusted_labels_of_an_allowed_call_stay_unless_a_result_says_it_was_not_external(
    found: list[Entry],
) -> None:
    excused = {e.number for e in found if isinstance(e, Observed | Failed) and not e.external}
    held = fold(found).exposure
    for entry in found:
        if isinstance(entry, Ruling) and entry.runs and entry.number not in excused:
            assert all(one in held for one in entry.untrusted)


@given(found=st.lists(entries(), max_size=20))
def test_t2_what_a_child_may_bring_stays_until_it_is_joined(found: list[Entry]) -> None:
    joined = {entry.conversation for entry in found if isinstance(entry, ChildJoined)}
    held = fold(found)
    for entry in found:
        if isinstance(entry, ChildOpened) and entry.conversation not in joined:
            assert all(one in held.exposure for one in entry.labels)


@given(found=st.lists(entries(), max_size=20))
def test_t2_resuming_joins_everything_under_way_and_says_that_it_is_in_doubt(found: list[Entry]) -> None:
    state = fold(found)
    after = apply(state, Resumed(AT, "test"))
    assert state.exposure.labels <= after.taint.labels
    assert not after.in_flight
    assert not after.children
    assert {flight.call for flight in state.in_flight.values()} <= after.doubts
    voices, anybody = state.heard()
    assert after.deafening >= anybody
    assert voices <= after.voices or after.deafening


@given(found=st.lists(entries(), max_size=20))
def test_t2_a_fork_begins_with_the_exposure_and_a_restart_with_the_channels(found: list[Entry]) -> None:
    state = fold(found)
    fork = apply(State(), inherited(state, AT, "c-2"))
    assert state.exposure.labels <= fork.taint.labels
    assert fork.typed <= state.typed
    assert fork.texts <= state.texts
    voices, anybody = state.heard()
    if any(leg_of(one) is Leg.UNTRUSTED for one in fork.taint):
        assert fork.deafening or (not anybody and voices <= fork.voices)
    anew = apply(State(), inherited(state, AT, "c-3", restart=True))
    assert anew.taint.labels == {one for one in state.exposure if leg_of(one) is Leg.EGRESS}
    assert not anew.typed
    for other in (fork, anew):
        assert state.doubts <= other.doubts
        assert {flight.call for flight in state.in_flight.values()} <= other.doubts


@given(found=st.lists(entries(), max_size=20))
def test_t2_calls_that_were_not_allowed_add_nothing(found: list[Entry]) -> None:
    refused = [entry for entry in found if isinstance(entry, Decided) and entry.verdict != "allow"]
    before = fold([allowed(1, private=(Label("private:mail"),))])
    after = fold(refused, before)
    assert after.exposure.labels == before.exposure.labels
    assert dict(after.in_flight) == dict(before.in_flight)


@pytest.mark.parametrize("external", [True, False])
@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("doubt", [True, False])
def test_t2_the_table_of_landing(external: bool, failed: bool, doubt: bool) -> None:
    """Private and egress labels always land; untrusted ones when the outside was touched, or nobody knows."""
    labels = {
        "private": (Label("private:mail"),),
        "untrusted": (Label("untrusted:web"),),
        "opens": (Label("egress:share"),),
    }
    end: Entry = Failed(AT, 1, external, "TimeoutError", doubt=doubt) if failed else observed(1, external=external)
    state = fold([allowed(1, **labels), end])
    wanted = {"private:mail", "egress:share"} | ({"untrusted:web"} if external or (failed and doubt) else set())
    assert state.taint.labels == wanted
    assert not state.in_flight


def test_t2_labels_that_a_result_carries_land_though_it_was_not_external() -> None:
    state = fold([allowed(1), observed(1, external=False, labels=(Label("untrusted:mail"),))])
    assert "untrusted:mail" in state.taint


@given(number=st.integers(1, 5), labels=label_tuples(max_size=3))
def test_t2_an_outcome_that_nobody_waits_for_joins_its_labels(number: int, labels: tuple[Label, ...]) -> None:
    state = fold([observed(number, labels=labels), observed(number, external=False, labels=labels)])
    assert state.taint.labels == set(labels)


def test_t2_more_calls_in_flight_than_are_remembered_are_joined() -> None:
    count = states.MAX_IN_FLIGHT + 5
    found = [
        allowed(
            number,
            private=(Label(f"private:p{number}"),),
            untrusted=(Label("untrusted:web"),),
            opens=(Label("egress:channel"),),
            voices=(digest("voice", b"%d" % number),),
        )
        for number in range(1, count + 1)
    ]
    state = fold(found)
    assert len(state.in_flight) == states.MAX_IN_FLIGHT
    exposure = state.exposure
    assert all(f"private:p{number}" in exposure for number in range(1, count + 1))
    assert {"untrusted:web", "egress:channel"} <= state.taint.labels
    # Those that were joined have spoken, as far as anybody knows.
    assert state.deafening or {digest("voice", b"%d" % number) for number in range(1, 6)} <= state.voices


def test_t2_more_voices_than_are_remembered_make_everybody_one() -> None:
    state = State()
    for number in range(1, states.MAX_VOICES + 3):
        voices = (digest("voice", b"%d" % number),)
        state = fold([allowed(number, untrusted=(Label("untrusted:web"),), voices=voices), observed(number)], state)
    assert state.deafening
    assert len(state.voices) <= states.MAX_VOICES


def test_more_typed_values_than_are_remembered_vouch_for_nothing() -> None:
    def typed(number: int) -> Typed:
        values = tuple(digest("value", b"%d" % (number * 1000 + n)) for n in range(1000))
        return Typed(AT, digest("content", b""), 0, values)

    state = fold([typed(number) for number in range(states.MAX_TYPED // 1000 + 2)])
    assert len(state.typed) == states.MAX_TYPED


def test_only_untrusted_content_has_a_voice() -> None:
    voices = (digest("voice", b"corp"),)
    quiet = fold([allowed(1, private=(Label("private:mail"),), voices=voices), observed(1)])
    assert not quiet.voices
    loud = fold([allowed(1, untrusted=(Label("untrusted:web"),), voices=voices), observed(1)])
    assert loud.voices == set(voices)
    silent = fold([allowed(1, untrusted=(Label("untrusted:web"),), voices=voices), observed(1, external=False)])
    assert not silent.voices


# --- T11: the journal's state is the fold of its entries --------------------------------------------------------------


@given(
    found=st.lists(entries().filter(lambda entry: not isinstance(entry, Opened)), max_size=15), cut=st.integers(0, 15)
)
def test_t11_the_state_of_a_journal_is_the_fold_of_what_it_stored(found: list[Entry], cut: int) -> None:
    journal = MemoryJournal()
    opened = Opened(AT, "c-1", labels=(Label("private:mail"),))
    returned = journal.open([opened, *found[:cut]])
    assert returned == journal.state("c-1")
    for entry in found[cut:]:
        returned = journal.append("c-1", [entry], expected=journal.state("c-1").version)
        assert returned == journal.state("c-1")
    stored = [decode(sealed.body) for sealed in journal.entries("c-1")]
    assert stored == [opened, *found]
    assert fold(stored) == journal.state("c-1")


@given(found=st.lists(entries(), max_size=10))
def test_t11_the_fold_is_a_function(found: list[Entry]) -> None:
    assert fold(found) == fold(found)


def test_t8_a_stale_append_changes_nothing() -> None:
    journal = MemoryJournal()
    journal.open([Opened(AT, "c-1")])
    version = journal.state("c-1").version
    admitted = Admitted(AT, "x", (Label("untrusted:web"),), digest("content", b""), 0)
    journal.append("c-1", [admitted], expected=version)
    before = journal.entries("c-1")
    for stale in (version, version - 1, version + 2, 0, -1):
        with pytest.raises(Conflict):
            journal.append("c-1", [allowed(1)], expected=stale)
    assert journal.entries("c-1") == before
    journal.append("c-1", [allowed(1)])  # facts hold under any version


def test_a_journal_writes_all_entries_or_none() -> None:
    journal = MemoryJournal()
    journal.open([Opened(AT, "c-1")])
    before = journal.entries("c-1")
    bad = Admitted(AT, "x", (Label("no label"),), digest("content", b""), 0)
    with pytest.raises((InterlockError, ValueError)):
        journal.append("c-1", [allowed(1), bad])
    assert journal.entries("c-1") == before
    with pytest.raises((InterlockError, ValueError)):
        journal.open([Opened(AT, "c-2"), bad])
    with pytest.raises(JournalUnavailable):
        journal.state("c-2")  # absence is never cleanliness
    journal.open([Opened(AT, "c-2")])


def test_a_journal_opens_a_conversation_once_and_begins_with_opened() -> None:
    journal = MemoryJournal()
    for wrong in ([], [allowed(1)]):
        with pytest.raises(JournalUnavailable):
            journal.open(wrong)
    journal.open([Opened(AT, "c-1")])
    with pytest.raises(Conflict):
        journal.open([Opened(AT, "c-1")])
    for ask in (journal.state, journal.entries, journal.head):
        with pytest.raises(JournalUnavailable):
            ask("c-9")
    with pytest.raises(JournalUnavailable):
        journal.append("c-9", [allowed(1)])
    assert leg_of(Label("private:x")) is Leg.PRIVATE
