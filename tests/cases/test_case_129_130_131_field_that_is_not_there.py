"""Cases 129 to 131: a rule asks for a field by a wrong name, by its absence, or in a list as if it were a set.

`not` is true of what is missing and of a typing error; a misspelt field never matches and nobody notices; a label
looked up as a key of a list is undefined. Unknown fields do not load, `not` is found by the linter and can't be fooled
by a missing key because every key is there, and labels are tested by membership. The honest twins are spelt right.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import regorus

from interlock.errors import EngineUnavailable, PolicyError
from interlock.model.canonical import pack
from interlock.model.document import check_document
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.lint import lint_bundle
from interlock.policy.samples import SAMPLES
from tests.cases.desk import CONTROL, armed, bundle, did, fresh, got, locked, mine

TYPOS = [
    'input.exposure.untrustd == ["web"]',
    "input.taint.untrusted == []",
    'input.tool.egres == "none"',
    'input["call"]["ground"] == true',
    'some d in input.call.destinations\n\td.orign == "user"',
    "not input.exposure.untrustd",
    "input.call.destinations[0].host == 1",
    "input.forecast.private.files == true",
    "input.schema.version == 1",
]


@pytest.mark.parametrize("body", TYPOS)
def test_attack_a_field_that_the_document_does_not_have_does_not_load(tmp_path: Path, body: str) -> None:
    if body == "input.forecast.private.files == true":
        # A name in a list is an index of no list: it loads, is never true, and so proves nothing.
        assert got(did(fresh(locked(policies=[mine(tmp_path, body)])), "calc")) == ("deny", "mine")
        return
    with pytest.raises(PolicyError, match=r"the document has no input|there is nothing below it"):
        locked(policies=[mine(tmp_path, body)])


@pytest.mark.parametrize("body", ['not input.exposure.untrusted == ["web"]', "not input.call.arguments.secret"])
def test_attack_a_negation_is_a_finding(body: str) -> None:
    assert "negation" in [one.rule for one in lint_bundle(bundle(CONTROL + body + "\n"))]


def test_attack_a_negation_is_not_fooled_by_a_missing_key() -> None:
    """With `not` a hole would be a proof; no document with a hole ever reaches an engine."""
    engine = EmbeddedEngine(bundle(CONTROL + 'not input.exposure.untrusted == ["web"]\n'))
    document = json.loads(json.dumps(SAMPLES["clean send"]))
    document["exposure"]["untrusted"] = ["web"]
    check_document(document)
    assert json.loads(engine.evaluate(pack(document)))["mine"]["verdict"] == "deny"
    del document["exposure"]["untrusted"]
    assert json.loads(engine.evaluate(pack(document)))["mine"]["verdict"] == "allow"  # the trap is real
    with pytest.raises(EngineUnavailable, match=r"exposure\.untrusted"):
        check_document(document)


def test_what_a_list_is_in_the_engine() -> None:
    engine = regorus.Engine()
    engine.add_policy(
        "t.rego",
        'package t\n\nkey := true if input.legs["private"]\n\nset := {"private"} == input.legs\n\n'
        'member := "private" in input.legs\n\nlist := input.legs == ["private"]\n',
    )
    engine.set_input_json('{"legs": ["private"]}')
    said = {name: engine.eval_rule_as_json(f"data.t.{name}") for name in ("key", "set", "member", "list")}
    assert said.pop("key") != "true"
    assert said == {"set": "false", "member": "true", "list": "true"}


@pytest.mark.parametrize("body", ['input.exposure.private["files"]', 'input.exposure.private == {"files"}'])
def test_attack_a_test_that_can_not_hold_proves_nothing(tmp_path: Path, body: str) -> None:
    assert got(did(armed(locked_after_reading(tmp_path, body)), "calc")) == ("deny", "mine")


def locked_after_reading(folder: Path, body: str):  # type: ignore[no-untyped-def]
    """A control that lets two readers pass, and for the rest demands what its body says."""
    text = CONTROL + body + '\n\nelse := {"verdict": "allow"} if input.tool.name in {"read_attachment", "read_file"}\n'
    (folder / "mine.rego").write_text(text)
    return locked(policies=[folder])


@pytest.mark.parametrize("body", ['"files" in input.exposure.private', 'input.exposure.private == ["files"]'])
def test_honest_membership_and_whole_lists(tmp_path: Path, body: str) -> None:
    lock = locked_after_reading(tmp_path, body)
    assert did(armed(lock), "calc").executed
    assert got(did(fresh(lock), "calc")) == ("deny", "mine")
