"""Case 117: an engine gives the same for "no", "I don't know" and "there is no such rule".

Asked of the engine itself: false, undefined, a missing rule and a missing package look different from one another, and
of these only the first is an answer at all. Asked through the gate: each of the other three, in the place of a
control's answer, denies as a failure. The honest twin is a control that says no, which denies as a rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import regorus

from interlock.errors import EngineUnavailable, PolicyError
from interlock.model.answers import parse_answers
from interlock.policy.embedded import ENTRYPOINT
from tests.cases.desk import did, fresh, got, locked, mine, shared

MODULE = """package t

default no := false

maybe if input.nothing

yes := true
"""


def asked(rule: str) -> str:
    engine = regorus.Engine()
    engine.add_policy("t.rego", MODULE)
    engine.set_input_json("{}")
    try:
        return repr(engine.eval_rule_as_json(f"data.{rule}"))
    except Exception as error:
        return type(error).__name__


def test_what_the_engine_says() -> None:
    said = {rule: asked(rule) for rule in ("t.yes", "t.no", "t.maybe", "t.nonesuch", "u.nonesuch")}
    assert said["t.yes"] == "'true'"
    assert said["t.no"] == "'false'"
    assert not {said[rule] for rule in ("t.maybe", "t.nonesuch", "u.nonesuch")} & {"'true'", "'false'", "''", "'null'"}


@pytest.mark.parametrize("rule", ["t.yes", "t.no", "t.maybe"])
def test_attack_none_of_them_is_an_answer_of_controls(rule: str) -> None:
    engine = regorus.Engine()
    engine.add_policy("t.rego", MODULE)
    engine.set_input_json("{}")
    with pytest.raises(EngineUnavailable):
        parse_answers(engine.eval_rule_as_json(f"data.{rule}"), shared().engine.controls)


def test_attack_an_entry_point_that_is_not_there() -> None:
    engine = regorus.Engine()
    engine.add_policy("t.rego", MODULE)
    engine.set_input_json("{}")
    try:
        raw = engine.eval_rule_as_json(ENTRYPOINT)
    except Exception:
        return  # an error is no answer either
    with pytest.raises(EngineUnavailable):
        parse_answers(raw, shared().engine.controls)


def test_attack_a_control_that_is_silent_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "mine.rego").write_text(
        'package controls.mine\n\nverdict := {"verdict": "allow"} if input.tool.known\n'
    )
    with pytest.raises(PolicyError, match="no `default verdict`"):
        locked(policies=[tmp_path])


def test_honest_a_no_is_a_no(tmp_path: Path) -> None:
    lock = locked(policies=[mine(tmp_path, 'input.tool.name == "calc"')])
    assert did(fresh(lock), "calc").executed
    assert got(did(fresh(lock), "read_page")) == ("deny", "mine")
