"""Case 157, a hole: stories in a folder of their own, as the starter lays them out, never catch a mutant.

Their configuration is named `../interlock.toml`, so the controls' paths hold `stories/..`, and the file that is
exchanged for the mutant is looked for by its other path. Every mutant "survives", and a team learns to ignore that.
"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from interlock.cli import cli
from tests.cases.test_case_157_policy_that_nobody_can_test import CONFIGURATION, CONTROL, STORIES


def test_stories_in_a_folder_catch_mutants(tmp_path: Path) -> None:
    (tmp_path / "controls").mkdir()
    (tmp_path / "stories").mkdir()
    (tmp_path / "controls" / "small.rego").write_text(CONTROL)
    story = STORIES.replace("configuration: interlock.toml", "configuration: ../interlock.toml")
    (tmp_path / "stories" / "payments.yaml").write_text(story)
    (tmp_path / "interlock.toml").write_text(CONFIGURATION.replace('"payments.yaml"', '"stories"'))
    done = CliRunner().invoke(cli, ["test", "--mutate", "--json", str(tmp_path / "interlock.toml")])
    mutants = json.loads(done.stdout)["mutants"]
    assert [one["what"] for one in mutants if not one["caught_by"]] == []
