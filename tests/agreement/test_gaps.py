"""Known disagreements of the embedded engine and OPA are real, and none of them reaches a control unnoticed (T13).

`gaps.toml` lists them. Each is asked of both engines again: one that has closed fails here, so the list can't grow old.
Each is refused by the loader or warned about by `interlock check`, but for the few whose `why` says what keeps a
control from meeting them. Mutation that this file catches: a builtin or a construct that is no longer warned about.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import PolicyError
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.lint import lint_bundle
from interlock.policy.sources import Source, shipped_sources
from tests.agreement.asking import ERROR, UNDEFINED, Opa, asked_opa, embedded_says, opa_says

GAPS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("gaps.toml").read_text(encoding="utf-8"))
RULES = {"warned": "engines-differ", "fallible": "fallible-builtin"}


@pytest.fixture(scope="module")
def server() -> Iterator[Opa]:
    with asked_opa() as running:
        yield running


def control(rego: str) -> str:
    return f'package controls.gap\n\ndefault verdict := {{"verdict": "ask"}}\n\n{rego.strip()}\n'


def alike(one: str, other: str) -> bool:
    """Are two JSON texts one answer? Numbers are compared as they are written."""
    words = {UNDEFINED, ERROR}
    if one in words or other in words:
        return one == other

    def read(text: str) -> Any:
        return json.loads(text, parse_float=lambda digits: ("float", digits))

    return bool(read(one) == read(other))


@pytest.mark.parametrize("name", GAPS)
def test_t13_the_gap_is_still_there(server: Opa, name: str) -> None:
    gap = GAPS[name]
    said = {
        "embedded": embedded_says(control(gap["rego"]), gap["input"]),
        "opa": opa_says(server, control(gap["rego"]), gap["input"]),
    }
    assert not alike(said["embedded"], said["opa"]), "the engines agree here now: take it out of gaps.toml"
    for engine, now in said.items():
        assert alike(now, gap[engine]), f"{engine} says {now} now, and gaps.toml says {gap[engine]}"


@pytest.mark.parametrize("name", GAPS)
def test_t13_no_control_meets_it_unnoticed(name: str) -> None:
    gap = GAPS[name]
    mine = Source("gap.rego", control(gap["rego"]))
    assert gap["kept"] in ("refused", "rare", *RULES)
    if gap["kept"] == "refused":
        with pytest.raises(PolicyError, match=r"gap\.rego"):
            assemble([*shipped_sources(), mine], parse_settings({}))
        return
    found = {one.rule for one in lint_bundle(assemble([*shipped_sources(), mine], parse_settings({})))}
    if gap["kept"] == "rare":
        assert gap["why"]
        assert "engines-differ" not in found
    else:
        assert RULES[gap["kept"]] in found


def test_the_shipped_controls_use_nothing_of_it() -> None:
    from dataclasses import replace

    bundle = assemble(shipped_sources(), parse_settings({}))
    theirs = replace(bundle, sources=tuple(replace(one, own=False) for one in bundle.sources))
    assert [one for one in lint_bundle(theirs) if one.rule == "engines-differ"] == []


# What stands in the place of what differs: alike in both, and without a finding.
INSTEAD = {
    "a field by itself": 'r if {\n\tinput.tool.egress == "none"\n\tinput.tool.known == true\n}',
    "ASCII digits": "r if {\n\tis_string(input.call.arguments.x)\n\tregex.match(`^[0-9]+$`, input.call.arguments.x)\n}",
    "not of a field": "r if not input.call.arguments.x",
    "not of a field and a constant": 'r if not input.call.arguments.x == "a"',
    "a list that is tested": ("r := [y | is_array(input.call.arguments.x); some y in input.call.arguments.x]"),
    "numbers that are tested": "r if {\n\tis_number(input.call.arguments.x)\n\tinput.call.arguments.x < 3\n}",
    "a list as a pattern": "r := y if [y, _] := input.call.arguments.x",
    "a count of a list": "r if count(input.call.destinations) + 1 == 2",
}
VALUES = [None, True, False, 0, 2, 3, -1, 1.5, "", "a", "7", "٣", "😀", [], ["a"], [1, 2], {}, {"a": 1, "b": 2}]


@pytest.mark.parametrize("name", INSTEAD)
def test_t13_what_stands_in_its_place(server: Opa, name: str) -> None:
    text = control(INSTEAD[name])
    found = lint_bundle(assemble([*shipped_sources(), Source("gap.rego", text)], parse_settings({})))
    assert [one for one in found if one.rule == "engines-differ"] == []
    for arguments in [{}, *({"x": value} for value in VALUES)]:
        value = arguments.get("x")
        call = {"arguments": arguments, "destinations": [value]}
        document = json.dumps({"tool": {"egress": "none", "known": value is True}, "call": call})
        assert alike(embedded_says(text, document), opa_says(server, text, document)), document
