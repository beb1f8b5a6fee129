"""Case 157: a team writes controls and has no way to see that they do what they should, or that the test could fail.

`interlock test` tells the team's stories to the real gate and loosens each line of each control: a story whose call
gets another verdict fails, and a control that nobody would miss is shown. A planted hole is found by both. The honest
twin is the same project without the hole.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli

CONTROL = """package controls.small

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if input.tool.name in {"read"}

verdict := {"verdict": "allow"} if {
	is_number(input.call.arguments.amount)
	input.call.arguments.amount <= 100
}
"""
STORIES = """version: 1
title: Payments
configuration: interlock.toml
stories:
  large:
    kind: attack
    says: A large payment is asked.
    steps:
      - {call: read, expect: allow}
      - {call: pay, arguments: {amount: 101}, expect: ask, code: small}
      - {call: pay, arguments: {amount: "7"}, expect: ask, code: small}
  small:
    kind: honest
    says: A small one is not.
    steps:
      - {call: pay, arguments: {amount: 100}, expect: allow}
"""
CONFIGURATION = """version = 1
policies = ["controls"]
scenarios = ["payments.yaml"]

[tools.pay]
returns = []
egress = "none"
content = ["amount"]

[tools.read]
returns = []
egress = "none"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "controls").mkdir()
    (tmp_path / "controls" / "small.rego").write_text(CONTROL)
    (tmp_path / "payments.yaml").write_text(STORIES)
    (tmp_path / "interlock.toml").write_text(CONFIGURATION)
    return tmp_path


def run_tests(project: Path, *options: str) -> tuple[int, dict[str, object]]:
    done = CliRunner().invoke(cli, ["test", "--json", *options, str(project / "interlock.toml")])
    assert done.exit_code in (0, 1), done.output
    told: dict[str, object] = json.loads(done.stdout)
    return done.exit_code, told


def survived(told: dict[str, object]) -> list[str]:
    mutants = told["mutants"]
    assert isinstance(mutants, list)
    return [str(one["kind"]) for one in mutants if not one["caught_by"]]


def test_attack_a_planted_hole_is_found(project: Path) -> None:
    (project / "controls" / "small.rego").write_text(CONTROL.replace("<= 100", "<= 1000"))
    code, told = run_tests(project)
    assert (code, told["failed"]) == (1, 1)


def test_attack_a_line_that_no_story_needs_is_shown(project: Path) -> None:
    (project / "payments.yaml").write_text(STORIES[: STORIES.index("  small:")])
    code, told = run_tests(project, "--mutate")
    assert code == 1
    assert told["failed"] == 0
    assert "proof dropped" in survived(told)


def test_honest_the_project_as_it_is(project: Path) -> None:
    code, told = run_tests(project, "--mutate")
    assert survived(told) == []
    assert (code, told["failed"]) == (0, 0)
