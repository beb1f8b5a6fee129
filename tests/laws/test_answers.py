"""Proves T3 and T4: order never matters, and whatever is not a clear word denies, through the parser and the gate.

Abstract rules after Cedar: a policy is a list of words, and the expected verdict is a function of three lines.
Mutations that this file catches: default allow in `combined`; an unknown key accepted; a silent control skipped; ALLOW
on error.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, MemoryJournal, Verdict
from interlock.errors import EngineUnavailable
from interlock.model.answers import MAX_REMEDIES, judged, parse_answers
from interlock.model.decisions import Decision, Reason, combined, failure
from tests.strategies import (
    MALFORMED,
    AbstractRule,
    abstract_rules,
    codes,
    embedded,
    expected_verdict,
    json_values,
    rule_answer,
    rule_texts,
    texts,
    well_formed_rules,
)
from tests.worlds import SaysEngine, StepsWorld, Tools, guard_in


def through_parser(rules: list[AbstractRule]) -> Verdict:
    try:
        raw = rule_answer(rules)
        return judged(parse_answers(raw, rule_texts(rules)), rule_texts(rules))[0]
    except (EngineUnavailable, RuntimeError):
        return Verdict.DENY


def through_gate(rules: list[AbstractRule], say: Any = None) -> tuple[Any, Any]:
    engine = SaysEngine(rule_texts(rules), say or (lambda _: rule_answer(rules)))
    world = StepsWorld(MemoryJournal(), engine=engine)
    conversation = Conversation.new()
    (outcome,) = guard_in(world, conversation).batch([Call("now", {}, "a")], run=Tools(world, conversation.id))
    return outcome, world


@given(rules=abstract_rules())
def test_t4_abstract_rules_through_the_parser(rules: list[AbstractRule]) -> None:
    assert through_parser(rules) is expected_verdict(rules)


@given(rules=abstract_rules())
def test_t4_abstract_rules_through_the_gate(rules: list[AbstractRule]) -> None:
    outcome, world = through_gate(rules)
    wanted = expected_verdict(rules)
    assert outcome.verdict is wanted
    assert outcome.executed == (wanted is Verdict.ALLOW)
    assert len(world.tape.runs) == (wanted is Verdict.ALLOW)
    broken = not rules or {rule.word for rule in rules} & {"undefined", "error", "malformed"}
    assert (outcome.decision.code == "engine_error") == bool(broken)


@pytest.mark.parametrize("value", MALFORMED, ids=str)
def test_t4_every_malformed_answer_denies(value: Any) -> None:
    rules = [AbstractRule("allow"), AbstractRule("malformed", value)]
    with pytest.raises(EngineUnavailable):
        parse_answers(rule_answer(rules), rule_texts(rules))
    assert through_gate(rules)[0].verdict is Verdict.DENY


@given(rules=well_formed_rules(), seed=st.randoms(use_true_random=False))
def test_t3_the_order_of_answers_does_not_matter(rules: list[AbstractRule], seed: Any) -> None:
    said = list(orjson.loads(rule_answer(rules)).items())
    known = list(rule_texts(rules).items())
    first = judged(parse_answers(orjson.dumps(dict(said)), dict(known)), dict(known))
    seed.shuffle(said)
    seed.shuffle(known)
    assert judged(parse_answers(orjson.dumps(dict(said)), dict(known)), dict(known)) == first


@given(rules=well_formed_rules(), more=well_formed_rules())
def test_t4_more_rules_never_loosen(rules: list[AbstractRule], more: list[AbstractRule]) -> None:
    if rules:
        assert expected_verdict(rules + more).strictness >= expected_verdict(rules).strictness
        assert through_parser(rules + more).strictness >= through_parser(rules).strictness


@given(rules=well_formed_rules(), data=st.data())
def test_t3_a_control_that_falls_silent_denies(rules: list[AbstractRule], data: st.DataObject) -> None:
    said = orjson.loads(rule_answer(rules))
    if not said:
        return
    del said[data.draw(st.sampled_from(sorted(said)))]
    with pytest.raises(EngineUnavailable, match="did not answer"):
        parse_answers(orjson.dumps(said), rule_texts(rules))


@given(rules=well_formed_rules(), value=json_values(), code=texts(8))
def test_t4_a_code_too_many_denies(rules: list[AbstractRule], value: Any, code: str) -> None:
    said = orjson.loads(rule_answer(rules))
    if code in said:
        return
    with pytest.raises(EngineUnavailable):
        parse_answers(orjson.dumps({**said, code: value}), rule_texts(rules))


@given(value=json_values())
def test_t4_any_json_in_place_of_an_answer_is_read_strictly(value: Any) -> None:
    rules = [AbstractRule("allow")]
    raw = orjson.dumps({codes(rules)[0]: value})
    clear = isinstance(value, dict) and set(value) <= {"verdict", "remedies"} and value.get("verdict") in list(Verdict)
    try:
        (answer,) = parse_answers(raw, rule_texts(rules)).values()
    except EngineUnavailable:
        return
    assert clear
    assert answer.verdict == value["verdict"]


ONE = '{"rule_0":{"verdict":"allow"}}'
SAYS: dict[str, Any] = {
    "nothing": "",
    "undefined": "<undefined>",
    "null": "null",
    "true": "true",
    "allow": '"allow"',
    "empty object": "{}",
    "empty array": "[]",
    "array": f"[{ONE}]",
    "cut": ONE[:-1],
    "two values": ONE + ONE,
    "trailing": ONE + "x",
    "duplicate code": '{"rule_0":{"verdict":"deny"},"rule_0":{"verdict":"allow"}}',
    "duplicate key": '{"rule_0":{"verdict":"deny","verdict":"allow"}}',
    "escaped duplicate": '{"rule_0":{"verdict":"deny","verdic\\u0074":"allow"}}',
    "extra code": '{"rule_0":{"verdict":"allow"},"rule_1":{"verdict":"allow"}}',
    "code in other case": '{"Rule_0":{"verdict":"allow"}}',
    "code with a space": '{"rule_0 ":{"verdict":"allow"}}',
    "unknown key": '{"rule_0":{"verdict":"allow","why":"x"}}',
    "nan": '{"rule_0":{"verdict":"allow","remedies":[NaN]}}',
    "nul": '{"rule_0":{"verdict":"allow\\u0000"}}',
    "nul in bytes": b'{"rule_0":{"verdict":"allow"}}\0',
    "byte order mark": "\ufeff" + ONE,
    "bad utf-8": b'{"rule_0":{"verdict":"all\xffow"}}',
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "huge": '{"rule_0":{"verdict":"' + "a" * (1 << 20) + '"}}',
    "huge number": '{"rule_0":{"verdict":' + "9" * 5000 + "}}",
    "html": "<html>502 Bad Gateway</html>",
    "not text": None,
    "a dict": {"rule_0": {"verdict": "allow"}},
    "a verdict": Verdict.ALLOW,
    "an integer": 7,
    "true itself": True,
}


@pytest.mark.parametrize("name", SAYS)
def test_t4_everything_that_is_no_answer_denies(name: str) -> None:
    outcome, world = through_gate([AbstractRule("allow")], lambda _: SAYS[name])
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "engine_error"
    assert not world.tape.runs
    assert outcome.is_error
    assert "operator" in outcome.for_model


def test_the_table_above_is_not_vacuous() -> None:
    outcome, _ = through_gate([AbstractRule("allow")], lambda _: ONE)
    assert outcome.verdict is Verdict.ALLOW
    outcome, _ = through_gate([AbstractRule("allow")], lambda _: ONE.encode())
    assert outcome.verdict is Verdict.ALLOW


class Panic(BaseException):
    """Like the exception that the engine's binding raises when it panics: no `Exception`."""


