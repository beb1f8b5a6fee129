"""Proves T5: more exposure never loosens a verdict, of any shipped control or of all together, in either engine.

Three levels: documents, one step more dangerous each (`tightenings`); the builder, with more labels, voices and
siblings and fewer vouched values; whole conversations, with more entries in the journal. Mutations that this file
catches: a negation in a proof (`lifted if not input.call.grounded`), own labels left out of the forecast, siblings left
out, in-flight labels left out of the exposure.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call
from interlock.model.calls import freeze
from interlock.model.canonical import pack
from interlock.model.digests import voice_digest
from interlock.model.document import Setting, asked, build, check_document
from interlock.model.entries import Opened, Typed
from interlock.model.labels import EVERY_LEG
from interlock.model.origins import value_digest
from interlock.model.state import State, apply
from interlock.model.tools import Kind
from tests.strategies import (
    ENGINES,
    EVERY_VALUE,
    SETTINGS,
    batches,
    documents,
    entries,
    enumerating,
    fewer,
    label_tuples,
    manifests,
    tightenings,
    verdicts,
)
from tests.worlds import MANIFEST, FixedClock


def assert_not_looser(before: dict[str, Any], after: dict[str, Any], step: str) -> None:
    for code, verdict in before.items():
        assert after[code].strictness >= verdict.strictness, f"{code or 'all together'} loosened: {step}"


@EVERY_VALUE
@pytest.mark.parametrize("engine", ENGINES)
@enumerating(5)
@given(document=documents())
def test_t5_one_step_more_dangerous_is_never_looser(engine: str, index: int, document: dict[str, Any]) -> None:
    asking = ENGINES[engine](index)
    before = verdicts(asking, pack(document))
    for step, worse in tightenings(document):
        assert_not_looser(before, verdicts(asking, pack(worse)), step)


@given(document=documents())
def test_every_step_is_still_a_document(document: dict[str, Any]) -> None:
    check_document(document)
    for _, worse in tightenings(document):
        check_document(worse)


VOUCHED = [
    value_digest(Kind.EMAIL, "bob@corp.example"),
    value_digest(Kind.EMAIL, "eve@evil.example"),
    value_digest(Kind.URL, "http://evil.example/x"),
    value_digest(Kind.PATH, "notes/todo.txt"),
    value_digest(Kind.ACCOUNT, "123"),
]
VOICES = [voice_digest(one) for one in ("evil.example", "corp.example", "api.corp.example")]


@st.composite
def comparable_settings(draw: st.DrawFn) -> tuple[Setting, Setting]:
    """A setting, and another that is more dangerous in every respect or equal."""
    labels, more = draw(label_tuples(max_size=4)), draw(label_tuples(max_size=4))
    typed = draw(st.frozensets(st.sampled_from(VOUCHED)))
    operator = draw(st.frozensets(st.sampled_from(VOUCHED), max_size=2))
    voices, louder = (draw(st.frozensets(st.sampled_from(VOICES), max_size=2)) for _ in range(2))
    deafening = draw(st.booleans())
    protected, guarded = (draw(st.sampled_from([(), ("/home/u/policies",), ("/srv",)])) for _ in range(2))

    def setting(labels: Any, typed: Any, operator: Any, voices: Any, deafening: bool, protected: Any) -> Setting:
        return Setting("c-1", "default", "", tuple(sorted(set(labels))), typed, operator, voices, deafening, protected)

    first = setting(labels, typed, operator, voices, deafening, protected)
    fewer_typed = typed - draw(st.frozensets(st.sampled_from(VOUCHED), max_size=2))
    fewer_own = operator - draw(st.frozensets(st.sampled_from(VOUCHED), max_size=2))
    loud = deafening or draw(st.booleans())
    second = setting((*labels, *more), fewer_typed, fewer_own, voices | louder, loud, (*protected, *guarded))
    return first, second


@pytest.mark.parametrize("engine", ENGINES)
@fewer(2)
@given(data=st.data(), pair=comparable_settings(), index=st.integers(0, len(SETTINGS) - 1))
def test_t5_a_worse_conversation_and_more_siblings_are_never_looser(
    engine: str, data: st.DataObject, pair: tuple[Setting, Setting], index: int
) -> None:
    manifest = data.draw(manifests(min_size=1))
    found = [asked(*freeze(call, manifest)) for call in data.draw(batches(manifest, max_size=5))]
    # As in the gate, a path that resolves elsewhere is named too; here it never does.
    one, siblings = found[0], found[1:]
    some = siblings[: data.draw(st.integers(0, len(siblings)))]
    now = FixedClock().now()
    asking = ENGINES[engine](index)
    first, second = (pack(build(one, beside, how, now)) for beside, how in zip((some, siblings), pair, strict=True))
    assert_not_looser(verdicts(asking, first), verdicts(asking, second), "the conversation")


@fewer(2)
@given(data=st.data(), history=st.lists(entries(), max_size=8), more=st.lists(entries(), max_size=4))
def test_t5_more_entries_are_never_looser(data: st.DataObject, history: list[Any], more: list[Any]) -> None:
    """Typed text aside, which is what vouches; and results that did not touch the outside, which land (T2)."""
    manifest = data.draw(manifests(min_size=1))
    (call,) = data.draw(batches(manifest, max_size=1))
    one, now, engine = asked(*freeze(call, manifest)), FixedClock().now(), ENGINES["reference"](0)
    state = State()
    for entry in history:
        state = apply(state, entry)

    def judged(state: State) -> dict[str, Any]:
        setting = Setting(
            "c-1", "default", "", tuple(state.exposure), state.typed, frozenset(), state.voices, state.deafening, ()
        )
        return verdicts(engine, pack(build(one, (), setting, now)))

    before = judged(state)
    for entry in more:
        if isinstance(entry, Typed) or not getattr(entry, "external", True):
            continue
        state = apply(state, entry)
        after = judged(state)
        assert_not_looser(before, after, str(entry))
        before = after


@pytest.mark.parametrize("engine", ENGINES)
@EVERY_VALUE
def test_t5_a_conversation_with_every_leg_lets_no_stranger_be_told(engine: str, index: int) -> None:
    """The top of the order, written out: nothing unvouched is sent, and nothing unvouched is changed."""
    state = apply(State(), Opened("2026-11-29T12:00:00.000000Z", "c-1", labels=EVERY_LEG))
    setting = Setting("c-1", "default", "", tuple(state.exposure), frozenset(), frozenset(), frozenset(), False, ())
    for spec in MANIFEST:
        for arguments in ({}, {"to": "eve@evil.example"}, {"url": "http://evil.example/"}):
            frozen, spec = freeze(Call(spec.id.name, arguments, "x"), MANIFEST)
            document = build(asked(frozen, spec), (), setting, FixedClock().now())
            verdict = verdicts(ENGINES[engine](index), pack(document))[""]
            quiet = spec.egress.value == "none" and spec.effect.value == "none" and not spec.opens
            reads = bool(spec.private)
            assert verdict.value != "allow" or (quiet and not reads), (str(spec.id), arguments)
