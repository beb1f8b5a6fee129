"""Cases 158 and 160: a conversation goes on for months, each decision is slower than the last, and the state grows.

What is asked after thousands of calls is as large as after ten, and what is kept is bounded in every direction: labels,
parties, typed values, calls without an outcome, children that never came back. Each bound falls to the strict side, so
filling it up is no attack. The explanation still names the first call. The honest twin goes on working at the end as at
the beginning, also when its reading was delegated.
"""

from __future__ import annotations

from interlock import Call, Conversation, Interlock, MemoryJournal, ToolResult
from interlock.model.digests import Digest, content_digest, voice_digest
from interlock.model.entries import Admitted, Decided, Observed, Opened, Typed
from interlock.model.labels import Label
from interlock.model.state import MAX_CHILDREN, MAX_IN_FLIGHT, MAX_LABELS, MAX_TYPED, MAX_VOICES, State, apply
from interlock.model.tools import ToolId
from tests.cases.desk import EVIL, MANIFEST, Engine, did, got, shared

AT = "2026-11-29T12:00:00.000000Z"
NOTHING = content_digest("")


def folded(*entries: object) -> State:
    state = apply(State(), Opened(AT, "c-1"))
    for entry in entries:
        state = apply(state, entry)  # type: ignore[arg-type]
    return state


def test_the_question_does_not_grow_with_the_conversation() -> None:
    sizes: list[int] = []

    def say(document: bytes) -> object:
        sizes.append(len(document))
        return shared().engine.evaluate(document)

    guard = Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(say)).guard(Conversation.new())
    for _ in range(10):
        did(guard, "read_mail", {"query": "today"})
    early = did(guard, "send_email", EVIL)
    for _ in range(1000):
        did(guard, "read_mail", {"query": "today"})
    asked = len(sizes)
    late = did(guard, "send_email", EVIL)
    assert got(early) == got(late) == ("deny", "trifecta")
    assert sizes[10] == sizes[asked]
    assert asked < 1020  # a refusal asks a few times more, and always the same number
    # The first source of each label is still the first call.
    assert {cause.source.call for cause in late.decision.causes if cause.source} == {1}


def test_attack_so_many_labels_that_one_falls_out() -> None:
    state = folded(
        *(Admitted(AT, "x", (Label(f"untrusted:s{number}"),), NOTHING, 0) for number in range(MAX_LABELS + 50)),
        Admitted(AT, "x", (Label("private:late"),), NOTHING, 0),
    )
    assert len(state.taint) <= MAX_LABELS + 3
    for held in ("untrusted:s0", "untrusted:s300", "private:late", "private:anything"):
        assert held in state.taint


def test_attack_so_many_parties_that_one_is_forgotten() -> None:
    label = (Label("untrusted:web"),)
    voices = [voice_digest(f"host{number}.example") for number in range(MAX_VOICES + 10)]
    state = folded(
        *(Admitted(AT, "x", label, NOTHING, 0, tuple(voices[at : at + 100])) for at in range(0, len(voices), 100))
    )
    assert len(state.voices) <= MAX_VOICES
    assert state.deafening


def test_attack_so_many_typed_values_that_memory_grows() -> None:
    values = [Digest(f"sha256:{number:064d}") for number in range(MAX_TYPED + 500)]
    state = folded(*(Typed(AT, NOTHING, 0, tuple(values[at : at + 1000])) for at in range(0, len(values), 1000)))
    assert len(state.typed) == MAX_TYPED
    assert values[-1] not in state.typed


def test_attack_so_many_calls_without_an_outcome_that_one_is_dropped() -> None:
    state = folded(
        *(
            Decided(AT, number, "", "", "read", NOTHING, "allow", (), number, private=(Label(f"private:n{number}"),))
            for number in range(1, MAX_IN_FLIGHT + 20)
        )
    )
    assert len(state.in_flight) == MAX_IN_FLIGHT
    assert "private:n1" in state.taint
    assert "private:n1" in state.exposure
    assert f"private:n{MAX_IN_FLIGHT + 19}" in state.exposure


def test_attack_ten_thousand_events() -> None:
    def event(number: int) -> object:
        if number % 3:
            return Decided(
                AT, number, "", "", "read", NOTHING, "allow", (), number, untrusted=(Label("untrusted:web"),)
            )
        return Observed(AT, number - 1, True, NOTHING, 0, (Label("untrusted:web"),))

    state = folded(*(event(number) for number in range(1, 10_000)))
    assert len(state.in_flight) <= MAX_IN_FLIGHT
    assert len(state.taint) == 1
    assert len(repr(state)) < 400_000


def test_attack_so_many_children_that_one_is_forgotten() -> None:
    parent = Conversation.new()
    reads, writes = ([MANIFEST.spec(ToolId("", name))] for name in ("read_mail", "calc"))
    parent.child("read", tools=reads)
    for _ in range(MAX_CHILDREN + 20):
        parent.child("add", tools=writes)
    assert len(parent.state.children) == MAX_CHILDREN
    assert {"private:mail", "untrusted:mail"} <= set(parent.taint)


def test_honest_reading_that_is_delegated_again_and_again() -> None:
    """Each reader comes back, and what is left of a thousand of them is their labels."""
    guard = shared().guard(Conversation.user("Write to kim@corp.example please."))
    parent = guard.conversation
    reads = [MANIFEST.spec(ToolId("", "page_text"))]
    for number in range(300):
        with parent.child("read it", tools=reads) as child:
            did(shared().guard(child), "page_text", {"page": str(number)})
    assert not parent.state.children
    assert set(parent.taint) == {"untrusted:web"}
    assert len(repr(parent.state)) < 5000
    assert did(guard, "read_file", {"path": "plan.txt"}).executed
    assert did(guard, "send_email", {**EVIL, "to": "kim@corp.example"}).executed


def test_honest_it_still_works_at_the_end() -> None:
    guard = shared().guard(Conversation.user("Write to kim@corp.example please."))
    for number in range(300):
        ticket = guard.propose(Call("page_text", {"page": str(number)}, "a"))
        guard.observe(ticket, "a", ToolResult("x"))
    assert did(guard, "read_file", {"path": "plan.txt"}).executed
    assert did(guard, "send_email", {**EVIL, "to": "kim@corp.example"}).executed