Panic.__module__ = "pyo3_runtime"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        EngineUnavailable("x"),
        TimeoutError(),
        MemoryError(),
        RecursionError(),
        StopIteration({"rule_0": {"verdict": "allow"}}),
        StopAsyncIteration(),
        KeyError("verdict"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "x"),
        ExceptionGroup("x", [ValueError()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_t4_an_engine_that_raises_denies(error: Exception) -> None:
    def say(_: bytes) -> str:
        raise error

    outcome, world = through_gate([AbstractRule("allow")], say)
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "engine_error"
    assert not world.tape.runs


def test_t4_a_panic_inside_the_embedded_engine_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock.policy import embedded as module

    def panic(*_: Any) -> str:
        raise Panic("unsendable")

    engine = embedded()
    monkeypatch.setattr(module, "_ask", panic)
    with pytest.raises(EngineUnavailable, match="panicked"):
        engine.evaluate(b"{}")
    outcome, world = through_gate([AbstractRule("allow")], engine.evaluate)
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "engine_error"
    assert not world.tape.runs


def test_t4_an_interpreter_exit_inside_the_engine_is_no_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock.policy import embedded as module

    def exit_now(*_: Any) -> str:
        raise KeyboardInterrupt

    engine = embedded()
    monkeypatch.setattr(module, "_ask", exit_now)
    with pytest.raises(KeyboardInterrupt):
        engine.evaluate(b"{}")


# --- the combiner itself ----------------------------------------------------------------------------------------------


def reasons() -> st.SearchStrategy[list[Reason]]:
    one = st.builds(
        Reason,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([Verdict.ASK, Verdict.DENY]),
        st.just("m"),
        st.just("p"),
    )
    return st.lists(one, max_size=4)


@given(found=reasons(), allowing=st.integers(0, 3), seed=st.randoms(use_true_random=False))
def test_t3_t4_the_strictest_of_all_that_spoke(found: list[Reason], allowing: int, seed: Any) -> None:
    answered = len(found) + allowing
    verdict, objections = combined(found, answered)
    shuffled = list(found)
    seed.shuffle(shuffled)
    assert combined(shuffled, answered)[0] is verdict
    assert [(one.code, one.verdict) for one in combined(shuffled, answered)[1]] == [
        (one.code, one.verdict) for one in objections
    ]
    if not answered:
        assert verdict is Verdict.DENY
        assert objections[0].code == "engine_error"
        return
    strictest = max((one.verdict.strictness for one in found), default=0)
    assert verdict.strictness == strictest
    assert sorted(objections, key=str) == sorted(found, key=str)
    assert [one.verdict.strictness for one in objections] == sorted(
        (one.verdict.strictness for one in found), reverse=True
    )


def test_t4_nobody_spoke_is_a_denial_whatever_the_reasons_say() -> None:
    verdict, objections = combined([], 0)
    assert verdict is Verdict.DENY
    assert Decision(verdict, objections).code == "engine_error"
    assert judged({}, {})[0] is Verdict.DENY


def test_verdicts_are_ordered() -> None:
    order = [Verdict.ALLOW, Verdict.ASK, Verdict.DENY]
    for left in order:
        for right in order:
            assert left.stricter(right) is order[max(order.index(left), order.index(right))]


def test_remedies_are_bounded_names() -> None:
    known = rule_texts([AbstractRule("ask")])
    raw = orjson.dumps({"rule_0": {"verdict": "ask", "remedies": ["a"] * MAX_REMEDIES}})
    assert parse_answers(raw, known)["rule_0"].remedies == ("a",) * MAX_REMEDIES
    decision = Decision(*judged(parse_answers(raw, known), known))
    assert decision.candidates == ("a",)
    assert decision.approvable
    assert not Decision(Verdict.DENY, (failure("engine_error", "x"),)).approvable
