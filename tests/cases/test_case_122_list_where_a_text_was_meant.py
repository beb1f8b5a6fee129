"""Case 122: the rule tests a text, the argument is a list, the builtin fails, and a rule that fails does not fire.

A control that objects to certain addresses is given them in a list, in an object or as a number. The call is refused,
as a failure or as a rule, and never passes; the linter says beforehand which builtins can fail. A receiver in a shape
that can't be read is nobody's. The honest twin is the text.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PolicyError
from interlock.model.settings import Settings
from interlock.policy.bundle import assemble
from interlock.policy.lint import lint_bundle
from interlock.policy.sources import Source, shipped_sources
from tests.cases.desk import CONTROL, armed, bundle, did, fresh, got, locked, mine

BODY = 'contains(lower(input.call.arguments.url), "corp.example")'
SHAPES = [["https://corp.example/"], {"href": "https://corp.example/"}, 7, None, True, [["https://corp.example/"]], []]


@pytest.mark.parametrize("url", SHAPES, ids=repr)
def test_attack_another_shape_is_no_way_past(tmp_path: Path, url: object) -> None:
    lock = locked(policies=[mine(tmp_path, BODY)])
    outcome = did(fresh(lock), "web_fetch", {"url": url})
    assert outcome.verdict.value == "deny"
    assert not outcome.executed


@pytest.mark.parametrize("url", SHAPES, ids=repr)
def test_attack_nor_past_the_shipped_controls(url: object) -> None:
    guard = armed(typed="Look at https://corp.example/ please.")
    verdict = got(did(guard, "web_fetch", {"url": url}))
    # A list of one typed address names that address, and so does an object that holds nothing else; every other shape
    # names nobody.
    named = (["https://corp.example/"], {"href": "https://corp.example/"})
    assert verdict == (("allow", "allowed") if url in named else ("deny", "trifecta"))


def test_attack_the_rule_that_denies_by_matching_does_not_even_load(tmp_path: Path) -> None:
    """Here a rule can't deny by firing: what is not proved is denied, so a rule that fails to fire opens nothing."""
    (tmp_path / "mine.rego").write_text(
        'package controls.mine\n\ndefault verdict := {"verdict": "allow"}\n\n'
        'verdict := {"verdict": "deny"} if contains(lower(input.call.arguments.url), "evil")\n'
    )
    with pytest.raises(PolicyError, match="must be an objection"):
        locked(policies=[tmp_path])


def test_attack_the_linter_names_the_builtins_that_can_fail() -> None:
    found = [one.rule for one in lint_bundle(bundle(CONTROL + BODY + "\n"))]
    assert "fallible-builtin" in found
    tested = "is_string(input.call.arguments.url)\n\t" + 'startswith(input.call.arguments.url, "https://corp.example/")'
    source = Source("mine/0.rego", CONTROL + "{\n\t" + tested + "\n}\n")
    assert not [
        one for one in lint_bundle(assemble([*shipped_sources(), source], Settings())) if one.rule == "fallible-builtin"
    ]


def test_honest_the_text(tmp_path: Path) -> None:
    lock = locked(policies=[mine(tmp_path, BODY)])
    assert did(fresh(lock), "web_fetch", {"url": "https://CORP.example/"}).executed
