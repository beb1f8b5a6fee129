"""Proves that the document says what the spec, the conversation and the arguments say, and fits its schema always.

Mutations that this file catches: own private labels left out of the forecast; sibling labels left out; untrusted labels
of siblings taken in; an empty list of destinations counted as grounded; an unclassified argument ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Manifest
from interlock.model.calls import freeze
from interlock.model.canonical import pack, unpack
from interlock.model.digests import voice_digest
from interlock.model.document import Asked, Setting, asked, build, check_document, document_schema
from interlock.model.labels import Label, Leg, category_of, leg_of
from interlock.model.origins import value_digest
from interlock.model.tools import Kind
from tests.strategies import batches, fewer, label_tuples, manifests
from tests.worlds import FixedClock

BOB = value_digest(Kind.EMAIL, "bob@corp.example")
QUIET = Setting("c-1", "default", "", (), frozenset(), frozenset(), frozenset(), False, ())


def one_of(manifest: Manifest, call: Call) -> Asked:
    return asked(*freeze(call, manifest))


def document_of(entry: dict[str, Any], arguments: dict[str, Any], siblings: Any = (), **setting: Any) -> Any:
    whole = {"returns": [], "egress": "none", **entry}
    manifest = Manifest.parse({"version": 1, "tools": {"x": whole, **dict(siblings)}})
    beside = [one_of(manifest, Call(name, {}, name)) for name, _ in siblings]
    found = build(one_of(manifest, Call("x", arguments, "x")), beside, replace(QUIET, **setting), FixedClock().now())
    check_document(found)
    return found


@fewer(2)
@given(data=st.data(), exposure=label_tuples(max_size=4), deafening=st.booleans())
def test_t6_every_document_of_the_builder_fits_its_schema(data: st.DataObject, exposure: Any, deafening: bool) -> None:
    manifest = data.draw(manifests(min_size=1))
    found = [one_of(manifest, call) for call in data.draw(batches(manifest))]
    setting = replace(QUIET, exposure=exposure, deafening=deafening, typed=frozenset({BOB}))
    for place, one in enumerate(found):
        siblings = found[:place] + found[place + 1 :]
        document: Any = build(one, siblings, setting, FixedClock().now())
        check_document(document)
        check_document(unpack(pack(document)))
        # Every list is sorted and holds nothing twice, so that equal situations have equal bytes (T15).
        for part in (document["exposure"], document["forecast"], document["call"]["labels"]):
            for leg in Leg:
                assert part[leg.value] == sorted(set(part[leg.value]))
        # The forecast: exposure, and the private and egress labels of all calls of the turn.
        coming = [label for other in found for label in (*other.spec.private, *other.spec.opens)]
        for leg in Leg:
            wanted = {category_of(label) for label in exposure if leg_of(label) is leg}
            assert set(document["exposure"][leg.value]) == wanted
            if leg is not Leg.UNTRUSTED:
                wanted |= {category_of(label) for label in coming if leg_of(label) is leg}
            assert set(document["forecast"][leg.value]) == wanted
        named = {"credentials", "unknown"} & set(document["forecast"]["private"])
        assert document["forecast"]["credentials"] == bool(named)
        assert document["call"]["siblings"] == len(siblings)
        assert (document["tool"]["effect"] == "control") == (document["call"]["control"] != "none")
        assert document["call"]["arguments"] == one.call.thawed()


def test_the_forecast_counts_what_the_call_itself_brings() -> None:
    entry = {"returns": ["private:mail", "untrusted:web"], "reads": ["private:files"], "opens": ["egress:share"]}
    found = document_of(entry, {})
    assert found["forecast"] == {
        "untrusted": [],
        "private": ["files", "mail"],
        "egress": ["share"],
        "credentials": False,
    }
    assert found["exposure"] == {"untrusted": [], "private": [], "egress": []}
    assert found["call"]["labels"] == {"untrusted": ["web"], "private": ["files", "mail"], "egress": ["share"]}


def test_the_forecast_counts_what_siblings_bring() -> None:
    siblings = [
        ("a", {"returns": ["private:mail", "untrusted:web"], "egress": "none"}),
        ("b", {"returns": [], "egress": "none", "reads": ["private:credentials"], "opens": ["egress:share"]}),
    ]
    found = document_of({}, {}, siblings)
    assert found["forecast"] == {
        "untrusted": [],
        "private": ["credentials", "mail"],
        "egress": ["share"],
        "credentials": True,
    }


SENDS = {"egress": "chosen", "destinations": {"to": "email", "cc": "email"}, "content": ["body"]}


@pytest.mark.parametrize(
    ("entry", "arguments", "grounded"),
    [
        (SENDS, {"to": "bob@corp.example"}, True),
        (SENDS, {"to": "bob@corp.example", "body": "x"}, True),
        (SENDS, {"to": ["bob@corp.example", "bob@CORP.example"]}, True),
        (SENDS, {"to": "bob@corp.example", "cc": "eve@evil.example"}, False),
        (SENDS, {"to": ["bob@corp.example", "eve@evil.example"]}, False),
        (SENDS, {"to": ["bob@corp.example", ""]}, False),
        (SENDS, {"to": "bob@corp.example", "header": "x"}, False),
        (SENDS, {"to": "bob@corp.example", "header": 7}, False),
        (SENDS, {"to": "bob@corp.example", "header": ""}, True),
        (SENDS, {"to": "eve@evil.example"}, False),
        (SENDS, {"to": ""}, False),
        (SENDS, {"to": []}, False),
        (SENDS, {}, False),
        ({"egress": "chosen"}, {}, False),
        ({"egress": "none"}, {}, False),
        ({"egress": "none", "destinations": {"to": "email"}}, {}, False),
        ({"egress": "none", "destinations": {"to": "email"}}, {"to": "bob@corp.example"}, True),
    ],
)
def test_grounded_means_at_least_one_and_all(entry: Any, arguments: Any, grounded: bool) -> None:
    found = document_of(entry, arguments, typed=frozenset({BOB}))
    assert found["call"]["grounded"] is grounded
    by_operator = document_of(entry, arguments, operator=frozenset({BOB}))
    assert by_operator["call"]["grounded"] is grounded
    by_nobody = document_of(entry, arguments)
    assert by_nobody["call"]["grounded"] is False


def test_a_sending_call_without_a_destination_carries_one_that_nobody_knows() -> None:
    (one,) = document_of({"egress": "chosen"}, {})["call"]["destinations"]
    assert one == {"argument": "", "kind": "unknown", "value": "", "origin": "unseen", "talks_back": False}


@pytest.mark.parametrize(
    ("to", "setting", "talks"),
    [
        ("bob@evil.example", {"voices": frozenset({voice_digest("evil.example")})}, True),
        ("bob@corp.example", {"voices": frozenset({voice_digest("evil.example")})}, False),
        ("bob@corp.example", {"voices": frozenset({voice_digest("evil.example")}), "deafening": True}, True),
        ("bob@corp.example", {"deafening": True}, True),
        ("no address", {"voices": frozenset({voice_digest("evil.example")})}, True),
        ("", {"voices": frozenset({voice_digest("evil.example")})}, True),
        ("no address", {}, False),
        ("no address", {"voices": frozenset({voice_digest("")})}, True),
    ],
)
def test_a_destination_talks_back_when_it_has_spoken_or_could_be_anybody(to: str, setting: Any, talks: bool) -> None:
    (one,) = document_of(SENDS, {"to": to}, **setting)["call"]["destinations"]
    assert one["talks_back"] is talks


@pytest.mark.parametrize(
    ("effect", "path", "control"),
    [
        ("none", "interlock.toml", "none"),
        ("write", "notes.txt", "none"),
        ("write", ".bashrc", "agent"),
        ("write", "interlock.toml", "interlock"),
        ("destroy", ".bashrc", "agent"),
        ("control", "notes.txt", "agent"),
        ("control", "interlock.toml", "interlock"),
        ("write", "/srv/policies/a.rego", "interlock"),
        ("destroy", "/srv", "interlock"),
        ("write", "/srv", "none"),
    ],
)
def test_whose_rules_a_call_changes(effect: str, path: str, control: str) -> None:
    entry = {"effect": effect, "destinations": {"path": "path"}}
    found = document_of(entry, {"path": path}, protected=("/srv/policies",))
    assert found["call"]["control"] == control
    assert found["tool"]["effect"] == (effect if control == "none" else "control")


def test_the_schema_is_published_and_closed() -> None:
    schema = document_schema()
    parts = [schema, *schema["$defs"].values()]
    assert len(parts) == 9
    for part in parts:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"]), "every key is always there"


def test_equal_situations_have_equal_documents() -> None:
    first = document_of(SENDS, {"to": "bob@corp.example"}, exposure=(Label("private:a"), Label("private:b")))
    second = document_of(SENDS, {"to": "bob@corp.example"}, exposure=(Label("private:b"), Label("private:a")))
    assert pack(first) == pack(second)
