"""A proof that asked whether one set is within another always held in OPA.

``lifted if { sent | safe == safe }`` is a body with one comparison for the embedded engine. OPA reads ``{ sent | …`` as
the beginning of a set comprehension, which is a set, and so true, whatever is in it: the control allowed every call
once it was served by OPA, and `interlock check` had nothing to say. Such a body no longer loads.
Mutations that this file catches: the body of a function, or of a rule with a value, not looked at; a union behind an
operator not found; parentheses refused too.
"""

from __future__ import annotations

import pytest

from interlock.policy.dialects import refused
from interlock.policy.rego_ast import parse_module
from tests.ids import stable

SETS = 'sent := {"x"}\n\nsafe := {"ok"}\n\nsame(x) := x\n\n'
BODIES = (
    "sent | safe == safe",
    "(sent) | safe == safe",
    "(sent | safe) | safe == safe",
    "same(sent) | safe == safe",
    '{"x"} | safe == safe',
    "sent | safe in [safe]",
    "sent | safe != safe\n\tsent",
    "# why\n\tsent |\n\tsafe == safe",
    "sent | input.call.arguments.x | safe",
)
HEADS = ("r if", "r := 1 if", "r contains 1 if", "r[1] if", "r(x) if")
FINE = (
    "r if {\n\t(sent | safe) == safe\n}",
    "r if {\n\tsafe == sent | safe\n}",
    "r if {\n\ttrue\n\tsent | safe == safe\n}",
    "r if sent | safe == safe",
    "r if {\n\tall := sent | safe\n\tall == safe\n}",
    "r if {\n\tsame(sent | safe) == safe\n}",
)


def found(rule: str) -> list[str]:
    module = parse_module("mine.rego", f"package controls.mine\n\n{SETS}{rule}\n")
    return [line for one in module.rules for line in refused(module, one)]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("body", BODIES, ids=stable)
def test_a_body_that_begins_with_a_union_does_not_load(head: str, body: str) -> None:
    (line,) = found(f"{head} {{\n\t{body}\n}}")
    assert "that begins with a union" in line


def test_a_set_that_begins_with_a_union_does_not_load() -> None:
    (line,) = found("r := {sent | safe | sent, 1}")
    assert "that begins with a union" in line


@pytest.mark.parametrize("rule", FINE, ids=stable)
def test_other_unions_do(rule: str) -> None:
    assert found(rule) == []
