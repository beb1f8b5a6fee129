"""Proves that a workspace can only narrow: more labels, denials and strictness, and never a tool or a looser word.

Mutations that this file catches: a looser setting accepted; a denial of a tool that does not exist; egress lowered.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Manifest
from interlock.errors import Misconfigured
from interlock.model.configuration import ConfigurationError, narrow, parse_configuration, parse_narrowing
from interlock.model.fields import look_at
from interlock.model.settings import parse_settings
from interlock.model.tools import Effect, Egress, ToolId
from tests.strategies import SETTINGS, label_tuples, manifests
from tests.worlds import MANIFEST

ORDER = ("deny", "ask", "off")


def narrowed(changes: dict[str, Any], manifest: Manifest = MANIFEST, settings: dict[str, str] | None = None) -> Any:
    return narrow(manifest, parse_settings(settings or {}), parse_narrowing({"version": 1, **changes}, "w"), "w")


@given(
    manifest=manifests(min_size=1),
    labels=label_tuples(max_size=3),
    egress=st.sampled_from(list(Egress)),
    effect=st.sampled_from(list(Effect)),
)
def test_t7_narrowing_only_adds(manifest: Manifest, labels: Any, egress: Egress, effect: Effect) -> None:
    spec = next(iter(manifest))
    change = {
        "returns": [one for one in labels if not one.startswith("egress:")],
        "reads": [one for one in labels if one.startswith("private:")],
        "opens": [one for one in labels if one.startswith("egress:")],
        "egress": egress.value,
        "effect": effect.value,
    }
    after = narrowed({"tools": {str(spec.id): change}}, manifest).manifest.spec(spec.id)
    assert set(after.returns) == set(spec.returns) | set(change["returns"])
    assert set(after.reads) == set(spec.reads) | set(change["reads"])
    assert set(after.opens) == set(spec.opens) | set(change["opens"])
    assert list(Egress).index(after.egress) == max(list(Egress).index(one) for one in (spec.egress, egress))
    assert list(Effect).index(after.effect) == max(list(Effect).index(one) for one in (spec.effect, effect))
    assert after.destinations == spec.destinations


@pytest.mark.parametrize("current", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["trifecta", "leak_guard", "open_channel"])
@pytest.mark.parametrize("value", [*ORDER, "allow", ""])
def test_settings_go_to_the_strict_side_only(current: dict[str, str], name: str, value: str) -> None:
    legal = value in ("deny", "ask") or (value == "off" and name == "leak_guard")
    if legal and ORDER.index(value) <= ORDER.index(current[name]):
        assert getattr(narrowed({"settings": {name: value}}, settings=current).settings, name) == value
    else:
        with pytest.raises(ConfigurationError):
            narrowed({"settings": {name: value}}, settings=current)


def test_denied_tools_are_named_exactly() -> None:
    assert narrowed({"deny": ["send"]}).denied == {ToolId("", "send")}
    for wrong in ("Send", "send ", "srv/send", "nobody", ""):
        with pytest.raises(ConfigurationError):
            narrowed({"deny": [wrong]})


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": {"nobody": {}}},
        {"tools": {"send": {"returns": ["no label"]}}},
        {"tools": {"send": {"returns": ["egress:x"]}}},
        {"tools": {"send": {"reads": ["untrusted:x"]}}},
        {"tools": {"send": {"egress": "open"}}},
        {"tools": {"send": {"destinations": {}}}},
        {"settings": {"address_book": "x"}},
        {"settings": {"nothing": "deny"}},
        {"settings": {"trifecta": 7}},
        {"version": 2},
        {"version": True},
        {"more": 1},
    ],
    ids=str,
)
def test_everything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured):
        narrowed(changes)


@pytest.mark.parametrize(
    "document", [{}, {"version": 2}, {"version": 1, "more": 1}, {"version": 1, "tools": []}], ids=str
)
def test_configurations_are_read_strictly(document: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        parse_configuration(document, "c")


def test_t7_what_a_workspace_adds_holds_in_every_clause_and_every_field() -> None:
    entry = {
        "returns": ["private:files"],
        "egress": "chosen",
        "effect": "write",
        "fields": {"name": "trusted"},
        "when": [{"if": {"a": {"absent": True}}, "returns": [], "egress": "none", "effect": "none"}],
    }
    manifest = Manifest.parse({"version": 1, "tools": {"x": entry}})
    change = {"returns": ["untrusted:shared"], "egress": "blind", "effect": "destroy"}
    spec = narrowed({"tools": {"x": change}}, manifest).manifest.spec(ToolId("", "x"))
    (clause,) = spec.when
    assert clause.spec.untrusted == ("untrusted:shared",)
    assert (clause.spec.egress, clause.spec.effect) == (Egress.BLIND, Effect.DESTROY)
    seen = look_at(spec, {}, {"name": "eve@evil.test"}, "", (), failed=False)
    assert seen.untrusted == ("untrusted:shared",)
    assert seen.vouched == ()
