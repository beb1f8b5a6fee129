"""Proves that every story in tests/scenarios gets its verdicts, and that no attack stands without an honest twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.assembly import interlock_for
from interlock.scenarios import find_scenarios, load_scenario, run_file

FOLDER = Path(__file__).parent / "scenarios"
FILES = find_scenarios(FOLDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_call_gets_its_verdict(path: Path) -> None:
    problems = [problem for report in run_file(path, interlock_for) for problem in report.problems]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_attack_stands_beside_an_honest_twin(path: Path) -> None:
    stories = load_scenario(path).stories.values()
    assert {story.kind for story in stories} == {"attack", "honest"}
    for story in stories:
        verdicts = {step.expect for one in story.steps for step in one.calls}
        assert (verdicts == {"allow"}) == (story.kind == "honest")


def test_there_are_stories() -> None:
    assert len(FILES) >= 6
