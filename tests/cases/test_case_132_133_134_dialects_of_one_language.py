"""Cases 132 to 134: the same policy means one thing in one engine and another in the next.

Letters that one engine turns to lower case and another does not, a line that one accepts and another refuses, sets of
which one forgets half, statements whose order should make no difference. What differs is found by the linter or does
not load; what is left gives the known right answer in the shipped engine, and the shipped controls answer as their
twins in plain Python do. The honest twin is a control in the part of the language on which all agree.
"""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest
import regorus

from interlock.errors import PolicyError
from interlock.model.canonical import pack
from interlock.model.settings import Settings
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.lint import lint_bundle
from interlock.policy.reference import ReferenceEngine
from interlock.policy.samples import SAMPLES
from tests.cases.desk import CONTROL, bundle, did, fresh, locked, mine


def said(text: str, rule: str, document: object = None) -> object:
    engine = regorus.Engine()
    engine.add_policy("t.rego", text)
    engine.set_input_json(json.dumps({} if document is None else document))
    return json.loads(engine.eval_rule_as_json(f"data.t.{rule}"))


@pytest.mark.parametrize(
    ("body", "builtin"),
    [
        ('lower(input.tool.name) == "évil"', "lower"),
        ('upper(input.tool.name) == "ÉVIL"', "upper"),
        ("to_number(input.tool.name) == 1", "to_number"),
        ('sort(input.tool.reads) == ["private:files"]', "sort"),
        ("input.call.arguments.amount < 3", "<"),
        ('input.tool.name != "x"', "!="),
    ],
)
def test_attack_what_engines_answer_differently_is_a_finding(body: str, builtin: str) -> None:
    found = [one for one in lint_bundle(bundle(CONTROL + body + "\n")) if one.rule == "engines-differ"]
    assert [one.message.split(" ")[0].rstrip(":") for one in found] == [builtin]


def test_attack_no_comparison_here_needs_another_case(tmp_path: Path) -> None:
    """Names of tools, labels and codes are ASCII in one case, so nothing that is compared is ever folded."""
    for name in ("Évil", "ÉVIL", "İnvite", "ſend"):
        assert did(fresh(), name, {}).decision.code == "invalid_call"


REFUSED = {
    "a rule without if": "d { input.x }\n",
    "every on one line without if": "d every r in [1] { r > 0 }\n",
    "an old set": "d[x] { x := 1 }\n",
    "an equals sign as a definition": "d = 1 { true }\n",
    "an else that hangs in the air": "else := 1\n",
    "a keyword as a name": "every := 1\n",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_attack_what_does_not_parse_does_not_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.rego").write_text(CONTROL + "input.tool.known == true\n\n" + text)
    with pytest.raises(PolicyError, match="mine"):
        locked(policies=[tmp_path])


STATEMENTS = ["y := input.a", "x := y + 1", 'z := {"a"} | {"b"}', "x == 3", "count(z) == 2"]


def test_statements_in_any_order_are_right_or_an_error() -> None:
    """Some engines reorder; the shipped one refuses a name used before it is bound. Neither is quietly wrong."""
    answers = []
    for order in permutations(STATEMENTS):
        try:
            answers.append(said("package t\n\nok if {\n\t" + "\n\t".join(order) + "\n}\n", "ok", {"a": 2}))
        except RuntimeError as error:
            answers.append("used before definition" in str(error) and "refused")
    assert set(answers) == {True, "refused"}


def test_attack_a_name_used_before_it_is_bound_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="used before definition"):
        locked(policies=[mine(tmp_path, "x == true\n\tx := input.tool.known")])


VECTORS: dict[str, tuple[str, object]] = {
    "union of sets": ('{"a"} | {"b"}', ["a", "b"]),
    "intersection of sets": ('{"a", "b"} & {"b"}', ["b"]),
    "difference of sets": ('{"a", "b"} - {"b"}', ["a"]),
    "every of nothing": ("every_none", True),
    "membership in an object's values": ('1 in {"a": 1}', True),
    "composed and decomposed": ('"\u00e9" == "e\u0301"', False),
    "true is not one": ("true == 1", False),
    "null is not false": ("null == false", False),
    "an integer and the same float": ("1 == 1.0", True),
    "text and number": ('"1" == 1', False),
    "a list is not a set": ('["a"] == {"a"}', False),
    "order of a set": ('{"b", "a"} == {"a", "b"}', True),
    "order of a list": ('["b", "a"] == ["a", "b"]', False),
    "union of objects, the right one wins": ('object.union({"a": 1}, {"a": 2})', {"a": 2}),
}


@pytest.mark.parametrize(("expression", "wanted"), VECTORS.values(), ids=VECTORS)
def test_known_right_answers(expression: str, wanted: object) -> None:
    if expression == "every_none":
        expression = "count([1 | every x in [] { x == 1 }]) == 1"
    assert said(f"package t\n\nanswer := {expression}\n", "answer") == wanted


@pytest.mark.parametrize("name", SAMPLES)
def test_the_shipped_controls_answer_as_their_twins_in_python(name: str) -> None:
    shipped = bundle()
    reference = ReferenceEngine(Settings().model_dump(), shipped.controls)
    document = pack(SAMPLES[name])
    assert json.loads(EmbeddedEngine(shipped).evaluate(document)) == json.loads(reference.evaluate(document))


def test_honest_the_common_part(tmp_path: Path) -> None:
    body = 'input.tool.name in {"calc", "read_page"}\n\tevery one in input.tool.returns {\n\t\tone == "x"\n\t}'
    assert did(fresh(locked(policies=[mine(tmp_path, body)])), "calc").executed
