"""A proof held because the field that it was about had been left out.

``lifted if ("secret" in input.call.arguments.tags) == false`` is lifted by the embedded engine when there are no tags
at all, which T6 forbids; OPA says nothing, and the control objects. The same with the answer of ``in`` in a variable, a
list or an argument. `interlock check` warned of ``not … in …`` only. Such a rule no longer loads: ``in`` stands by
itself.
Mutations that this file catches: only one side of a comparison looked at; the value of a rule not looked at; an ``in``
within an ``in`` that stands by itself.
"""

from __future__ import annotations

import pytest

from interlock.policy.dialects import refused
from interlock.policy.rego_ast import parse_module
from tests.ids import stable

IN = '"x" in input.call.arguments.tags'
PARTS = (
    f"r if ({IN}) == false",
    f"r if false == ({IN})",
    f"r if ({IN}) != true",
    f"r := {IN}",
    f"r := 1 if {{\n\tfound := {IN}\n\tfound == false\n}}",
    f"r if {{\n\tfound = ({IN})\n\tfound == false\n}}",
    f"r if same({IN}) == false",
    f"r if false in [{IN}]",
    f'r if [{IN}] == [false]\n\nelse := "no"',
    f"r if {{\n\tsome found in [{IN}]\n\tfound == false\n}}",
    f"r if {{\n\tevery found in [{IN}] {{\n\t\tfound == false\n\t}}\n}}",
    f"r if count([1 | false in [{IN}]]) == 1",
    f"r[{IN}] := 1",
)
FINE = (
    f"r if {IN}",
    f"r if ({IN})",
    f"r if {{\n\tinput.tool.known == true\n\t{IN}\n}}",
    f"r if not {IN}",
    f"r := [1 | {IN}]",
    'r if {\n\tevery tag in input.call.arguments.tags {\n\t\ttag in ["x"]\n\t}\n}',
    f"r := 1 if false\n\nelse := 2 if {IN}",
)


def found(rule: str) -> list[str]:
    module = parse_module("mine.rego", f"package controls.mine\n\nsame(x) := x\n\n{rule}\n")
    return [line for one in module.rules for line in refused(module, one)]


@pytest.mark.parametrize("rule", PARTS, ids=stable)
def test_a_membership_that_is_a_part_of_something_does_not_load(rule: str) -> None:
    assert ["`in` as a part" in line for line in found(rule)] == [True]


@pytest.mark.parametrize("rule", FINE, ids=stable)
def test_one_that_stands_by_itself_does(rule: str) -> None:
    assert found(rule) == []
