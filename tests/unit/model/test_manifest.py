"""Proves that a manifest says what was written, in any order, and that what it does not say has every leg (T7).

Refusals at load are in tests/unit/test_policies.py and tests/laws/test_undeclared.py. Mutations that this file catches:
`blind` that is given away; a digest that leaves out a field; a second declaration that silently wins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from interlock import Manifest
from interlock.errors import ManifestError
from interlock.model.labels import Label
from interlock.model.manifest import folded
from interlock.model.tools import Effect, Egress, Kind, ToolId, ToolSpec, looks_like_receiver, words
from tests.strategies import manifests, specs

QUIET = {"returns": [], "egress": "none"}


@given(manifest=manifests())
def test_equal_manifests_have_equal_digests_in_any_order(manifest: Manifest) -> None:
    backwards = Manifest(dict(reversed(list(manifest.specs.items()))))
    assert backwards.digest == manifest.digest
    assert list(backwards) == list(manifest)
    assert len(manifest) == len(manifest.specs)
    for spec in manifest:
        assert manifest.spec(spec.id) is spec
        assert manifest.lookalike(spec.id) is None


@pytest.mark.parametrize(
    "change",
    [
        {"id": ToolId("srv", "x")},
        {"id": ToolId("", "y")},
        {"returns": (Label("private:mail"),)},
        {"egress": Egress.CHOSEN},
        {"reads": (Label("private:mail"),)},
        {"opens": (Label("egress:x"),)},
        {"effect": Effect.WRITE},
        {"destinations": (("to", Kind.EMAIL),)},
        {"content": ("body",)},
        {"arguments": ("a",)},
        {"description": "x"},
        {"known": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_tool_that_changes_in_any_way_is_another_tool(change: dict[str, Any]) -> None:
    spec = ToolSpec(ToolId("", "x"), returns=(), egress=Egress.NONE)
    other = replace(spec, **change)
    assert other.digest != spec.digest
    assert Manifest({spec.id: spec}).digest != Manifest({other.id: other}).digest


@given(spec=specs())
def test_a_spec_keeps_its_promises_apart(spec: ToolSpec) -> None:
    assert set(spec.private) | set(spec.untrusted) == set(spec.returns) | set(spec.reads)
    assert all(one.startswith("private:") for one in spec.private)
    assert all(one.startswith("untrusted:") for one in spec.untrusted)
    assert spec.sends == (spec.egress is not Egress.NONE or bool(spec.opens))
    assert replace(spec, returns=tuple(reversed(spec.returns))) == spec


@pytest.mark.parametrize(
    ("entry", "loads"),
    [
        ({"egress": "blind", "audience": "closed"}, True),
        ({"egress": "blind"}, False),
        ({"egress": "blind", "audience": ""}, False),
        ({"egress": "blind", "audience": "open"}, False),
        ({"egress": "blind", "audience": "closed", "destinations": {"to": "email"}}, False),
        ({"egress": "chosen", "audience": "closed"}, False),
        ({"egress": "none", "audience": "closed"}, False),
    ],
    ids=str,
)
def test_blind_is_earned(entry: dict[str, Any], loads: bool) -> None:
    document = {"version": 1, "tools": {"x": {"returns": [], **entry}}}
    if loads:
        assert Manifest.parse(document).spec(ToolId("", "x")).egress is Egress.BLIND
    else:
        with pytest.raises(ManifestError):
            Manifest.parse(document)


@pytest.mark.parametrize(
    "entry",
    [
        {"reads": ["untrusted:web"]},
        {"reads": ["egress:x"]},
        {"opens": ["private:x"]},
        {"returns": ["egress:x"]},
        {"destinations": {"to": "unknown"}},
        {"destinations": {"to": "mail"}},
        {"destinations": {"to": "email"}, "content": ["to"]},
        {"effect": "read"},
    ],
    ids=str,
)
def test_labels_and_kinds_stand_where_they_belong(entry: dict[str, Any]) -> None:
    with pytest.raises(ManifestError):
        Manifest.parse({"version": 1, "tools": {"x": {**QUIET, "egress": "chosen", **entry}}})


@pytest.mark.parametrize("version", [None, 0, 2, "1", True, 1.0, []])
def test_another_version_does_not_load(version: Any) -> None:
    with pytest.raises(ManifestError):
        Manifest.parse({"version": version, "tools": {"x": QUIET}})


@pytest.mark.parametrize("document", [[], None, 7, "x", [("version", 1, 2)]], ids=str)
def test_what_is_no_mapping_does_not_load(document: Any) -> None:
    with pytest.raises(ManifestError):
        Manifest.parse(document)


def test_joining_never_chooses() -> None:
    first = Manifest.parse({"version": 1, "tools": {"x": QUIET}})
    second = Manifest.parse({"version": 1, "tools": {"y": QUIET}})
    assert {spec.id.name for spec in first.joined(second)} == {"x", "y"}
    with pytest.raises(ManifestError, match="twice"):
        first.joined(first)
    with pytest.raises(ManifestError, match="rename"):
        first.joined(Manifest.parse({"version": 1, "tools": {"X": QUIET}}))


def test_what_a_person_would_read_as_the_same_name() -> None:
    assert folded(ToolId("A", "Send")) == folded(ToolId("a", "\uff53end\u200b"))
    assert folded(ToolId("", "send")) != folded(ToolId("send", ""))
    assert str(ToolId("srv", "x")) == "srv/x"


def test_arguments_that_look_like_receivers() -> None:
    for name in ("to", "recipientEmail", "share_with", "webhook-url", "reply_to", "channelID"):
        assert looks_like_receiver(name), name
    for name in ("body", "total", "stop", "tomato", "count"):
        assert not looks_like_receiver(name), name
    assert words("shareWith_URL2") == {"share", "with", "url", "2"}
