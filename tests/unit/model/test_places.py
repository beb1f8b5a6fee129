"""Proves that a path finds what it names wherever lists stand, and that what no path names is not passed over.

Mutations that this file catches: a list that is not opened; a key below a named object that counts as unnamed; an
unknown key with an empty value that counts as nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Manifest
from interlock.model.destinations import find, unclassified
from interlock.model.places import at, covers, leads, leaves, loose, meets_scalar, segments
from interlock.model.tools import ToolId, ToolSpec
from tests.strategies import json_values

AT: list[tuple[Any, str, list[Any]]] = [
    ({"a": 1}, "a", [1]),
    ({"a": [1, 2]}, "a", [[1, 2]]),
    ({"a": {"b": 1}}, "a.b", [1]),
    ({"a": [{"b": 1}, {"b": 2}, {"c": 3}]}, "a.b", [1, 2]),
    ({"a": [[{"b": 1}]]}, "a.b", [1]),
    ({"a": {"x": {"b": 1}, "y": {"b": 2}}}, "a.*.b", [1, 2]),
    ({"a.b": 1, "a": {"b": 2}}, "a.b", [1, 2]),
    ({"a": "text"}, "a.b", []),
    ({}, "a", []),
]


@pytest.mark.parametrize(("value", "path", "found"), AT, ids=str)
def test_what_a_path_finds(value: Any, path: str, found: list[Any]) -> None:
    assert list(at(value, path)) == found


LOOSE: list[tuple[Any, list[str], list[str]]] = [
    ({"a": "x"}, ["a"], []),
    ({"a": "x", "b": "y"}, ["a"], ["b"]),
    ({"a": {"b": "x", "c": "y"}}, ["a"], []),
    ({"a": {"b": "x", "c": "y"}}, ["a.b"], ["a.c"]),
    ({"a": {"b": "x", "c": None}}, ["a.b"], ["a.c"]),
    ({"a": [{"b": "x"}, "y"]}, ["a.b"], ["a"]),
    ({"a": "y"}, ["a.b"], ["a"]),
    ({"a": {}}, ["a.b"], []),
    ({"a": {"x": {"b": 1}, "y": {"c": 2}}}, ["a.*.b"], ["a.y.c"]),
    ({"a.b": "x"}, ["a.b"], []),
    ({"c": None, "d": "", "e": False, "f": []}, ["a"], []),
    ({"c": 0}, ["a"], ["c"]),
]


@pytest.mark.parametrize(("value", "paths", "found"), LOOSE, ids=str)
def test_what_no_path_names(value: Any, paths: list[str], found: list[str]) -> None:
    assert list(loose(value, paths)) == found


@given(value=st.dictionaries(st.sampled_from("abc"), json_values(), max_size=3))
def test_every_leaf_that_carries_is_named_or_loose(value: dict[str, Any]) -> None:
    paths = ["a.b", "b"]
    missing = set(loose(value, paths))
    for path, leaf in leaves(value):
        if isinstance(leaf, str) and leaf:
            named = any(covers(segments(one), path) for one in paths)
            above = any(".".join(path[:length]) in missing for length in range(1, len(path) + 1))
            assert named or above


def test_patterns() -> None:
    assert covers(("a", "**"), ("a", "b", "c"))
    assert covers(("a",), ("a", "b"))
    assert not covers(("a", "b"), ("a",))
    assert leads(("a", "*", "c"), ("a", "b"))
    assert not leads(("a",), ("a",))
    assert meets_scalar({"a": "x"}, "a.b")
    assert not meets_scalar({"a": None}, "a.b")
    assert meets_scalar({"a": {"x": 1}}, "a.*.b")


def spec_of(**entry: Any) -> ToolSpec:
    whole = {"returns": [], "egress": "chosen", **entry}
    return Manifest.parse({"version": 1, "tools": {"x": whole}}).spec(ToolId("", "x"))


def test_receivers_and_payload_inside_an_object() -> None:
    spec = spec_of(
        destinations={"message.to": "email", "message.cc": "email", "guests.email": "email"}, content=["message.body"]
    )
    message = {"to": ["bob@x.example", {"email": "ann@x.example", "name": "Ann"}], "cc": "joe@x.example", "body": "x"}
    given_arguments = {"message": message, "guests": [{"email": "sue@x.example"}]}
    assert [one.value for one in find(spec, given_arguments)] == [
        "sue@x.example",
        "joe@x.example",
        "bob@x.example",
        "ann@x.example",
    ]
    assert unclassified(spec, given_arguments) == ()
    smuggled = {"message": {**message, "bcc": "eve@x.example"}, "guests": ["eve@x.example"], "x": 1}
    assert unclassified(spec, smuggled) == ("guests", "message.bcc", "x")
