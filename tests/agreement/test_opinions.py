"""What engines say that no gate asks: opinions on T13 (ADR 0002 says why they are no more than that).

The embedded engine's virtual machine, and rego-cpp by `regopy`, answer the shipped controls as the embedded engine
does, on documents within our limits. Where they do not in general is listed at the end, and fails when it closes.
`regopy` is not among the pinned requirements of the tests, since it has no wheel for every machine:
`pip install --require-hashes -r requirements/opinions.txt`. Without it those tests are skipped, and say so; under
`INTERLOCK_CI` on a machine that it has a wheel for, that is a failure. OPA's own engine has
other bindings in Python (its WebAssembly); they were not taken, since `opa` itself is asked elsewhere.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given

from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import shipped_sources
from interlock.testing.agreement import compare
from tests.agreement.asking import Regopy, VirtualMachine, embedded_says
from tests.strategies import LAYOUTS, documents, fewer, hostile_documents

try:
    import regopy as _regopy
except ImportError:
    _regopy = None


def _needs_regopy() -> None:
    if _regopy is None:
        why = "regopy is not installed: pip install --require-hashes -r requirements/opinions.txt"
        if os.environ.get("INTERLOCK_CI") and sys.platform == "linux" and platform.machine() == "x86_64":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


OPINIONS: dict[str, Any] = {"vm": VirtualMachine, "regopy": Regopy}


@cache
def pair(name: str, layout: str) -> tuple[EmbeddedEngine, Any]:
    bundle = assemble(shipped_sources(), parse_settings(LAYOUTS[layout]))
    return EmbeddedEngine(bundle), OPINIONS[name](bundle)


@pytest.fixture(params=OPINIONS)
def opinion(request: pytest.FixtureRequest) -> str:
    if request.param == "regopy":
        _needs_regopy()
    return str(request.param)


@pytest.fixture(params=OPINIONS, scope="module")
def asked(request: pytest.FixtureRequest) -> str:
    if request.param == "regopy":
        _needs_regopy()
    return str(request.param)


@pytest.mark.parametrize("layout", ["preset strict", "all ask", "all off"])
@fewer(30)
@given(document=documents() | hostile_documents())
def test_t13_opinions_on_the_shipped_controls(asked: str, layout: str, document: Any) -> None:
    ours, theirs = pair(asked, layout)
    compare(ours, theirs, pack(document))


# --- why they are no more than opinions -------------------------------------------------------------------------------

# Name → opinion, rule, input, what the embedded engine says, what the opinion says.
PARTING = {
    "an error in a deny rule": ("vm", 'r := "deny" if {call}', '{"x": 1}', "error", "undefined"),
    "an error in a negation": ("vm", "r if not {call}", '{"x": 1}', "error", "true"),
    "some in a scalar": ("vm", "r := [y | some y in input.x]", '{"x": 1}', "error", "[]"),
    "letters outside ASCII": ("regopy", "r := lower(input.x)", '{"x": "É"}', '"é"', '"É"'),
    "an order across types": ("regopy", "r if input.x < 3", '{"x": null}', "true", "undefined"),
    "what is a number": ("regopy", "r := to_number(input.x)", '{"x": "1_0"}', "error", "1"),
}


@pytest.mark.parametrize("name", PARTING)
def test_where_an_opinion_parts_from_the_embedded_engine(name: str) -> None:
    which, rule, document, ours, theirs = PARTING[name]
    if which == "regopy":
        _needs_regopy()
    text = "package controls.gap\n\n" + rule.replace("{call}", 'startswith(input.x, "a")') + "\n"
    assert embedded_says(text, document) == ours
    assert says(which, text, document) == theirs


def says(which: str, text: str, document: str) -> str:
    path = "data.controls.gap.r"
    if which == "vm":
        import regorus

        machine = regorus.Rvm()
        machine.load_program(regorus.Program.compile_from_modules("{}", [("gap.rego", text)], [path]))
        machine.set_data_json("{}")
        machine.set_input_json(document)
        try:
            answer = json.loads(machine.execute())
        except RuntimeError:
            return "error"
        return "undefined" if answer == "<undefined>" else json.dumps(answer)
    engine = _regopy.Interpreter()
    engine.strict_built_in_errors = True
    engine.add_module("gap.rego", text)
    engine.set_input_term(document)
    output = engine.query(path)
    if not output.ok():
        return "error"
    if str(output) == "undefined":
        return "undefined"
    (answer,) = json.loads(str(output))["expressions"]
    return json.dumps(answer, ensure_ascii=False)
