"""Proves T13 of remembered answers: documents that look alike to the controls have the same answer, in every engine.

The gate remembers answers by what the loaded controls can see of a document (`look`). Were that a little less than they
really see, one call would be answered with another one's verdict. So: for shipped controls, and for a control of each
way in which Rego can reach into a document, a document is changed at one place; when it still looks the same, the
engine must answer the same. Mutations that this file catches: a kind of reference that `looks_at` leaves out; a missing
key that looks like null; a failure that is remembered.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, MemoryJournal, Verdict
from interlock.errors import EngineUnavailable
from interlock.gate import drivers, steps
from interlock.gate.drivers import World, drive
from interlock.gate.effects import Evaluate
from interlock.model.canonical import pack
from interlock.model.digests import digest
from interlock.model.entries import Admitted
from interlock.model.labels import Label
from interlock.model.look import look
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.samples import SAMPLES
from interlock.policy.sources import Source, shipped_sources
from tests.strategies import documents, embedded, enumerating, fewer, holes, hostile_documents, tightenings
from tests.worlds import FixedClock, NoFiles, SaysEngine, rules

# Name → the proof of a control that reaches into the document in its own way.
REACHES = {
    "a path": 'input.tool.egress == "none"',
    "a bracket": 'input["tool"]["egress"] == "none"',
    "a whole part": 'input.forecast == {"untrusted": [], "private": [], "egress": [], "credentials": false}',
    "an index": 'input.call.destinations[0].origin == "user"',
    "the second": 'input.call.destinations[1].origin == "user"',
    "any": 'some one in input.call.destinations\n\tone.origin == "user"',
    "any by index": 'some place\n\tinput.call.destinations[place].origin == "user"',
    "any index alone": "some place, one in input.call.destinations\n\tplace == 1",
    "any key": "some key, value in input.call.labels\n\tvalue == []",
    "wildcard": "input.call.destinations[_].talks_back == false",
    "every": "every one in input.call.destinations {\n\t\tone.talks_back == false\n\t}",
    "membership": '"web" in input.exposure.untrusted',
    "membership of a computed part": 'some leg in ["untrusted", "private"]\n\tinput.exposure[leg] == []',
    "a count": "count(input.call.destinations) == 1",
    "a local": "call := input.call\n\tcall.grounded == true",
    "a local of a local": "all := input\n\tcall := all.call\n\tcall.siblings == 0",
    "an argument": 'input.call.arguments.to == "x"',
    "a function": "loose(input.call)",
    "a function of everything": "odd(input)",
    "object.get": 'object.get(input.tool, "effect", "none") == "none"',
    "object.get of everything": 'object.get(input, ["tool", "effect"], "none") == "none"',
    "an array comprehension": '[one.origin | some one in input.call.destinations] == ["user"]',
    "a set comprehension": '{one.kind | some one in input.call.destinations} == {"email"}',
    "a comprehension of scalars": '{one | some one in input.tool.returns} == {"private:mail"}',
    "nothing but shape": "some _ in input.call.destinations",
    "null": "input.call.grounded == null",
    "null in a list": "input.call.destinations[_].origin == null",
    "a negation": "not input.call.grounded",
    "a type": "is_boolean(input.call.grounded)",
    "a helper rule": "quiet",
    "through a helper value": "destinations[0].talks_back == false",
    "nested some": 'some one in input.call.destinations\n\tsome _, part in one\n\tpart == "user"',
    "time": 'input.now == "2026-11-29T12:00:00Z"',
    "a comparison of two parts": "input.exposure.private == input.forecast.private",
}
CONTROL = """package controls.reach

default verdict := {{"verdict": "ask"}}

verdict := {{"verdict": "allow"}} if {{
	{proof}
}}

loose(call) if call.grounded == true

odd(document) if document.call.control == "none"

quiet if input.tool.opens == []

