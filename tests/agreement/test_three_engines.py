"""Proves T13: the reference, the embedded engine and a real OPA server answer alike.

Every shipped control, under every preset and every value of every setting; documents that fit the schema and any JSON
at all. Answers are compared whole, and with them the decisions. Each document is asked of all three, so that each pair
is held against each other on the same documents: in the deep profile more than 20,000 a pair.

What was found is shrunk and written as a scenario, whose path the failure names. OPA answers with strict builtin
errors, over one kept connection, one query a document, like the gate's. Mutation that this file catches: one constant
changed in one Rego file, or in the reference; `test_planted_differences.py` plants three.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.reference import ReferenceEngine
from interlock.policy.samples import SAMPLES
from interlock.policy.sources import shipped_sources
from interlock.testing.agreement import Disagreement, Setup, as_scenario, compare
from tests.agreement.asking import Opa, OpaEngine, asked_opa
from tests.strategies import LAYOUTS, documents, fewer, holes, hostile_documents, nested, tightenings

ASKED: dict[tuple[str, str], int] = {}
DEEP = 20_000


@cache
def shipped(layout: str) -> Bundle:
    return assemble(shipped_sources(), parse_settings(LAYOUTS[layout]))


@pytest.fixture(scope="module")
def server() -> Iterator[Opa]:
    with asked_opa() as running:
        yield running


def three(server: Opa, layout: str) -> list[Any]:
    bundle = shipped(layout)
    values = parse_settings(LAYOUTS[layout]).model_dump()
    return [ReferenceEngine(values, bundle.controls), EmbeddedEngine(bundle), OpaEngine(server, bundle)]


class Alike:
    """Holds engines against each other; the last disagreement, which is the shrunk one, is written as a scenario."""

    def __init__(self, engines: list[Any], folder: Any, layout: str) -> None:
        self._engines, self._file, self._layout = engines, folder / "disagreement.yaml", layout

    def __call__(self, document: Any) -> None:
        raw = pack(document)
        for first, second in combinations(self._engines, 2):
            pair = (first.name, second.name)
            ASKED[pair] = ASKED.get(pair, 0) + 1
            try:
                compare(first, second, raw)
            except Disagreement as found:
                self._file.write_text(as_scenario(found, Setup(settings=LAYOUTS[self._layout])), encoding="utf-8")
                found.add_note(f"as a scenario: {self._file}")
                raise


@pytest.fixture(params=LAYOUTS, scope="module")
def alike(request: pytest.FixtureRequest, server: Opa, tmp_path_factory: pytest.TempPathFactory) -> Alike:
    return Alike(three(server, request.param), tmp_path_factory.mktemp("found"), request.param)


def awkward() -> st.SearchStrategy[Any]:
    """Documents that are hostile in a way of their own: deep, large, at the borders of numbers, in other alphabets."""
    places = st.sampled_from(
        [("call", "arguments"), ("call", "destinations"), ("tool", "name"), ("forecast", "private")]
    )
    odd = st.one_of(
        st.integers(1, 60).map(lambda depth: nested(depth)),
        st.integers(1, 60).map(lambda depth: nested(depth, key="tool")),
        st.integers(0, 3000).map(lambda size: ["unknown"] * size),
        st.sampled_from(
            [2**53, -(2**53), 2.0**53, 1e-300, -0.0, 0.1, "😀" * 300, "e\u0301", "\u202e", "\x01", "\uffff"]
        ),
        st.sampled_from(["none", " none", "none ", "NONE", "ｎｏｎｅ", "none\u200b", "nоne"]),
    )

    def put(document: dict[str, Any], place: tuple[str, str], value: Any) -> dict[str, Any]:
        return {**document, place[0]: {**document[place[0]], place[1]: value}}

    return st.builds(put, documents(), places, odd)


# Seven layouts and three kinds: with a seventh of the profile's examples each, every pair gets three times what the
# profile says.
MANY = fewer(len(LAYOUTS)) if settings().max_examples >= DEEP else fewer(2 * len(LAYOUTS))


@MANY
@given(document=documents())
def test_t13_well_typed_documents(alike: Alike, document: Any) -> None:
    alike(document)


@MANY
@given(document=hostile_documents())
def test_t13_hostile_documents(alike: Alike, document: Any) -> None:
    alike(document)


@fewer(3 * len(LAYOUTS))
@given(document=awkward())
def test_t13_awkward_documents(alike: Alike, document: Any) -> None:
    alike(document)


@pytest.mark.parametrize("name", SAMPLES)
def test_t13_samples_and_every_step_from_them(alike: Alike, name: str) -> None:
    alike(SAMPLES[name])
    for _, worse in tightenings(SAMPLES[name]) if name == "clean send" or settings().max_examples >= DEEP else ():
        alike(worse)


def test_t13_every_hole_of_a_sample(server: Opa, tmp_path: Any) -> None:
    """Each key left out and of each other type, where every control objects: one proof too many shows here."""
    same = Alike(three(server, "all ask"), tmp_path, "all ask")
    for _, holed in holes(SAMPLES["every leg"]):
        same(holed)


def test_t13_enough_was_asked() -> None:
    """Stands last: the deep profile must have asked 20,000 documents of every pair."""
    assert set(ASKED) == {("reference", "embedded"), ("reference", "opa"), ("embedded", "opa")}
    print("documents asked of each pair:", ASKED)
    assert len(set(ASKED.values())) == 1
    if settings().max_examples >= DEEP:
        assert min(ASKED.values()) >= DEEP
