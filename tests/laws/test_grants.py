"""Proves T9 and T11 of the fold: the table of a grant's life is all there is, and no entry in any order gets round it.

Mutations that this file catches: a closed question that lives again; a grant without an answer; an answer from another
conversation; a checkpoint that loses or makes a grant; a bound that makes one.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import Tampered
from interlock.model import grants
from interlock.model.checkpoints import read_state, state_body
from interlock.model.digests import digest
from interlock.model.entries import Answered, Asked, Consumed, Entry, Granted, Opened, decode, encode
from interlock.model.grants import OPEN, TRANSITIONS, Bound, Held, Status, Step
from interlock.model.labels import Label
from interlock.model.state import State, apply, inherited
from interlock.model.tools import ToolId
from tests.strategies import entries

AT = "2026-11-29T12:00:00.000000Z"
LATER = "2026-11-29T12:10:00.000000Z"
CALL = digest("call", b"x")
BOUND = Bound(
    CALL,
    ToolId("", "send"),
    digest("tool", b"send"),
    frozenset({Label("private:mail")}),
    frozenset({"leak_guard"}),
    "r",
    "m",
    digest("operands", b""),
)


def asked(question: str = "q-1", **changes: object) -> Asked:
    entry = Asked(
        AT,
        question,
        "c-1",
        1,
        1,
        CALL,
        "",
        "send",
        BOUND.spec,
        (Label("private:mail"),),
        ("leak_guard",),
        "r",
        "m",
        BOUND.operands,
        digest("shape", b"s"),
        digest("question", b"q"),
        LATER,
    )
    return replace(entry, **changes)  # type: ignore[arg-type]  # fields by name


def fold(*found: Entry) -> State:
    state = apply(State(), Opened(AT, "c-1"))
    for entry in found:
        state = apply(state, entry)
    return state


YES = (Answered(AT, "q-1", "approve", "kim"), Granted(AT, "q-1", "c-1", CALL, LATER))


def test_the_table_is_the_picture() -> None:
    """What is not drawn at the top of the module is not there, and what is closed has no way out."""
    assert {(before.value, step.value): after.value for (before, step), after in TRANSITIONS.items()} == {
        ("pending", "approve"): "granted",
        ("pending", "refuse"): "refused",
        ("pending", "expire"): "expired",
        ("pending", "void"): "void",
        ("granted", "consume"): "used",
        ("granted", "expire"): "expired",
        ("granted", "void"): "void",
    }
    one = Held(AT, LATER, 1, 1, BOUND, digest("shape", b""), digest("question", b""))
    for status in Status:
        for step in Step:
            after = replace(one, status=status).took(step).status
            assert after is TRANSITIONS.get((status, step), status)
            assert status in OPEN or after is status


@given(found=st.lists(entries(), max_size=25))
def test_t9_no_entry_gets_round_the_table(found: list[Entry]) -> None:
    state = apply(State(), Opened(AT, "c-1"))
    uses: dict[str, int] = {}
    for entry in found:
        after = apply(state, entry)
        for name, one in after.questions.items():
            before = state.questions.get(name)
            if before is None:
                assert isinstance(entry, Asked)
                assert one.status is not Status.GRANTED
                uses[name] = one.left
                continue
            assert before.status in OPEN or one == before, f"{name} changed after its end at {entry}"
            if one.status is Status.GRANTED and before.status is not Status.GRANTED:
                assert isinstance(entry, Granted)
                assert before.approved
                assert entry.conversation == state.conversation
            assert one.left <= before.left <= uses[name]
            assert one.bound == before.bound
        assert len(after.questions) <= grants.MAX_HELD
        if any(
            one.open and not after.questions[name].open
            for name, one in state.questions.items()
            if name in after.questions
        ):
            assert after.version > state.version, f"a grant ended at {entry}, and a decision would not notice"
        state = after
    assert not inherited_questions(state)


def inherited_questions(state: State) -> bool:
    """Whatever begins with this state begins without its grants."""
    return any(
        bool(apply(State(), inherited(state, AT, "c-9", restart=restart)).questions) for restart in (False, True)
    )


@given(found=st.lists(entries(), max_size=25))
def test_t11_checkpoints_carry_questions_and_grants(found: list[Entry]) -> None:
    state = fold(asked(), *YES, *found)
    assert read_state(state_body(state)) == state
    lost = state_body(state).replace(b'"questions"', b'"question"')
    with pytest.raises(Tampered):
        read_state(lost)


@given(entry=entries())
def test_entries_are_read_as_they_were_written(entry: Entry) -> None:
    assert decode(encode(entry)) == entry


@pytest.mark.parametrize(
    "found",
    [
        (YES[1],),
        (YES[0],),
        (Answered(AT, "q-1", "refuse", "kim"), *YES),
        (Answered(AT, "q-1", "none", "x"), *YES),
        (YES[0], replace(YES[1], conversation="c-2")),
        (YES[0], replace(YES[1], call=digest("call", b"y"))),
        (YES[0], replace(YES[1], at=LATER)),
        (*YES, Consumed(AT, "q-1", 2, CALL)),
        (*YES, Consumed(AT, "q-1", 2, CALL), *YES),
        (*YES, Consumed(AT, "q-1", 2, CALL), asked()),
    ],
    ids=[
        "granted without an answer",
        "an answer alone",
        "refused before",
        "nobody before",
        "of another conversation",
        "of another call",
        "too late",
        "used",
        "used, and granted again",
        "used, and asked again under its id",
    ],
)
def test_what_grants_nothing(found: tuple[Entry, ...]) -> None:
    state = fold(asked(), *found)
    assert not grants.grant_for(state.questions, BOUND, AT)


def test_a_question_of_another_conversation_is_none_here() -> None:
    assert not fold(asked(conversation="c-2"), *YES).questions


OTHERS = {
    "call": digest("call", b"y"),
    "tool": ToolId("srv", "send"),
    "spec": digest("tool", b"other"),
    "labels": frozenset({Label("private:mail"), Label("untrusted:web")}),
    "codes": frozenset({"leak_guard", "trifecta"}),
    "revision": "other",
    "manifest": "other",
    "operands": digest("operands", b"other"),
}


@pytest.mark.parametrize("part", OTHERS)
def test_every_part_of_the_binding_binds(part: str) -> None:
    held = fold(asked(), *YES).questions
    assert grants.grant_for(held, BOUND, AT) == "q-1"
    assert not grants.grant_for(held, replace(BOUND, **{part: OTHERS[part]}), AT)  # type: ignore[arg-type]  # by name
    assert set(OTHERS) == set(Bound.__slots__)


def test_less_than_was_shown_is_fine() -> None:
    held = fold(asked(), *YES).questions
    assert grants.grant_for(held, replace(BOUND, labels=frozenset()), AT)


def test_its_time() -> None:
    held = fold(asked(), *YES).questions
    assert grants.grant_for(held, BOUND, "2026-11-29T12:09:59.999999Z")
    for at in (LATER, "2026-11-29T11:59:59.999999Z", "2027-11-29T12:00:00.000000Z"):
        assert not grants.grant_for(held, BOUND, at)


def test_of_many_questions_the_closed_ones_are_forgotten_first() -> None:
    closed = [asked(f"q-{n}") for n in range(2, grants.MAX_HELD + 1)]
    state = fold(asked(), *YES, *closed, *[Answered(AT, one.question, "refuse", "") for one in closed[5:6]])
    after = apply(state, asked("q-new"))
    assert len(after.questions) == grants.MAX_HELD
    assert closed[5].question not in after.questions
    assert grants.grant_for(after.questions, BOUND, AT) == "q-1"
    flooded = fold(asked(), *YES, *[asked(f"q-{n}") for n in range(2, grants.MAX_HELD + 2)])
    assert "q-1" not in flooded.questions  # and then there is no grant