destinations := input.call.destinations
"""


@cache
def reaching(name: str) -> EmbeddedEngine:
    text = CONTROL.format(proof=REACHES[name])
    # Beside one shipped control only, so that these many engines are quick.
    few = [source for source in shipped_sources() if "entrypoint" in source.path or "unknown_tool" in source.path]
    return EmbeddedEngine(assemble([*few, Source("reach.rego", text)], parse_settings({})))


def answer(engine: Any, document: Any) -> Any:
    try:
        return orjson.loads(engine.evaluate(pack(document)))
    except EngineUnavailable:
        return "error"


def assert_look_alikes_are_answered_alike(engine: EmbeddedEngine, found: Iterable[Any]) -> int:
    """Returns how many looks there were."""
    assert engine.looks_at is not None
    known: dict[bytes, Any] = {}
    for document in found:
        said = answer(engine, document)
        assert known.setdefault(look(document, engine.looks_at), said) == said
    return len(known)


@pytest.mark.parametrize("name", REACHES)
@enumerating(25)
@given(document=documents())
def test_t13_for_every_way_to_reach_into_a_document(name: str, document: dict[str, Any]) -> None:
    every = [document, *(worse for _, worse in tightenings(document))]
    assert_look_alikes_are_answered_alike(reaching(name), every)


@pytest.mark.parametrize("name", REACHES)
def test_t13_for_every_way_and_every_hole_of_a_sample(name: str) -> None:
    sample = SAMPLES["clean send"]
    looks = assert_look_alikes_are_answered_alike(reaching(name), (holed for _, holed in holes(sample)))
    all_of_it = name in ("a local of a local", "a function of everything", "object.get of everything")
    assert looks == sum(1 for _ in holes(sample)) if all_of_it else 1 < looks < 800


@enumerating(30)
@given(document=documents())
def test_t13_for_the_shipped_controls_and_every_hole(document: dict[str, Any]) -> None:
    assert_look_alikes_are_answered_alike(embedded(), (holed for _, holed in holes(document)))


@given(one=hostile_documents(), other=hostile_documents())
def test_t13_for_the_shipped_controls_and_anything(one: Any, other: Any) -> None:
    assert_look_alikes_are_answered_alike(embedded(), [one, other])


@fewer(2)
@given(document=documents(), arguments=st.dictionaries(st.sampled_from(["to", "x"]), st.integers(0, 9), max_size=2))
def test_the_shipped_controls_see_no_argument_and_no_name(document: dict[str, Any], arguments: Any) -> None:
    """So most calls of a conversation look alike, and no argument value is kept in memory."""
    other = copy.deepcopy(document)
    other["call"]["arguments"] = arguments
    other["call"]["digest"] = other["tool"]["name"] = other["conversation"]["id"] = other["now"] = "x"
    for part in other["call"]["destinations"]:
        part["value"] = part["argument"] = "x"
    assert assert_look_alikes_are_answered_alike(embedded(), [document, other]) == 1


# --- remembering ------------------------------------------------------------------------------------------------------


def test_t13_an_answer_is_asked_for_once_and_a_failure_each_time() -> None:
    inner, asked, fail = embedded(), [], [True]

    def say(document: bytes) -> str:
        asked.append(document)
        if fail[0]:
            raise RuntimeError("injected")
        return inner.evaluate(document)

    world = World(SaysEngine(inner.controls, say), MemoryJournal(), FixedClock(), NoFiles())
    known = rules(inner, looks_at=inner.looks_at)
    conversation = Conversation.new()
    conversation.bind(world.journal)

    def decide() -> Verdict:
        return drive(steps.preview(conversation.id, [Call("now", {})], known), world)[0].verdict

    assert [decide(), decide()] == [Verdict.DENY, Verdict.DENY]
    assert len(asked) == 2
    fail[0] = False
    assert [decide(), decide(), decide()] == [Verdict.ALLOW] * 3
    assert len(asked) == 3
    fail[0] = True
    assert decide() is Verdict.ALLOW  # the same question: its answer is known, and does not depend on the engine's day
    conversation.record(one_admitted())
    assert decide() is Verdict.DENY  # another question


def one_admitted() -> Any:
    return Admitted("2026-11-29T12:00:00.000000Z", "x", (Label("private:mail"),), digest("content", b""), 0)


@fewer(3)
@given(data=st.data(), found=st.lists(documents(), min_size=2, max_size=6))
def test_t13_remembered_answers_are_the_answers(data: st.DataObject, found: list[dict[str, Any]]) -> None:
    engine = embedded()
    world = World(engine, MemoryJournal(), FixedClock(), NoFiles())
    for _ in range(12):
        document = data.draw(st.sampled_from(found))
        raw = pack(document)
        said = world.answer(Evaluate(raw, look(document, engine.looks_at or ())))
        assert orjson.loads(said) == answer(engine, document)


def test_an_engine_that_does_not_say_what_it_looks_at_is_always_asked() -> None:
    asked: list[bytes] = []
    inner = embedded()
    engine = SaysEngine(inner.controls, lambda document: (asked.append(document), inner.evaluate(document))[1])
    world = World(engine, MemoryJournal(), FixedClock(), NoFiles())
    conversation = Conversation.new()
    conversation.bind(world.journal)
    for _ in range(3):
        drive(steps.preview(conversation.id, [Call("now", {})], rules(engine)), world)
    assert len(asked) == 3


def test_the_table_of_remembered_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "MAX_REMEMBERED", 8)
    world = World(SaysEngine({}, lambda document: document), MemoryJournal(), FixedClock(), NoFiles())
    for number in range(100):
        asked = b"%d" % number
        assert world.answer(Evaluate(asked, asked)) == asked
        assert len(world.remembered) <= 8
