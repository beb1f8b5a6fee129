"""Proves T4 and T7 for bad input: what has no canonical form is a denied call, changes nothing, and is not repeated.

Arguments, names and ids that a model, a provider or a stranger could send. Each is denied as `invalid_call`; the tool
does not run, the taint does not move, the other calls of the turn go on, and neither the value nor a name that is none
comes back in the message. Mutations that this file catches: any one check of `canonical.check`; the digest taken before
the check; a message that quotes the value.
"""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, MemoryJournal, Verdict
from interlock.errors import NotCanonical
from interlock.model.canonical import MAX_BYTES, MAX_DEPTH, MAX_INTEGER, canonical, check, pack, parse, unpack
from tests.strategies import NOT_CANONICAL, json_values, nested, texts
from tests.worlds import StepsWorld, Tools, entries, guard_in

WRAPPED = {
    "as it is": lambda value: {"body": value},
    "in a list": lambda value: {"body": ["x", value]},
    "in an object": lambda value: {"body": {"x": [{"y": value}]}},
    "beside others": lambda value: {"to": "bob@corp.example", "body": "x", "z": value},
}


def denied(arguments: Any, **call: Any) -> tuple[Any, Any]:
    """The outcome of one call beside an honest one, and the world; everything that must hold of both is checked."""
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    bad = Call(**{"name": "send", "arguments": arguments, "id": "bad", **call})
    outcome, honest = guard.batch([bad, Call("now", {}, "good")], run=Tools(world, conversation.id))
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "invalid_call"
    assert not outcome.executed
    assert outcome.is_error
    assert outcome.result is None
    assert len(world.tape.runs) == 1
    assert honest.executed
    assert not conversation.exposure
    for text in (outcome.for_model, outcome.tool, *(reason.for_person for reason in outcome.decision.reasons)):
        assert "secret-value" not in text
        text.encode()
        assert "\0" not in text
    assert len(outcome.for_model) < 1000
    assert "secret-value" not in str(entries(world, conversation.id))
    assert guard.preview(bad).code == "invalid_call"
    return outcome, world


@pytest.mark.parametrize("name", NOT_CANONICAL)
@pytest.mark.parametrize("where", WRAPPED)
def test_t4_a_value_without_a_canonical_form(name: str, where: str) -> None:
    denied(WRAPPED[where](NOT_CANONICAL[name]))


class Strange(dict[str, Any]):
    """A mapping of a class of its own, one level down."""


