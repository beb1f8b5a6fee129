"""Proves T13: the reference and the embedded engine answer alike, on well-typed and on hostile documents.

Answers are compared whole, control by control: verdict, code and remedies. Errors would compare only as errors; with
the shipped controls there are none: no JSON in any place makes the embedded engine fail, and a control that begins to
(as `some … in` does on a scalar) fails here. Mutation that this file catches: one constant changed in one Rego file.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import EngineUnavailable
from interlock.model.answers import Answer, parse_answers
from interlock.model.canonical import pack
from interlock.policy.reference import CONTROLS
from interlock.policy.samples import SAMPLES
from tests.strategies import (
    EVERY_VALUE,
    SETTINGS,
    documents,
    embedded,
    enumerating,
    fewer,
    holes,
    hostile_documents,
    reference,
    tightenings,
)


def answers(engine: Any, document: bytes) -> dict[str, Answer] | str:
    """All answers, or one word for an error."""
    try:
        return parse_answers(engine.evaluate(document), engine.controls)
    except EngineUnavailable:
        return "error"


def assert_alike(document: Any, index: int) -> None:
    raw = pack(document)
    ours, theirs = answers(reference(index), raw), answers(embedded(index), raw)
    assert theirs == ours
    assert ours != "error", "a control that can fail on a document fails whole answers; write it so that it can't"


EVERY_COMBINATION = st.integers(0, len(SETTINGS) - 1)


@EVERY_VALUE
@fewer(3)
@given(document=documents())
def test_t13_well_typed_documents(index: int, document: dict[str, Any]) -> None:
    assert_alike(document, index)


@given(document=documents(), index=EVERY_COMBINATION)
def test_t13_well_typed_documents_under_every_combination(index: int, document: dict[str, Any]) -> None:
    assert_alike(document, index)


@EVERY_VALUE
@fewer(3)
@given(document=hostile_documents())
def test_t13_hostile_documents(index: int, document: Any) -> None:
    assert_alike(document, index)


@given(document=hostile_documents(), index=EVERY_COMBINATION)
def test_t13_hostile_documents_under_every_combination(index: int, document: Any) -> None:
    assert_alike(document, index)


@enumerating(20)
@given(document=documents(), index=EVERY_COMBINATION)
def test_t13_documents_with_one_hole(document: dict[str, Any], index: int) -> None:
    for _, holed in holes(document):
        assert_alike(holed, index)


@EVERY_VALUE
@pytest.mark.parametrize("name", SAMPLES)
def test_t13_samples_and_every_step_from_them(name: str, index: int) -> None:
    assert_alike(SAMPLES[name], index)
    for _, worse in tightenings(SAMPLES[name]):
        assert_alike(worse, index)


def test_t13_both_know_the_same_controls() -> None:
    assert set(CONTROLS) == set(embedded().controls) == set(reference().controls)
    assert all(embedded().controls[code].own for code in CONTROLS)


@pytest.mark.parametrize("key", ["destinations", "labels", "unclassified", "control", "grounded"])
@pytest.mark.parametrize("value", ["x", "", 0, 1.5, True, False, None, {}, [], [[]], [None], {"a": {}}])
def test_t13_no_type_of_a_part_of_the_call_is_an_error(key: str, value: Any) -> None:
    document = orjson.loads(orjson.dumps(SAMPLES["every leg"]))
    document["call"][key] = value
    for index in (0, len(SETTINGS) - 1):
        assert_alike(document, index)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"nul", b"[" * 10_000, b'{"a":1}x', b"NaN"])
def test_t13_what_is_no_json_is_an_error(raw: bytes) -> None:
    with pytest.raises(EngineUnavailable):
        embedded().evaluate(raw)
