"""Proves that what was decided is what runs: a frozen call can't change, and its digest is of exactly this call (T8).

Mutations that this file catches: a digest that leaves out the server or the name; arguments that are shared, not
copied; a door that compares less than everything.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call
from interlock.model.calls import call_digest, freeze, is_call_id, same_call
from interlock.model.canonical import canonical
from interlock.model.tools import ToolId
from tests.strategies import NOT_CANONICAL, arguments, json_values, texts
from tests.worlds import MANIFEST


@given(given_arguments=arguments())
def test_t8_a_frozen_call_does_not_change_with_its_arguments(given_arguments: dict[str, Any]) -> None:
    before = canonical(given_arguments)
    frozen, _ = freeze(Call("send", given_arguments, "a"), MANIFEST)
    given_arguments["to"] = "eve@evil.example"
    given_arguments["new"] = 1
    assert frozen.arguments == before
    thawed = frozen.thawed()
    thawed["to"] = "eve@evil.example"
    assert frozen.thawed() is not thawed
    assert canonical(frozen.thawed()) == before
    assert frozen.digest == call_digest(ToolId("", "send"), before)


IDS = [ToolId("", "send"), ToolId("", "share"), ToolId("srv", "send"), ToolId("send", "x"), ToolId("s", "end")]


@given(
    one=st.tuples(st.sampled_from(IDS), st.dictionaries(texts(4), json_values(3), max_size=2)),
    other=st.tuples(st.sampled_from(IDS), st.dictionaries(texts(4), json_values(3), max_size=2)),
)
def test_t8_equal_digests_mean_the_same_call(one: Any, other: Any) -> None:
    digests = [call_digest(tool, canonical(found)) for tool, found in (one, other)]
    same = one[0] == other[0] and canonical(one[1]) == canonical(other[1])
    assert (digests[0] == digests[1]) == same


@given(found=st.dictionaries(texts(4), json_values(3), max_size=3), more=json_values(2))
def test_t8_the_door_opens_for_exactly_this(found: dict[str, Any], more: Any) -> None:
    frozen, _ = freeze(Call("send", found, "a"), MANIFEST)
    assert same_call(frozen, ToolId("", "send"), found)
    assert same_call(frozen, ToolId("", "send"), frozen.thawed())
    assert not same_call(frozen, ToolId("srv", "send"), found)
    assert not same_call(frozen, ToolId("", "share"), found)
    assert not same_call(frozen, ToolId("", "send"), {**found, "one more": more})


@pytest.mark.parametrize("name", NOT_CANONICAL)
def test_t8_the_door_stays_shut_for_what_can_not_be_compared(name: str) -> None:
    frozen, _ = freeze(Call("send", {}, "a"), MANIFEST)
    assert not same_call(frozen, ToolId("", "send"), {"x": NOT_CANONICAL[name]})


@pytest.mark.parametrize(("value", "good"), [("", True), ("a", True), ("a" * 257, False), ("\n", False), (None, False)])
def test_ids_of_calls(value: Any, good: bool) -> None:
    assert is_call_id(value) is good
    assert not is_call_id(type("Sub", (str,), {})("a"))