DEEP: dict[str, Any] = {
    "one level too deep": {"body": nested(MAX_DEPTH)},
    "one object too deep": {"body": nested(MAX_DEPTH, key="a")},
    "far too deep": {"body": nested(5000)},
    "objects far too deep": {"body": nested(5000, key="a")},
    "one byte too large": {"body": "a" * (MAX_BYTES - len('{"body":""}') + 1)},
    "large in bytes, not in letters": {"body": "\u00e9" * (MAX_BYTES // 2)},
    "many keys": {f"key-{number:07}": "secret-value" for number in range(60_000)},
    "a dictionary of another class": {"body": Strange(secret="secret-value")},
    "an ordered dictionary inside": {"body": OrderedDict(a="secret-value")},
    "text of another class": {"body": type("Text", (str,), {})("secret-value")},
    "a number of another class": {"body": type("Number", (int,), {})(7)},
    "a key of another class": {type("Key", (str,), {})("secret-value"): 1},
}


@pytest.mark.parametrize("name", DEEP)
def test_t4_too_deep_too_large_or_only_nearly_plain(name: str) -> None:
    denied(DEEP[name])


class Fights(Mapping[str, Any]):
    """A mapping that raises, from a method of choice."""

    def __init__(self, method: str, error: BaseException) -> None:
        self._method, self._error = method, error

    def _maybe(self, method: str) -> None:
        if method == self._method:
            raise self._error

    def __getitem__(self, key: str) -> Any:
        self._maybe("getitem")
        return "x"

    def __iter__(self) -> Iterator[str]:
        return iter(["body"])

    def __len__(self) -> int:
        return 1

    def keys(self) -> Any:
        self._maybe("keys")
        return ["body"]


@pytest.mark.parametrize("method", ["getitem", "keys"])
@pytest.mark.parametrize(
    "error",
    [RuntimeError("secret-value"), KeyError("secret-value"), RecursionError(), MemoryError(), TypeError()],
    ids=repr,
)
def test_t4_a_mapping_that_fights_back(method: str, error: Exception) -> None:
    assert dict(Fights("none", error)) == {"body": "x"}
    denied(Fights(method, error))


NOT_OBJECTS: dict[str, Any] = {
    "JSON text": '{"to": "secret-value"}',
    "empty text": "",
    "bytes": b'{"to": "secret-value"}',
    "a list": ["secret-value"],
    "a list of pairs": [("to", "secret-value")],
    "a tuple": (("to", "secret-value"),),
    "nothing": None,
    "a number": 7,
    "true": True,
    "a set": {"secret-value"},
    "an object": object(),
    "a class": dict,
    "a generator": (pair for pair in [("to", "secret-value")]),
}


@pytest.mark.parametrize("name", NOT_OBJECTS)
def test_t4_arguments_that_are_no_object_are_not_parsed(name: str) -> None:
    outcome, _ = denied(NOT_OBJECTS[name])
    assert "must be an object" in outcome.for_model


@pytest.mark.parametrize("arguments", [MappingProxyType({"a": 1}), UserDict({"a": 1}), OrderedDict(a=1)], ids=repr)
def test_a_mapping_of_plain_values_is_an_object(arguments: Any) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    (outcome,) = guard_in(world, conversation).batch([Call("now", arguments)], run=Tools(world, conversation.id))
    assert outcome.executed


NOT_IDS: list[Any] = [
    "a\0b",
    "a\nb",
    "a\x1b[31m",
    "a\u200bb",
    "a\u202eb",
    "\ud800",
    "a" * 257,
    None,
    7,
    b"x",
    ["x"],
    True,
]


@pytest.mark.parametrize("call_id", NOT_IDS, ids=ascii)
def test_t17_an_odd_id_is_refused_and_answered_under_another(call_id: Any) -> None:
    outcome, _ = denied({}, id=call_id)
    assert outcome.call_id != call_id
    assert outcome.call_id.isprintable()


@pytest.mark.parametrize(
    "call_id", ["", " ", "a" * 256, "call_1", "toolu_01A", "\u00e9", "a b/c:d", "'\"<>&"], ids=ascii
)
def test_printable_ids_are_kept(call_id: str) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    (outcome,) = guard_in(world, conversation).batch([Call("now", {}, call_id)], run=Tools(world, conversation.id))
    assert outcome.executed
    assert outcome.call_id == (call_id or "call_1")


@given(ids=st.lists(st.sampled_from(["", "a", "b", "call_1", "call_2", "a#2", "call_1#2"]), max_size=6))
def test_t17_every_call_of_a_turn_has_an_answer_under_an_id_of_its_own(ids: list[str]) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    calls = [Call("now", {}, one) for one in ids]
    outcomes = guard_in(world, conversation).batch(calls, run=Tools(world, conversation.id))
    assert len(outcomes) == len(calls)
    found = [one.call_id for one in outcomes]
    assert len(set(found)) == len(found)
    for call, outcome in zip(calls, outcomes, strict=True):
        if call.id and ids.count(call.id) == 1:
            assert outcome.call_id == call.id
        if outcome.call_id == call.id:
            assert outcome.executed
    # Of calls with the same id at most one runs: whoever reads the results could not tell them apart.
    for one in set(filter(None, ids)):
        ran = [out for call, out in zip(calls, outcomes, strict=True) if call.id == one and out.executed]
        assert len(ran) <= 1


# --- the canonical form itself ----------------------------------------------------------------------------------------


@given(value=json_values())
def test_canonical_bytes_are_read_back_and_say_what_differs(value: Any) -> None:
    frozen = canonical(value)
    assert unpack(frozen) == value
    assert parse(frozen) == value
    assert parse(frozen.decode()) == value
    assert canonical(parse(frozen)) == frozen
    assert unpack(frozen) is not value or not isinstance(value, list | dict)


def exactly(value: Any) -> Any:
    """A value in which equal means of one type too: ``1`` and ``1.0`` and ``True`` are three values."""
    if isinstance(value, list):
        return ["list", *map(exactly, value)]
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    return type(value).__name__, repr(value)


@given(left=json_values(4), right=json_values(4))
def test_equal_bytes_mean_equal_values(left: Any, right: Any) -> None:
    assert (canonical(left) == canonical(right)) == (exactly(left) == exactly(right))


@given(value=st.dictionaries(texts(4), json_values(3), max_size=4), seed=st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], seed: Any) -> None:
    pairs = list(value.items())
    seed.shuffle(pairs)
    assert canonical(dict(pairs)) == canonical(value)


@given(value=json_values())
def test_whatever_is_built_is_packed_alike(value: Any) -> None:
    assert pack(value) == canonical(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"to": ["a", float("nan")]}, "$.to[1]"),
        ({"a b": {"c": b""}}, "$[…].c"),
        ([[{"x": "\0"}]], "$[0][0].x"),
        ({"x": {1: 2}}, "$.x"),
        (float("inf"), "$"),
    ],
)
def test_a_refusal_names_the_place(value: Any, path: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        check(value)
    assert caught.value.path == path


def test_the_borders_are_inside() -> None:
    assert (MAX_DEPTH, MAX_BYTES, MAX_INTEGER) == (64, 1 << 20, 2**53)
    for value in (
        2**53,
        -(2**53),
        2.0**53,
        -(2.0**53),
        0.1,
        5e-324,
        -0.0,
        nested(MAX_DEPTH),
        nested(MAX_DEPTH, key="a"),
    ):
        assert parse(canonical(value)) == value
    assert len(canonical("a" * (MAX_BYTES - 2))) == MAX_BYTES
    with pytest.raises(NotCanonical):
        canonical("a" * (MAX_BYTES - 1))


NOT_JSON: list[Any] = [
    "",
    " ",
    "{",
    '{"a":1,"a":2}',
    '{"a":{"b":1,"b":1}}',
    '{"a":1,"\\u0061":2}',
    "NaN",
    "Infinity",
    "-Infinity",
    "[1,]",
    "{'a':1}",
    "01",
    "1e400",
    str(2**53 + 1),
    "9" * 5000,
    '"\\ud800"',
    '"\\u0000"',
    '"\x01"',
    "\ufeff{}",
    "[" * 65 + "]" * 65,
    "[" * 100_000,
    "a" * (MAX_BYTES + 1),
    b"\xff",
    b'"\xed\xa0\x80"',
    "true false",
    "nul",
]


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: ascii(text)[:24])
def test_json_of_strangers_is_read_strictly(text: Any) -> None:
    with pytest.raises(NotCanonical):
        parse(text)
