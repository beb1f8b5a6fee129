"""Proves T6: a hole or a wrong type in the document never loosens a verdict, and what fails its schema is not asked.

At the engine, with the schema check off, since that check alone would make this trivial: for generated documents,
every key of an object is left out in turn and given every other JSON type, among them shapes that look like a proof.
An engine error is a denial. Mutations that this file catches: `not input.forecast.untrusted == ["web"]` in a proof;
`every` without "at least one"; dropping `check_document` from the steps.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, MemoryJournal, Verdict
from interlock.errors import EngineUnavailable
from interlock.gate import steps
from interlock.model.canonical import pack
from interlock.model.document import check_document
from interlock.policy.samples import SAMPLES
from tests.strategies import ENGINES, SETTINGS, documents, enumerating, holes, hostile_documents, json_values, verdicts
from tests.worlds import SaysEngine, StepsWorld, Tools, guard_in


def assert_no_hole_loosens(asking: Any, document: dict[str, Any]) -> None:
    before = verdicts(asking, pack(document))
    for name, holed in holes(document):
        after = verdicts(asking, pack(holed))
        for code, verdict in before.items():
            assert after[code].strictness >= verdict.strictness, f"{code or 'all together'} loosened by {name}"


@enumerating(15)
@given(document=documents(), index=st.integers(0, len(SETTINGS) - 1))
def test_t6_no_hole_loosens_in_the_embedded_engine(document: dict[str, Any], index: int) -> None:
    assert_no_hole_loosens(ENGINES["embedded"](index), document)


@enumerating(6)
@given(document=documents(), index=st.integers(0, len(SETTINGS) - 1))
def test_t6_no_hole_loosens_in_the_reference(document: dict[str, Any], index: int) -> None:
    assert_no_hole_loosens(ENGINES["reference"](index), document)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("index", [0, len(SETTINGS) - 1])
def test_t6_no_hole_loosens_a_sample(engine: str, name: str, index: int) -> None:
    assert_no_hole_loosens(ENGINES[engine](index), SAMPLES[name])


@pytest.mark.parametrize("engine", ENGINES)
@given(document=json_values())
def test_t6_what_is_no_document_at_all_is_not_allowed(engine: str, document: Any) -> None:
    assert verdicts(ENGINES[engine](0), pack(document))[""] is not Verdict.ALLOW


@enumerating(10)
@given(document=documents())
def test_t6_the_schema_refuses_every_hole(document: dict[str, Any]) -> None:
    for _, holed in holes(document):
        with pytest.raises(EngineUnavailable):
            check_document(holed)


@given(document=documents(), key=st.text(min_size=1, max_size=5))
def test_t6_the_schema_refuses_every_key_too_many(document: dict[str, Any], key: str) -> None:
    for container in (document, document["tool"], document["call"], document["forecast"], document["exposure"]):
        if key not in container:
            container[key] = True
            with pytest.raises(EngineUnavailable):
                check_document(document)
            del container[key]
    check_document(document)


@given(document=hostile_documents())
def test_t6_the_schema_refuses_with_our_own_error(document: Any) -> None:
    problem = ""
    try:
        check_document(document)
    except EngineUnavailable as error:
        problem = str(error)
    assert len(problem) < 2000


@given(document=documents(), data=st.data())
def test_t6_a_document_that_fails_its_schema_is_denied_before_evaluation(
    document: dict[str, Any], data: st.DataObject
) -> None:
    """The builder is made to give a document with a hole; the engine is never asked."""
    place = data.draw(st.integers(0, 10_000))
    broken = nth_hole(document, place)
    asked: list[bytes] = []
    engine = SaysEngine(ENGINES["embedded"](0).controls, lambda one: (asked.append(one), b"{}")[1])
    world = StepsWorld(MemoryJournal(), engine=engine)
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "build", lambda *_: broken)
        (outcome,) = guard.batch([Call("now", {}, "a")], run=Tools(world, conversation.id))
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "engine_error"
    assert not asked
    assert not world.tape.runs


def nth_hole(document: dict[str, Any], place: int) -> dict[str, Any]:
    """One of the holes; they share their parts, so the one that is wanted is found by counting."""
    last = sum(1 for _ in holes(document)) - 1
    return next(whole for number, (_, whole) in enumerate(holes(document)) if number == place % (last + 1))
