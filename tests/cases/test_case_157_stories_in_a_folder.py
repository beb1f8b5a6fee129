"""Case 157: stories in a folder of their own, as the starter lays them out, catch no mutant.

Their configuration is named `../interlock.toml`, so the paths of the controls hold `stories/..`; if the file that is
exchanged for the mutant is looked for by its other path, every mutant "survives", and a team learns to ignore that.
The honest twin is the same project with its control as it should be, which passes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli import cli
from tests.cases.test_case_157_policy_that_nobody_can_test import CONFIGURATION, CONTROL, STORIES


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "controls").mkdir()
    (tmp_path / "stories").mkdir()
    (tmp_path / "controls" / "small.rego").write_text(CONTROL)
    story = STORIES.replace("configuration: interlock.toml", "configuration: ../interlock.toml")
    (tmp_path / "stories" / "payments.yaml").write_text(story)
    (tmp_path / "interlock.toml").write_text(CONFIGURATION.replace('"payments.yaml"', '"stories"'))
    done = CliRunner().invoke(cli, ["test", "--mutate", "--json", str(tmp_path / "interlock.toml")])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_attack_every_mutant_is_caught(told: dict[str, Any]) -> None:
    assert told["mutants"]
    assert [one["what"] for one in told["mutants"] if not one["caught_by"]] == []


def test_honest_every_story_passes(told: dict[str, Any]) -> None:
    assert (told["passed"], told["failed"]) == (2, 0)
